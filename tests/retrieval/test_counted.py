"""What a retriever is asked is counted once: by each query where it tells, else by batches."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from tuner.core.corpus import Query
from tuner.core.errors import TunerError
from tuner.core.ledger import Asked, Ledger, teller
from tuner.core.rankings import Rankings
from tuner.core.trial import Params
from tuner.retrieval.adapters.answers import Answer, collected, rankings_of
from tuner.retrieval.adapters.command import Command
from tuner.retrieval.adapters.function import Function
from tuner.retrieval.adapters.http import Http
from tuner.retrieval.wrapped.counted import counted

QUERIES = [Query(f"q{n}", f"text {n}") for n in range(4)]


class Batches:
    knobs = ()
    fingerprint = "one"
    fails_at: int | None = None

    def prepare(self, queries: Sequence[Query]) -> None:
        """Do nothing."""

    def retrieve(self, queries: Sequence[Query], params: Params) -> Rankings:
        ids = [query.id for query in queries]
        return Rankings.from_ids(ids, [["a"] for _ in ids])


class Tells(Batches):
    tells_each_query = True

    def retrieve(self, queries: Sequence[Query], params: Params) -> Rankings:
        tell = teller()
        for row, query in enumerate(queries):
            tell(1)
            if row == self.fails_at:
                error = TunerError(f"{query.id} failed")
                error.answered = super().retrieve(queries[:row], params)
                raise error
        return super().retrieve(queries, params)


@pytest.mark.parametrize("kind", [Batches, Tells])
def test_a_batch_is_counted_once(kind: type[Batches]) -> None:
    ledger = Ledger()
    counted(kind(), "holdout", ledger).retrieve(QUERIES, {})
    assert ledger.by_purpose() == {"holdout": Asked(4, 4)}


def test_what_was_sent_before_a_failure_is_counted_and_what_was_not_is_not() -> None:
    ledger, retriever = Ledger(), Tells()
    retriever.fails_at = 2
    with pytest.raises(TunerError):
        counted(retriever, "holdout", ledger).retrieve(QUERIES, {})
    assert ledger.by_purpose() == {"holdout": Asked(sent=3, answered=2)}


class Collects(Tells):
    """Asks query by query, as functions, services and commands are asked."""

    def retrieve(self, queries: Sequence[Query], params: Params) -> Rankings:
        tell = teller()
        with collected(queries, None) as collection:
            for row, query in enumerate(queries):
                tell(1)
                if row == self.fails_at:
                    raise TunerError(f"{query.id} failed")
                collection.take([Answer(("a",), context_tokens=7.0)], row)
        found = [collection.answers[row] for row in range(len(queries))]
        return rankings_of(queries, found, None, {})


@pytest.mark.parametrize("quick_s", [0.0, 1e9], ids=["as they come", "together"])
@pytest.mark.parametrize(("fails_at", "asked"), [(2, Asked(3, 2)), (None, Asked(4, 4))])
def test_answers_that_are_told_of_as_they_come_are_counted_once(
    monkeypatch: pytest.MonkeyPatch, quick_s: float, fails_at: int | None, asked: Asked
) -> None:
    monkeypatch.setattr("tuner.retrieval.adapters.answers.QUICK_S", quick_s)
    ledger, retriever = Ledger(), Collects()
    retriever.fails_at = fails_at
    with pytest.raises(TunerError) if fails_at else nullcontext():
        counted(retriever, "holdout", ledger).retrieve(QUERIES, {})
    assert ledger.by_purpose() == {"holdout": replace(asked, tokens=7.0 * asked.answered)}


def test_a_process_that_is_killed_has_counted_the_answers_it_had(tmp_path: Path) -> None:
    class Killed(Collects):
        def retrieve(self, queries: Sequence[Query], params: Params) -> Rankings:
            with collected(queries, None) as collection:
                collection.take([Answer(("a",), context_tokens=7.0)], 0)
                assert Ledger(tmp_path).total == Asked(answered=1, tokens=7.0)
            return super().retrieve(queries, params)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tuner.retrieval.adapters.answers.QUICK_S", 0.0)
        counted(Killed(), "holdout", Ledger(tmp_path)).retrieve(QUERIES, {})


@pytest.mark.parametrize("kind", [Command, Function, Http])
def test_systems_that_are_asked_query_by_query_tell_of_each(kind: type) -> None:
    assert hasattr(kind, "tells_each_query")
