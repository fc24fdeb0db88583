"""The retriever that asks an HTTP service, one request a query or a batch."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

from tuner.core.checks import option_problems
from tuner.core.corpus import Corpus, Query
from tuner.core.errors import InputError, OutageError, Problem, TunerError, refuse
from tuner.core.json_text import text_digest
from tuner.core.ledger import Tell, teller
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
from tuner.retrieval.adapters.http.connection import NotThereError, Service, connect
from tuner.retrieval.adapters.http.headers import read_headers, url_problems, without_secrets
from tuner.retrieval.adapters.http.index import (
    IndexRequest,
    index_problems,
    params_of,
)
from tuner.retrieval.adapters.mapping import (
    expression_problems,
    fill,
    named_params,
    search,
    sent_names,
    template_problems,
)
from tuner.retrieval.adapters.own_index import made_once, place_of
from tuner.retrieval.adapters.waiting import INDEX, declares_index, index_knobs, without_places
from tuner.retrieval.knobs import Knob, knob_params, space_knobs

RESULTS = "results"


@dataclass(frozen=True)
class Http:
    """Answers with an HTTP service; made by ``Http.build``.

    Every text in ``request`` is a JMESPath expression over ``{id, query, params}``, or over
    ``{queries: [{id, query}], params}`` where requests hold several queries; ``response`` is one
    over the decoded response, and finds what ``read_answer`` reads, or one such answer a query.

    ``index`` is the name of the index that is asked, and ``kept`` the folder where that is kept;
    ``index_params`` are what it was built with. Its name stands in requests as ``index``, in the
    URL as ``{index}``.
    """

    waits: ClassVar[bool] = True
    takes_knobs: ClassVar[bool] = True
    declare_knobs = declares_index(params_of)

    service: Service
    request: str = field(repr=False)  # as JSON: a frozen record holds no mapping
    response: str
    batch_size: int
    concurrency: int
    knobs: tuple[Knob, ...]
    fingerprint: str
    known: Passages = field(repr=False)
    index: str | int | None = None
    index_params: Params = field(default_factory=dict)
    kept: Path | None = field(default=None, repr=False)
    asking: IndexRequest | None = field(default=None, repr=False)

    @classmethod
    def build(
        cls,
        corpus: Corpus,
        *,
        url: Annotated[str, "the address at which the service answers"],
        index: Annotated[
            Mapping[str, Any] | None,
            "the request that has the service build an index: url, method, body, name and poll",
        ] = None,
        cache_dir: Path | None = None,
        index_params: Params | None = None,
        index_timeout_s: float | None = None,
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
        """Check how the service is asked; nothing is sent, unless an index is to be built.

        ``concurrency`` (requests at once) and ``requests_per_second`` hold for all threads of a
        process together; each worker process has its own. ``retry_wait_s`` is the wait before the
        first retry, which doubles with each further one. ``index_params`` are the parameters of the
        index; those left out take the values of the baseline. ``cache_dir`` keeps its name.

        Raises:
            InputError: everything that is wrong with the options; secrets are not repeated.
            OutageError: an index is to be built, and the service does not answer.
            TunerError: the index cannot be built.
        """
        names_sent = sent_names(batch_size, has_index=index is not None)
        if request is None:
            request = {name: name for name in names_sent}
        found, problems = read_headers({} if headers is None else headers)
        problems += url_problems(without_places(url) if index is not None else url)
        problems += template_problems(request, names_sent, ("request",))
        problems += [] if index is None else index_problems(index)
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
        shaping = index_knobs(params_of(index), space, baseline)
        of_index = {knob.name for knob in shaping}
        found_knobs = space_knobs(space, baseline, names=names)
        knobs = tuple(knob for knob in found_knobs if knob.name not in of_index)
        known = {knob.name for knob in (*knobs, *shaping)}
        missing = [
            Problem(f"params.{name} is neither in the space nor in the baseline", key=(section,))
            for section, named in (("request", names or ()), (INDEX, params_of(index)))
            for name in named
            if name not in known
        ]
        if missing and space is not None:
            raise InputError(problems=missing)
        template = json.dumps(request)
        told = [] if index is None else [json.dumps(index, sort_keys=True)]
        built = cls(
            service,
            template,
            response,
            int(batch_size),
            int(concurrency),
            knobs,
            text_digest(json.dumps([corpus.fingerprint, url, template, response, *told])),
            passage_tokens(corpus),
        )
        if index is None:
            return built
        params = knob_params(index_params or {}, shaping)
        if cache_dir is None:
            raise InputError("give a `cache_dir` to keep the index's name in", key=(INDEX,))
        asking = IndexRequest.read(index, service)
        folder = place_of(cache_dir, "http", told[0], corpus, params)
        kept = Path(cache_dir) if params else folder
        name = made_once(
            folder,
            told[0],
            lambda: json.dumps(asking.built(params, index_timeout_s)),
            lambda name: asking.is_there(json.loads(name), params),
        )
        named = json.loads(name)
        return replace(built, index=named, index_params=params, kept=kept, asking=asking)

    @property
    def tells_each_query(self) -> bool:
        """Say that it tells of each query, tries that failed included."""
        return True

    @property
    def queries_at_once(self) -> int:
        """Return how many queries are in the requests that may run at once."""
        return self.concurrency * self.batch_size

    def is_there(self) -> bool:
        """Say whether the service still has the index, as far as it tells."""
        if self.asking is None or self.index is None:
            return True
        return self.asking.is_there(self.index, self.index_params)

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
        tell = teller()

        with collected(queries, self.known) as collection:

            async def ask(start: int, batch: Sequence[Query]) -> None:
                found, seconds = await self._ask(template, batch, filled, tell)
                tried_again.append(seconds)
                collection.take(found, start)

            calls = [partial(ask, *each) for each in zip(starts, batches, strict=True)]
            run_concurrently(calls, limit=self.concurrency, shared_by=self.service.url)
        in_order = [collection.answers[row] for row in range(len(queries))]
        seconds = {"call": time.perf_counter() - begin}
        if any(tried_again):
            seconds[TRIED_AGAIN] = sum(tried_again)
        return rankings_of(queries, in_order, self.known, seconds)

    async def _ask(
        self, template: Any, batch: Sequence[Query], params: Params, tell: Tell
    ) -> tuple[list[Answer], float]:
        asked: list[Mapping[str, Any]] = [{"id": query.id, "query": query.text} for query in batch]
        first = batch[0]
        where = f"query {first.id!r}"
        params = self._sent(template, params)
        index = {} if self.index is None else {INDEX: self.index}
        if self.batch_size > 1:
            where = f"queries {first.id!r} to {batch[-1].id!r}"
            values: Mapping[str, Any] = {"queries": asked, "params": params, **index}
        else:
            values = {**asked[0], "params": params, **index}
        try:
            body = fill(template, values)
            response, tried_again_s = await connect(self.service).send(
                body, index, lambda: tell(len(batch))
            )
            found = search(self.response, response)
            if self.batch_size == 1:
                return [read_answer(found, self.known)], tried_again_s
            return self._read_batch(batch, found), tried_again_s
        except TunerError as error:
            lost = isinstance(error, NotThereError) and self.kept is not None
            hint = f"; if the index {self.index!r} is lost, delete {self.kept}" if lost else ""
            reason = without_secrets(f"{where}: {error}{hint}", self.service.secrets)
            kind = OutageError if isinstance(error, OutageError) else TunerError
            raise kind(reason) from None  # what httpx raises holds the headers

    def _sent(self, template: Any, params: Params) -> Params:
        """Return the parameters that a request can name; sent whole, they are those of queries."""
        return params if named_params(template) is None else {**self.index_params, **params}

    def _read_batch(self, batch: Sequence[Query], found: Any) -> list[Answer]:
        answers = found if isinstance(found, list) else [found]
        lists = [one for one in answers if isinstance(one, list | dict)]
        if len(answers) != len(batch) or len(lists) != len(batch):
            raise TunerError(
                f"{self.response!r} finds {shown(found)} for {len(batch)} queries; one list a "
                "query is needed (hits[*].id keeps the lists, hits[].id makes one of them)"
            )
        return [read_answer(one, self.known) for one in lists]
