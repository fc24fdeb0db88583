"""One load after another: each warmed up, all queries asked in an order of the seed's."""

from __future__ import annotations

import pytest

from tuner.bench.levels import asking, measured
from tuner.core.corpus import Query
from tuner.core.errors import TunerError
from tuner.core.rankings import Rankings

QUERIES = [Query(f"q{number}", f"question {number}") for number in range(8)]


class Noting:
    """Answers nothing, and notes what it is asked."""

    def __init__(self):
        self.asked = []

    def retrieve(self, queries, params):
        self.asked += [query.id for query in queries]
        return Rankings.from_ids([query.id for query in queries], [[]] * len(queries))


def test_all_queries_are_asked_in_an_order_of_the_seed_and_then_anew():
    system, same, other = Noting(), Noting(), Noting()
    for retriever, seed in ((system, 1), (same, 1), (other, 2)):
        ask = asking(retriever, {}, QUERIES, seed=seed)
        for number in range(9):
            ask(number)
    assert sorted(system.asked[:8]) == [query.id for query in QUERIES]
    assert system.asked[8] == system.asked[0]
    assert system.asked == same.asked != other.asked
    assert system.asked[:8] != [query.id for query in QUERIES]


def test_each_load_is_a_level_and_warms_up_first():
    calls = []
    levels = list(
        measured(
            lambda number: calls.append(number) or {},
            [("closed", 1), ("open", 50.0)],
            duration_s=0.1,
            warmup_s=0.05,
            seed=3,
            say=pytest.fail,
        )
    )
    assert [(level.kind, level.at) for level in levels] == [("closed", 1), ("open", 50.0)]
    measured_calls = sum(level.load.latencies.summary().count for level in levels)
    assert len(calls) > measured_calls > 0


def test_where_nothing_is_answered_at_first_it_ends():
    def ask(number):
        raise ValueError("no index")

    loads = measured(ask, [("closed", 1)], duration_s=0.1, warmup_s=0.05, seed=3, say=print)
    with pytest.raises(TunerError, match="no query is answered: ValueError: no index"):
        next(loads)
