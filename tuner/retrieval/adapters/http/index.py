"""An index that the service builds: one request starts it, others ask whether it is ready."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from tuner.core.errors import OutageError, Problem, TunerError
from tuner.core.trial import Params
from tuner.retrieval.adapters.answers import shown
from tuner.retrieval.adapters.event_loop import run_concurrently
from tuner.retrieval.adapters.http.connection import NotThereError, Service, connect
from tuner.retrieval.adapters.http.headers import url_problems
from tuner.retrieval.adapters.mapping import (
    PARAMS,
    expression_problems,
    fill,
    holds,
    named_params,
    search,
    template_problems,
)
from tuner.retrieval.adapters.waiting import (
    INDEX,
    Limit,
    Poll,
    key_problems,
    places_in,
    without_places,
)

_METHODS = ("POST", "PUT", "GET", "PATCH", "DELETE")
_KEYS = ("url", "method", "body", "name", "poll")
_POLL_KEYS = ("url", "method", "body", *Poll.KEYS)


@dataclass(frozen=True)
class Call:
    """One request: where it goes, and its body as JSON; the body's texts are expressions."""

    service: Service
    body: str = field(repr=False)

    def __call__(self, values: Mapping[str, Any]) -> Any:
        """Send it, and return the decoded response.

        Raises:
            OutageError: the service does not answer, or says that it is out of order.
            TunerError: it answers something else.
        """
        places = {**values[PARAMS], **{n: v for n, v in values.items() if n != PARAMS}}
        body = fill(json.loads(self.body), values)
        send = partial(connect(self.service).send, body, places)
        ((response, _),) = run_concurrently([send], limit=1, shared_by=self.service.url)
        return response


@dataclass(frozen=True)
class IndexRequest:
    """How a service is asked for an index. ``name`` finds its name in the first answer."""

    start: Call
    name: str
    poll: tuple[Call, Poll] | None
    params: tuple[str, ...]

    @classmethod
    def read(cls, given: Mapping[str, Any], service: Service) -> IndexRequest:
        """Read a section that has no problems; ``service`` is how queries are sent."""
        # Started once: of a request that was not answered nobody knows whether it builds.
        start = _call(given, replace(service, retries=0, timeout_s=None), "POST")
        polled = given.get("poll")
        poll = None
        if polled is not None:
            poll = _call(polled, service, "GET"), Poll.read(polled)
        return cls(start, given.get("name", INDEX), poll, _params(given))

    def built(self, params: Params, timeout_s: float | None) -> str | int:
        """Have an index built, and return its name once it is ready.

        Raises:
            OutageError: the service does not answer.
            TunerError: it refuses, fails, or takes longer than ``timeout_s``.
        """
        limit = Limit(timeout_s)
        start = replace(self.start, service=replace(self.start.service, timeout_s=timeout_s))
        try:
            found = search(self.name, start({PARAMS: params}))
        except OutageError as error:
            if limit.is_over():
                raise TunerError(limit.reason) from error
            raise
        if not isinstance(found, str | int) or isinstance(found, bool):
            raise TunerError(f"{self.name!r} finds {shown(found)}, which is no name of an index")
        if self.poll is not None:
            ask, poll = self.poll
            poll.wait(partial(ask, {PARAMS: params, INDEX: found}), limit)
        return found

    def is_there(self, name: str | int, params: Params) -> bool:
        """Say whether the service still has an index, as far as ``poll`` tells.

        Raises:
            OutageError: the service does not answer.
        """
        if self.poll is None:
            return True
        ask, poll = self.poll
        try:
            answer = ask({PARAMS: params, INDEX: name})
        except NotThereError:
            return False
        except OutageError:
            raise
        except TunerError:  # a query will tell
            return True
        return poll.failed_when is None or not holds(poll.failed_when, answer)


def index_problems(given: Any) -> Iterator[Problem]:
    """Yield what is wrong with the section ``index``."""
    key = (INDEX,)
    yield from key_problems(given, _KEYS, "url", key)
    if not isinstance(given, Mapping):
        return
    yield from _call_problems(given, (PARAMS,), key)
    yield from expression_problems(given.get("name", INDEX), (*key, "name"))
    polled = given.get("poll")
    if polled is not None:
        yield from key_problems(polled, _POLL_KEYS, "url", (*key, "poll"))
    if isinstance(polled, Mapping):
        yield from _call_problems(polled, (PARAMS, INDEX), (*key, "poll"))
        yield from Poll.problems(polled, (*key, "poll"))


def _call_problems(
    given: Mapping[str, Any], known: tuple[str, ...], key: tuple[str | int, ...]
) -> Iterator[Problem]:
    if "url" in given:
        for problem in url_problems(without_places(given["url"])):
            yield replace(problem, key=(*key, *problem.key))
    if given.get("method", "POST") not in _METHODS:
        yield Problem(f"must be one of {', '.join(_METHODS)}", key=(*key, "method"))
    problems = list(template_problems(given.get("body"), known, (*key, "body")))
    yield from problems
    if not problems and named_params(given.get("body")) is None:
        message = "name each parameter of the index, as in params.chunk_tokens"
        yield Problem(message, key=(*key, "body"))


def _params(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parameters of the index: those that the requests name."""
    names: list[str] = []
    for part in (given, given.get("poll") or {}):
        names += [name for name in places_in(str(part.get("url"))) if name != INDEX]
        names += named_params(part.get("body")) or ()
    return tuple(dict.fromkeys(names))


def params_of(given: Any) -> tuple[str, ...]:
    """Return the parameters of the index that a section names; none where it has problems."""
    return _params(given) if given is not None and not any(index_problems(given)) else ()


def _call(given: Mapping[str, Any], service: Service, method: str) -> Call:
    method = given.get("method", method)
    return Call(replace(service, url=given["url"], method=method), json.dumps(given.get("body")))
