"""The rule that chooses the winner, and the same rule on many draws of the queries at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tuner.core.trial import Trial, TrialState
from tuner.stats import bootstrap_corrected
from tuner.verdict.few_queries import decide_without_holdout
from tuner.verdict.measured import Measured
from tuner.verdict.winner import choose_winner, winner_rule


def trials_of(values, tokens, *, baseline=0, infeasible=()):
    return [
        Trial(
            row,
            "baseline" if row == baseline else "tpe",
            {"n": row},
            TrialState.FINISHED,
            objective=float(mean),
            metrics={"context_tokens": float(token)},
            violation=float(row in infeasible),
        )
        for row, (mean, token) in enumerate(zip(values.mean(axis=1), tokens, strict=True))
    ]


@pytest.mark.parametrize("seed", range(8))
def test_the_rule_on_draws_is_the_rule_on_each_of_them(seed):
    random = np.random.default_rng(seed)
    queries, count = 12, 9
    # In steps of a quarter, with a common part: ties, and some as good as the best.
    common = random.integers(0, 3, queries) / 4.0
    values = common + random.integers(0, 2, (count, queries)) / 4.0
    values[5] = values[4]
    tokens = random.integers(1, 4, count) * 100.0
    for baseline, infeasible in ((0, ()), (0, (2, 3)), (None, ()), (0, (0,))):
        drawn = random.integers(0, queries, (40, queries))
        counts = np.stack([np.bincount(row, minlength=queries) for row in drawn]).astype(float)
        given = trials_of(values, tokens, baseline=baseline, infeasible=infeasible)
        expected = []
        for row in drawn:
            here = values[:, row]
            trials = trials_of(here, tokens, baseline=baseline, infeasible=infeasible)
            expected.append(choose_winner(trials, dict(enumerate(here))).number)
        assert winner_rule(given)(values, counts).tolist() == expected
        assert len(set(expected)) > 1  # the draws do not all choose the same


def test_the_corrected_gain_is_that_of_the_configuration_that_was_chosen():
    # Row 2 is the best by luck on one query, row 1 as good within a standard error and cheaper.
    queries = 20
    values = np.zeros((3, queries))
    values[1] = 0.10 + np.tile([0.02, -0.02], 10)
    values[2] = values[1]
    values[2, :2] += 0.5, -0.1
    trials = trials_of(values, [1_000.0, 100.0, 900.0])
    chosen = choose_winner(trials, dict(enumerate(values)))
    assert chosen.number == 1
    both = (Measured({"n": row}, values[row]) for row in (1, 0))
    verdict = decide_without_holdout(*both, values, trials)
    assert verdict.corrected.winner == 1
    assert verdict.corrected.naive == pytest.approx(0.10)  # and not the .12 of row 2
    assert verdict.outcome == "deploy"
    best = bootstrap_corrected(values, seed=0)
    assert (best.winner, best.naive) == (2, pytest.approx(0.12))
    assert verdict.corrected.estimate == pytest.approx(0.10, abs=0.005)


def test_where_a_draw_has_nothing_above_the_baseline_its_gain_is_none():
    values = np.array([[0.0] * 10, [0.3, -0.2] * 5])
    rule = winner_rule(trials_of(values, [1.0, 1.0]))
    losing = np.array([[0.0, 2.0] * 5, [2.0, 0.0] * 5])
    assert rule(values, losing).tolist() == [0, 1]


def test_of_those_as_good_the_cheapest_then_the_best_then_the_first_wins():
    def chosen(*rows):
        """Choose from (objective, tokens, latency) of trials that cannot be told from the best."""
        trials = [
            Trial(
                number,
                "tpe",
                {"n": number},
                TrialState.FINISHED,
                objective=objective,
                metrics={"context_tokens": tokens, "latency_p95_ms": latency},
            )
            for number, (objective, tokens, latency) in enumerate(rows)
        ]
        noise = np.tile([0.2, -0.2], 10)
        values = {t.number: t.objective + noise * (1 + t.number % 2) for t in trials}
        return choose_winner(trials, values).number

    assert chosen((0.72, 900.0, 1.0), (0.70, 500.0, 9.0), (0.71, 600.0, 1.0)) == 1
    assert chosen((0.70, 500.0, 3.0), (0.72, 500.0, 9.0)) == 1
    assert chosen((0.72, 500.0, 9.0), (0.70, 500.0, 3.0)) == 0
    assert chosen((0.72, 500.0, 9.0), (0.72, 500.0, 3.0)) == 0


@pytest.mark.parametrize("baseline", [None, 0])
def test_both_rules_take_what_differs_by_rounding_as_equal(baseline):
    values = np.full((3, 4), 0.5)
    trials = trials_of(values, [100.0] * 3, baseline=baseline)
    trials[2] = replace(trials[2], objective=0.5 + 2e-16)
    assert trials[2].objective > trials[0].objective  # in the last digit
    chosen = choose_winner(trials, {one.number: values[one.number] for one in trials})
    assert chosen.number == int(winner_rule(trials)(values, np.ones((1, 4)))[0]) == 0


@pytest.mark.parametrize("unknown", [{}, {"context_tokens": float("nan")}])
def test_what_costs_nobody_knows_is_not_cheap(unknown):
    values = np.full((3, 4), 0.5)
    values[0] = 0.0
    trials = trials_of(values, [10.0, 900.0, 0.0])
    trials[2] = replace(trials[2], metrics=unknown)
    chosen = choose_winner(trials, {one.number: values[one.number] for one in trials})
    assert chosen.number == int(winner_rule(trials)(values, np.ones((1, 4)))[0]) == 1
