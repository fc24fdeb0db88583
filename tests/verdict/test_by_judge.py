"""Verdicts by people's labels of some queries and a judge's of all."""

from __future__ import annotations

import numpy as np
import pytest

from tuner.verdict.by_judge import ByJudge
from tuner.verdict.measured import Measured
from tuner.verdict.ruling import THE_WINNER, read_record
from tuner.verdict.verdict import Guardrail, decide
from tuner.verdict.words import retold

PEOPLE, OTHERS = 60, 540


def sides(gain, *, favour=0.0, price=None, seed=0):
    """Return winner and baseline: differences of sd .2, a judge that errs by .05 and a favour."""
    random = np.random.default_rng(seed)
    n = PEOPLE + OTHERS
    true = gain + 0.2 * random.standard_normal(n)
    judged = true + 0.05 * random.standard_normal(n) + favour
    is_people = np.arange(n) < PEOPLE
    base = np.full(n, 0.5)

    def measured(name, people, judge):
        values = np.where(is_people, people, judge)
        objective = None if price is None else values - price[name]
        by = ByJudge(
            is_people,
            judge,
            None if price is None else judge - price[name],
            {"mrr": judge},
        )
        metrics = {"mrr": values, "latency_ms": np.full(n, 10.0)}
        costs = {} if price is None else {"context_tokens": 1000.0 * price[name]}
        return Measured({"name": name}, values, metrics, objective, costs, by)

    return measured("new", 0.5 + true, 0.5 + judged), measured("old", base, base)


def alone(side):
    return Measured(side.params, side.composite[:PEOPLE])


def test_a_gain_that_people_alone_do_not_show_is_deployed():
    winner, baseline = sides(0.045, seed=1)
    both = decide(winner, baseline, draws=0)
    assert decide(alone(winner), alone(baseline), draws=0).outcome == "not enough queries"
    assert both.outcome == "deploy"
    assert "on 60 held-out queries that people graded (95 % interval" in both.sentence
    assert "(A judge graded 540 other queries, which count by 0.8" in both.sentence
    worth = both.comparison.judge.worth
    assert f"the interval is as wide as that of {worth} queries of people's.)" in both.sentence
    assert worth > 150


def test_a_judge_that_favours_the_winner_deploys_nothing():
    winner, baseline = sides(0.0, favour=0.2)
    found = decide(winner, baseline, draws=0)
    assert found.outcome != "deploy"
    assert abs(found.comparison.mean_difference) < 0.05


def test_a_guard_rail_of_grades_is_tested_by_both_and_one_of_time_on_all_queries():
    winner, baseline = sides(0.045)
    rails = [
        Guardrail("mrr", max_decrease=0.02),
        Guardrail("latency_ms", max_increase=0.1, is_relative=True),
    ]
    found = decide(winner, baseline, guardrails=rails, draws=0)
    assert found.guardrails["mrr"].n == PEOPLE
    assert found.guardrails["mrr"].is_non_inferior
    assert found.guardrails["mrr"].loss == pytest.approx(-found.comparison.mean_difference)
    assert found.guardrails["latency_ms"].n == PEOPLE + OTHERS


def test_a_price_is_paid_by_both():
    winner, baseline = sides(0.0, price={"new": 0.0, "old": 0.1})
    found = decide(winner, baseline, draws=0)
    # What is paid for is known of every query: the composite's difference and .1.
    gain = found.price.objective.mean_difference
    assert gain == pytest.approx(found.comparison.mean_difference + 0.1)
    assert found.price.objective.judge is not None


def test_types_of_queries_are_compared_by_peoples_grades_alone():
    winner, baseline = sides(0.1)
    types = ["a", "b"] * ((PEOPLE + OTHERS) // 2)
    found = decide(winner, baseline, query_types=types, draws=0)
    assert [one.comparison.n for one in found.by_type] == [PEOPLE // 2, PEOPLE // 2]


def test_the_record_tells_what_the_judge_added_and_can_be_retold():
    winner, baseline = sides(0.045)
    found = decide(winner, baseline, draws=0)
    record = found.to_record()
    assert record["comparison"]["judge"]["queries"] == OTHERS
    assert read_record(record)
    assert retold(record, THE_WINNER) == found.sentence


def test_queries_without_a_value_are_counted_among_peoples():
    winner, baseline = sides(0.045)
    winner.composite[:3] = np.nan
    found = decide(winner, baseline, draws=0)
    assert found.comparison.n == PEOPLE - 3
    assert "3 of the 60 queries lack a metric" in found.sentence
