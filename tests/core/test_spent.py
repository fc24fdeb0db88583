"""What was spent is put together by what it was spent on: all of it, and nothing twice."""

from __future__ import annotations

from collections import Counter

import pytest

from tuner.core.calls import OF_TRIALS, PURPOSES, SPENT_ON
from tuner.core.ledger import Asked
from tuner.core.spent import Cost, spent_on


def test_every_purpose_is_spent_on_one_thing() -> None:
    spent = Counter(purpose for purposes in SPENT_ON.values() for purpose in purposes)
    assert set(spent) == {*PURPOSES, *OF_TRIALS}
    assert set(spent.values()) == {1}


def test_what_failed_costs_as_well_and_what_was_kept_does_not() -> None:
    by_purpose = {
        "trials": Asked(sent=30, answered=28, kept=5, tokens=14_000.0),
        "holdout": Asked(sent=4, answered=4, tokens=2_000.0),
    }
    baseline = Asked(sent=10, answered=10, tokens=5_000.0)
    cost = Cost(per_query=0.01, per_1000_tokens=0.1, per_index=2.0)
    spent = spent_on(by_purpose, baseline, cost=cost, indexes=3, index_money=6.0)
    money = {part.name: part.money for part in spent.parts}
    assert money == pytest.approx(
        {
            "baseline": 0.6,  # 10 * 0.01 + 5 * 0.1
            "search": 1.1,  # 20 * 0.01 + 9 * 0.1
            "held-out queries": 0.24,  # 4 * 0.01 + 2 * 0.1
            "3 indexes": 6.0,
        }
    )
    assert spent.money == pytest.approx(7.94)
    assert (spent.queries, spent.tokens, spent.kept) == (34, 16_000.0, 5)


def test_without_a_cost_no_money_is_told() -> None:
    spent = spent_on({"trials": Asked(10, 10)}, Asked(10, 10))
    assert [(part.name, part.money) for part in spent.parts] == [("baseline", None)]
    assert spent.money is None
