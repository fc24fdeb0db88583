"""The retriever that asks a Python function, and the system whose function returns metrics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

from tuner.core.corpus import Corpus, Query
from tuner.core.errors import InputError, OutageError, TunerError, one_line
from tuner.core.json_text import digest_of
from tuner.core.ledger import teller
from tuner.core.outages import is_outage
from tuner.core.rankings import Rankings
from tuner.core.space import SearchSpace
from tuner.core.trial import Params
from tuner.retrieval.adapters.answers import (
    Answer,
    Passages,
    collected,
    passage_tokens,
    rankings_of,
    read_answer,
    with_tokens,
)
from tuner.retrieval.adapters.function.index import OwnIndex, own_index
from tuner.retrieval.adapters.function.loading import KEY, SearchPath
from tuner.retrieval.adapters.function.signature import INDEX, Signature
from tuner.retrieval.adapters.function.target import ASYNC_TIMEOUT_S, Target, within
from tuner.retrieval.knobs import Knob, knob_params


@dataclass(frozen=True)
class Measure:
    """A function of the user's that returns metrics itself."""

    target: Target
    knobs: tuple[Knob, ...]
    fingerprint: str

    def measure(self, params: Params) -> Any:
        """Call the function.

        Raises:
            InputError: a parameter that the function does not have.
        """
        arguments = self.target.signature().arguments(knob_params(params, self.knobs))
        if self.target.signature().is_async:
            return self.target.run([partial(self.target.object, **arguments)])[0]
        return self.target.object(**arguments)


@dataclass(frozen=True)
class Function:
    """Answers with a function of yours; made by ``Function.build``.

    The function answers one query (its text), or an object's ``retrieve(queries, params)`` answers
    a batch of ``Query`` records. Either may be async, and returns what ``read_answer`` reads, or
    Rankings for a batch. An object's ``search(index, query, …)`` answers one query from what its
    ``build(documents, …)`` made.

    ``index_params`` are those of the index, which is ``index`` where the object built one.
    """

    takes_knobs: ClassVar[bool] = True

    target: Target
    knobs: tuple[Knob, ...]
    fingerprint: str
    known: Passages = field(repr=False)
    index_params: Params = field(default_factory=dict)
    index: OwnIndex | None = None

    @classmethod
    def build(
        cls,
        corpus: Corpus,
        *,
        function: Annotated[str, "your function, as module:function"],
        index: Annotated[
            Sequence[str] | None,
            "the parameters of an index that your function keeps for itself; an object's are "
            "those of its `build`",
        ] = None,
        cache_dir: Path | None = None,
        index_params: Params | None = None,
        space: SearchSpace | None = None,
        baseline: Params | None = None,
        search_path: SearchPath = None,
        concurrency: Annotated[
            int | None,
            "how many calls each process makes at once; left out: 8 of an async function, "
            "else 1, without threads",
        ] = None,
        timeout_s: Annotated[
            float | None, "seconds for one query; left out: 60 of an async function, else no limit"
        ] = None,
    ) -> Function:
        """Import the function and look at what it takes; let an object build its index.

        ``index_params`` are the parameters of the index; those left out take the values of the
        baseline, else their defaults. The index lies in ``cache_dir``.
        ``search_path`` are the folders to find the module in. ``concurrency`` is how many calls
        run at once in a process: by default 8 of an async function, 1 of another. ``timeout_s`` is
        for one query: by default 60 of an async function, none of another. A function that is not
        async is called in threads where one of them is given, so it must allow that; a call that
        takes longer cannot be stopped, and is left behind.

        Raises:
            InputError: it cannot be imported, returns metrics instead of documents, or builds an
                index that cannot be kept.
            TunerError: its index cannot be built.
        """
        target = Target.read(function, search_path, concurrency, timeout_s, index)
        if not target.answers_batches and not target.signature().takes_query:
            message = (
                f"{function!r} takes no `query`, so it returns metrics and sees no data set: "
                "leave `dataset:` out, or write f(query, params)"
            )
            raise InputError(message, key=KEY)
        knobs = target.knobs(space, baseline)
        shaping = [knob for knob in knobs if knob.stage == "index"]
        params = knob_params(index_params or {}, shaping)
        if target.builds and cache_dir is None:
            raise InputError(f"{function!r} builds an index: give a `cache_dir` to keep it in")
        return cls(
            target,
            tuple(knob for knob in knobs if knob.stage == "query"),
            digest_of([target.fingerprint(), corpus.fingerprint, *target.index]),
            passage_tokens(corpus),
            params,
            own_index(target, corpus, cache_dir, params) if target.builds and cache_dir else None,
        )

    @classmethod
    def build_measure(
        cls,
        *,
        function: str,
        space: SearchSpace | None = None,
        baseline: Params | None = None,
        search_path: Sequence[str] | None = None,
    ) -> Measure:
        """Import a function that returns metrics; options as in ``build``.

        Raises:
            InputError: it cannot be imported, or answers queries, of which there are none.
        """
        target = Target.read(function, search_path)
        if target.answers_batches or target.signature().takes_query:
            message = f"{function!r} answers queries: add `dataset:`, where they are"
            raise InputError(message, key=KEY)
        return Measure(target, target.knobs(space, baseline), target.fingerprint())

    @classmethod
    def resolve_options(cls, options: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Return the options with an absolute search path: the folder, then the working one."""
        given = options.get("search_path")
        if given is None:
            given = [str(folder), "."]
        if not isinstance(given, list):
            return dict(options)
        folders = [str(Path(str(part)).expanduser().resolve()) for part in given]
        return {**options, "search_path": list(dict.fromkeys(folders))}

    @classmethod
    def declare_knobs(
        cls,
        *,
        function: str,
        search_path: Sequence[str] | None = None,
        index: Sequence[str] | None = None,
        space: SearchSpace | None = None,
        baseline: Params | None = None,
    ) -> tuple[Knob, ...]:
        """Return the knobs that the function has by itself, and those that a space names."""
        target = Target.read(function, search_path, index=index)
        if space is None and baseline is None:
            return target.suggested()
        return target.knobs(space, baseline)

    @property
    def queries_at_once(self) -> int | None:
        """Return how many calls run at once; None for an object, which answers batches."""
        return None if self.target.answers_batches else self.target.calls_at_once

    @property
    def tells_each_query(self) -> bool:
        """Say whether it tells of each query: an object answers a batch in its own way."""
        return not self.target.answers_batches

    def prepare(self, queries: Sequence[Query]) -> None:
        """Let an object that has a ``prepare`` of its own prepare the queries.

        One that keeps an index for itself is asked the first query, and so builds it.
        """
        prepare = getattr(self.target.object, "prepare", None)
        if callable(prepare) and self.target.answers_batches:
            prepare(queries)
        if self.index_params and self.index is None:
            self.retrieve(queries[:1], {})

    def retrieve(self, queries: Sequence[Query], params: Params) -> Rankings:
        """Ask the function.

        Raises:
            InputError: a parameter that it does not have, or a value of the wrong kind.
            TunerError: it raised, or returned something else than documents of the data set.
        """
        filled = knob_params(params, self.knobs)
        begin = time.perf_counter()
        if self.target.answers_batches:
            raw = self._ask_batch(queries, filled)
            if isinstance(raw, Rankings):
                return with_tokens(raw, self.known)
            answers = [self._read(query, one) for query, one in zip(queries, raw, strict=True)]
        else:
            answers = self._ask_each(queries, filled)
        seconds = {"call": time.perf_counter() - begin}
        return rankings_of(queries, answers, self.known, seconds)

    def _ask_batch(self, queries: Sequence[Query], params: Params) -> Any:
        try:
            answer = self.target.object.retrieve(queries, {**self.index_params, **params})
            if asyncio.iscoroutine(answer):
                coroutine = answer
                (answer,) = self.target.run([lambda: coroutine])
        except TunerError:
            raise
        except Exception as error:
            reason = one_line(error)
            failed = OutageError if is_outage(error) else TunerError
            raise failed(f"{self.target.name}.retrieve raised {reason}") from error
        if isinstance(answer, Rankings):
            return answer
        if not isinstance(answer, list | tuple):
            kind = type(answer).__name__
            raise TunerError(f"{self.target.name}.retrieve returned {kind}, not one list a query")
        if len(answer) != len(queries):
            raise TunerError(
                f"{self.target.name}.retrieve returned {len(answer)} answers to "
                f"{len(queries)} queries"
            )
        return answer

    def _ask_each(self, queries: Sequence[Query], params: Params) -> list[Answer]:
        target, signature = self.target, self.target.signature()
        given = self._given(signature)
        known = params if self.index else {**self.index_params, **params}
        calls = [
            partial(target.called, **given, query=query.text, **signature.arguments(known))
            for query in queries
        ]
        rows = range(len(queries))
        tell = teller()
        with collected(queries, self.known) as collection:

            async def awaited(row: int) -> None:
                tell(1)
                try:
                    raw = await within(target.timeout_s or ASYNC_TIMEOUT_S, calls[row])
                except Exception as error:
                    raise _with_query(queries[row], error) from error
                collection.take([self._read(queries[row], raw)], row)

            def called(row: int) -> None:
                tell(1)
                try:
                    raw = calls[row]()
                except (Exception, SystemExit) as error:  # its sys.exit() is not to end ours
                    raise _with_query(queries[row], error) from error
                collection.take([self._read(queries[row], raw)], row)

            if signature.is_async:
                target.run([partial(awaited, row) for row in rows])
            else:
                names = [f"query {query.id!r}" for query in queries]
                target.call([partial(called, row) for row in rows], names)
        return [collection.answers[row] for row in rows]

    def _given(self, signature: Signature) -> dict[str, Any]:
        """Return what an object's ``search`` is given besides the query and parameters of its own.

        Those are the index, and what of the index's parameters it names too.
        """
        if self.index is None:
            return {}
        named = {n: v for n, v in self.index_params.items() if n in signature.spelled}
        return {INDEX: self.index.opened(), **named}

    def _read(self, query: Query, raw: Any) -> Answer:
        try:
            return read_answer(raw, self.known)
        except TunerError as error:
            raise TunerError(f"query {query.id!r}: {error}") from error


def _with_query(query: Query, error: BaseException) -> TunerError:
    reason = str(error) if isinstance(error, TunerError) else one_line(error)
    kind = OutageError if is_outage(error) else TunerError
    return kind(f"query {query.id!r}: {reason}")
