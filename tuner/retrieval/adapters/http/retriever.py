"""The retriever that asks an HTTP service, one request a query or a batch."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, ClassVar

from tuner.core.checks import option_problems
from tuner.core.corpus import Corpus, Query
from tuner.core.errors import InputError, OutageError, Problem, TunerError, refuse
from tuner.core.json_text import text_digest
from tuner.core.rankings import TRIED_AGAIN, Rankings
from tuner.core.space import SearchSpace
from tuner.core.trial import Params
from tuner.retrieval.adapters.answers import (
    Answer,
    Passages,
    collected,
    passage_tokens,
    rankings_of,
    read_answer,
    shown,
)
from tuner.retrieval.adapters.event_loop import run_concurrently
from tuner.retrieval.adapters.http.connection import Service, connect
from tuner.retrieval.adapters.http.headers import read_headers, url_problems, without_secrets
from tuner.retrieval.adapters.http.mapping import (
    MANY,
    ONE,
    default_request,
    expression_problems,
    fill,
    named_params,
    search,
    template_problems,
)
from tuner.retrieval.knobs import Knob, knob_params, space_knobs

RESULTS = "results"


@dataclass(frozen=True)
class Http:
    """Answers with an HTTP service; made by ``Http.build``.

    Every text in ``request`` is a JMESPath expression over ``{id, query, params}``, or over
    ``{queries: [{id, query}], params}`` where requests hold several queries; ``response`` is one
    over the decoded response, and finds what ``read_answer`` reads, or one such answer a query.
    """

    waits: ClassVar[bool] = True

    service: Service
    request: str = field(repr=False)  # as JSON: a frozen record holds no mapping
    response: str
    batch_size: int
    concurrency: int
    knobs: tuple[Knob, ...]
    fingerprint: str
    known: Passages = field(repr=False)

    @classmethod
    def build(
        cls,
        corpus: Corpus,
        *,
        url: Annotated[str, "the address at which the service answers"],
        space: SearchSpace | None = None,
        baseline: Params | None = None,
        request: Annotated[
            Any, "what is sent: JMESPath expressions over id, query and params; left out: all three"
        ] = None,
        response: Annotated[
            str, "a JMESPath expression that finds the results in an answer"
        ] = RESULTS,
        headers: Annotated[
            Mapping[str, Any] | None,
            "headers of each request; a secret is written as `${VARIABLE}`",
        ] = None,
        batch_size: Annotated[int, "how many queries are sent in one request"] = 1,
        concurrency: Annotated[int, "how many requests each process sends at once"] = 8,
        timeout_s: Annotated[float, "seconds for one request"] = 30,
        retries: Annotated[int, "how often a request that failed is tried again"] = 3,
        retry_wait_s: Annotated[
            float, "seconds before the first retry; each further one waits twice as long"
        ] = 0.5,
        requests_per_second: Annotated[
            float | None, "how many requests each process sends in a second at most"
        ] = None,
    ) -> Http:
        """Check how the service is asked; nothing is sent.

        ``concurrency`` (requests at once) and ``requests_per_second`` hold for all threads of a
        process together; each worker process has its own. ``retry_wait_s`` is the wait before the
        first retry, which doubles with each further one.

        Raises:
            InputError: everything that is wrong with the options; secrets are not repeated.
        """
        if request is None:
            request = default_request(batch_size)
        found, problems = read_headers({} if headers is None else headers)
        problems += url_problems(url)
        problems += template_problems(request, ONE if batch_size == 1 else MANY, ("request",))
        problems += expression_problems(response, ("response",))
        numbers = {
            "batch_size": batch_size,
            "concurrency": concurrency,
            "timeout_s": timeout_s,
            "retries": retries,
            "retry_wait_s": retry_wait_s,
        }
        lows = {**dict.fromkeys(numbers, 0), "batch_size": 1, "concurrency": 1}
        if requests_per_second is not None:
            numbers["requests_per_second"], lows["requests_per_second"] = requests_per_second, 0
        whole = ("batch_size", "concurrency", "retries")
        problems += option_problems(numbers, lows, whole=whole)
        refuse(problems)
        rate = None if requests_per_second is None else float(requests_per_second)
        service = Service(url, found, float(timeout_s), int(retries), float(retry_wait_s), rate)
        names = named_params(request)
        knobs = space_knobs(space, baseline, names=names)
        known = {knob.name for knob in knobs}
        missing = [
            Problem(f"params.{name} is neither in the space nor in the baseline", key=("request",))
            for name in names or ()
            if name not in known
        ]
        if missing and space is not None:
            raise InputError(problems=missing)
        template = json.dumps(request)
        return cls(
            service,
            template,
            response,
            int(batch_size),
            int(concurrency),
            knobs,
            text_digest(json.dumps([corpus.fingerprint, url, template, response])),
            passage_tokens(corpus),
        )

    @classmethod
    def declare_knobs(cls, **options: Any) -> tuple[Knob, ...]:  # noqa: ARG003
        """Return none: the service is sent whatever the configuration names."""
        return ()

    @property
    def queries_at_once(self) -> int:
        """Return how many queries are in the requests that may run at once."""
        return self.concurrency * self.batch_size

    def prepare(self, queries: Sequence[Query]) -> None:
        """Do nothing: a connection is opened where a trial runs."""

    def retrieve(self, queries: Sequence[Query], params: Params) -> Rankings:
        """Ask the service, as many requests at once as are allowed.

        Raises:
            InputError: a parameter that is neither in the space nor in the baseline.
            OutageError: the service gave no answer, or said that it is out of order.
            TunerError: a request failed for good, or was answered by something else; then the
                others are not waited for, and the trial has failed.
        """
        filled = knob_params(params, self.knobs)
        template = json.loads(self.request)
        begin = time.perf_counter()
        starts = range(0, len(queries), self.batch_size)
        batches = [list(queries[start : start + self.batch_size]) for start in starts]
        tried_again: list[float] = []

        with collected(queries, self.known) as answers:

            async def ask(start: int, batch: Sequence[Query]) -> None:
                found, seconds = await self._ask(template, batch, filled)
                tried_again.append(seconds)
                answers.update(enumerate(found, start=start))

            calls = [partial(ask, *each) for each in zip(starts, batches, strict=True)]
            run_concurrently(calls, limit=self.concurrency, shared_by=self.service.url)
        in_order = [answers[row] for row in range(len(queries))]
        seconds = {"call": time.perf_counter() - begin}
        if any(tried_again):
            seconds[TRIED_AGAIN] = sum(tried_again)
        return rankings_of(queries, in_order, self.known, seconds)

    async def _ask(
        self, template: Any, batch: Sequence[Query], params: Params
    ) -> tuple[list[Answer], float]:
        asked: list[Mapping[str, Any]] = [{"id": query.id, "query": query.text} for query in batch]
        first = batch[0]
        where = f"query {first.id!r}"
        if self.batch_size > 1:
            where = f"queries {first.id!r} to {batch[-1].id!r}"
            values: Mapping[str, Any] = {"queries": asked, "params": params}
        else:
            values = {**asked[0], "params": params}
        try:
            response, tried_again_s = await connect(self.service).post(fill(template, values))
            found = search(self.response, response)
            if self.batch_size == 1:
                return [read_answer(found, self.known)], tried_again_s
            return self._read_batch(batch, found), tried_again_s
        except TunerError as error:
            reason = without_secrets(f"{where}: {error}", self.service.secrets)
            kind = OutageError if isinstance(error, OutageError) else TunerError
            raise kind(reason) from None  # what httpx raises holds the headers

    def _read_batch(self, batch: Sequence[Query], found: Any) -> list[Answer]:
        answers = found if isinstance(found, list) else [found]
        lists = [one for one in answers if isinstance(one, list | dict)]
        if len(answers) != len(batch) or len(lists) != len(batch):
            raise TunerError(
                f"{self.response!r} finds {shown(found)} for {len(batch)} queries; one list a "
                "query is needed (hits[*].id keeps the lists, hits[].id makes one of them)"
            )
        return [read_answer(one, self.known) for one in lists]
