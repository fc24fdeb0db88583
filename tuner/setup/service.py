"""How a service at a URL is asked, and where its answers hold the documents: one query tells."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tuner.core.checks import option_problems
from tuner.core.corpus import Query
from tuner.core.errors import InputError, OutageError, TunerError, refuse
from tuner.core.shown import counted, shortened
from tuner.core.trial import Params
from tuner.datasets import Dataset
from tuner.retrieval.adapters.answers import Passages, passage_tokens, read_answer
from tuner.retrieval.adapters.event_loop import run_concurrently
from tuner.retrieval.adapters.http.connection import Service, connect
from tuner.retrieval.adapters.http.headers import read_headers, url_problems
from tuner.retrieval.adapters.mapping import (
    ONE,
    expression_problems,
    fill,
    search,
    template_problems,
)
from tuner.setup.answer_shape import key_part, results_in

# What services call the text of a question, where they do not take {id, query, params}.
_QUESTIONS = ("query", "question", "text", "q")
# A query may find nothing; so many are tried for each form of a request.
_QUERIES = 3
_TIMEOUT_S = 30.0


@dataclass
class Look:
    """What is learned of a service: how it was asked, and what came of it.

    Attributes:
        asked: how many queries it was sent.
        refusals: why a form of the request was of no use.
        outages: of these, why the service gave no answer to it.
        hangs: whether it let a query wait until its time was up: nothing else is tried then.
    """

    service: Service
    queries: Sequence[Query]
    known: Passages
    judged: frozenset[str]
    asked: int = 0
    refusals: list[str] = field(default_factory=list)
    outages: list[str] = field(default_factory=list)
    hangs: bool = False

    def sent(self, request: Any, query: Query, params: Params) -> Any:
        """Send one query, and return the decoded answer.

        Raises:
            TunerError: no answer that can be used.
        """
        self.asked += 1
        body = fill(request, {"id": query.id, "query": query.text, "params": dict(params)})
        calls = [partial(connect(self.service).send, body, {})]
        ((answer, _),) = run_concurrently(calls, limit=1, shared_by=self.service.url)
        return answer

    def response_to(self, request: Any, params: Params) -> str | None:
        """Return where the answers to a form of request hold documents; None: nowhere."""
        reason = "it found nothing"
        for query in self.queries[:_QUERIES]:
            begin = time.perf_counter()
            try:
                answer = self.sent(request, query, params)
            except TunerError as error:
                waited_s = time.perf_counter() - begin
                self.hangs = waited_s >= (self.service.timeout_s or _TIMEOUT_S)
                self.refusals.append(f"{_shown(request)}: {error}")
                if isinstance(error, OutageError):
                    self.outages.append(str(error))
                return None
            found = results_in(answer, self.judged | frozenset(self.known or ()))
            if found is None:
                reason = f"no document of the data set is in {shortened(json.dumps(answer), 200)}"
                continue
            try:
                read_answer(search(found, answer), self.known)
            except TunerError as error:
                reason = str(error)
                continue
            return found
        self.refusals.append(f"{_shown(request)}: {reason}")
        return None


def options_of_service(
    url: str, options: Mapping[str, Any], today: Params, dataset: Dataset
) -> tuple[dict[str, Any], str]:
    """Ask a service a query of the data set; return the options of ``kind: http``, and words.

    Where ``request`` is not given, the usual forms of one are tried, until an answer holds
    documents of the data set; so is ``response`` found, where that is not given. A secret stands in
    the environment, and is neither written down nor shown.

    Raises:
        InputError: options that are wrong, or no answer in which documents of the data set are.
    """
    headers, problems = read_headers(options.get("headers", {}))
    problems += url_problems(url)
    if (request := options.get("request")) is not None:
        problems += template_problems(request, ONE, ("request",))
    if (response := options.get("response")) is not None:
        problems += expression_problems(response, ("response",))
    waits = {"timeout_s": options.get("timeout_s", _TIMEOUT_S)}
    problems += option_problems(waits, {"timeout_s": 0})
    refuse(problems)
    named = {"url": url, **options}
    if response is not None or options.get("batch_size", 1) != 1 or "index" in options:
        return named, "a service, which was not asked"
    look = Look(
        Service(url, headers, float(waits["timeout_s"]), 0, 0.0, None),
        dataset.queries,
        passage_tokens(dataset.corpus),
        frozenset(id_ for judged in dataset.qrels.values() for id_ in judged),
    )
    for form in _forms(request, today):
        found = look.response_to({n: n for n in ONE} if form is None else form, today)
        if found is None and look.hangs:
            break
        if found is None:
            continue
        if form is not None:
            named["request"] = form
        if found != "results":
            named["response"] = found
        asked = counted(look.asked, "query", "queries")
        return named, f"a service, which was asked {asked}"
    if look.hangs and len(look.refusals) == 1:
        raise InputError(
            f"{look.outages[0]}\nIs the URL right? A service that is just slow is given more time "
            "by --set timeout_s=120"
        )
    if len(look.outages) == len(look.refusals) and len(set(look.outages)) == 1:
        # No form of a request is at fault where all of them meet the same.
        raise InputError(
            f"{look.outages[0]}\nIs the service running, is the URL right, and does it need "
            "headers (--set 'headers={Authorization: \"Bearer ${TOKEN}\"}')? "
            "docs/your-system/http.md"
        )
    tried = "\n  ".join(dict.fromkeys(look.refusals))
    raise InputError(
        f"the service gave no answer with documents of the data set:\n  {tried}\nSay how it is "
        "asked, and where the documents stand in its answer: --set 'request={text: query, limit: "
        "params.top_k}' --set 'response=hits[*].id' (docs/your-system/http.md)"
    )


def _forms(request: Any, today: Params) -> Iterator[Any]:
    """Yield forms of a request: the one that is given, else the default, and then flat ones."""
    if request is not None:
        yield request
        return
    yield None
    for name in _QUESTIONS:
        yield {name: "query", **{param: f"params.{key_part(param)}" for param in today}}


def _shown(request: Any) -> str:
    return f"sent {json.dumps(request)}"
