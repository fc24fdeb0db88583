"""What a retriever is asked is counted once: by each query where it tells, else by batches."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tuner.core.corpus import Query
from tuner.core.errors import TunerError
from tuner.core.ledger import Asked, Ledger, teller
from tuner.core.rankings import Rankings
from tuner.core.trial import Params
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


@pytest.mark.parametrize("kind", [Command, Function, Http])
def test_systems_that_are_asked_query_by_query_tell_of_each(kind: type) -> None:
    assert hasattr(kind, "tells_each_query")
