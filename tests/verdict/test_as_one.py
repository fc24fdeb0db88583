"""Queries that depend on each other count as one."""

from __future__ import annotations

import numpy as np
import pytest

from tuner.stats import compare_paired
from tuner.verdict.as_one import as_one, gains_as_one, totals
from tuner.verdict.by_judge import ByJudge
from tuner.verdict.few_queries import decide_without_holdout
from tuner.verdict.measured import Measured
from tuner.verdict.verdict import Guardrail, decide

COPIES = 3


def copied(values, copies=COPIES):
    return np.tile(values, copies)


def of_copies(queries, copies=COPIES):
    return np.tile(np.arange(queries), copies)


def pair(differences, **metrics):
    base = np.full(len(differences), 0.5)
    return (
        Measured({"x": 1}, base + differences, {name: one[0] for name, one in metrics.items()}),
        Measured({"x": 0}, base, {name: one[1] for name, one in metrics.items()}),
    )


def test_a_copied_set_says_what_the_set_itself_says():
    gain = np.random.default_rng(3).normal(0.02, 0.1, size=60)
    once = decide(*pair(gain))
    thrice = decide(*pair(copied(gain)))
    as_ones = decide(*pair(copied(gain)), together=of_copies(60))
    assert (once.outcome, thrice.outcome, as_ones.outcome) == (
        "not enough queries",
        "deploy",
        "not enough queries",
    )
    assert as_ones.comparison.n == 60
    assert as_ones.comparison.interval == pytest.approx(once.comparison.interval)
    assert as_ones.comparison.p_value == pytest.approx(once.comparison.p_value)
    assert (
        "(Of 180 held-out queries, those with the same text or of one group count as one: 60"
        in (as_ones.sentence)
    )
    assert "count as one" not in once.sentence


def test_where_every_query_stands_alone_nothing_changes():
    gain = np.random.default_rng(3).normal(0.02, 0.1, size=60)
    assert decide(*pair(gain), together=np.arange(60)) == decide(*pair(gain))


def test_sets_of_several_sizes_keep_the_mean_and_have_the_clusters_error():
    random = np.random.default_rng(0)
    sizes = random.integers(1, 6, size=40)
    together = np.repeat(np.arange(40), sizes)
    values = np.repeat(random.normal(size=40), sizes)
    (found,), first = totals([values], together)
    assert found.mean() == pytest.approx(values.mean())
    assert found.size == 40
    assert together[first].tolist() == list(range(40))
    # A sum of 40 independent totals: var(mean) = 40 var(total) / N^2.
    sums = np.bincount(together, weights=values)
    assert found.std(ddof=1) / 40**0.5 == pytest.approx(
        (40 * sums.var(ddof=1)) ** 0.5 / sizes.sum()
    )


def test_what_is_undefined_for_one_side_counts_for_none():
    values = [np.array([1.0, np.nan, 3.0, 5.0]), np.array([1.0, 1.0, 1.0, np.nan])]
    (first, second), _ = totals(values, np.array([0, 0, 2, 3]))
    # Queries 0 and 2 are left, in sets of their own.
    np.testing.assert_array_equal(first, [1.0, 3.0, np.nan])
    np.testing.assert_array_equal(second, [1.0, 1.0, np.nan])


def test_strata_have_means_of_their_own():
    values, together = np.array([1.0, 1.0, 4.0, 7.0]), np.array([0, 0, 2, 0])
    (found,), first = totals([values], together, np.array([0, 0, 0, 1]))
    # Stratum 0: two sets of three queries, 2 * 2/3 and 4 * 2/3, of mean 2; stratum 1: 7.
    np.testing.assert_allclose(found, [4 / 3, 8 / 3, 7.0])
    assert first.tolist() == [0, 2, 3]


def test_guard_rails_count_copies_as_one_too():
    random = np.random.default_rng(1)
    gain = random.normal(0.1, 0.05, size=40)
    recall = 0.5 + random.normal(0.0, 0.04, size=(2, 40))
    guard = [Guardrail("recall@10", max_decrease=0.02)]
    once = decide(*pair(gain, **{"recall@10": recall}), guardrails=guard)
    both = pair(copied(gain), **{"recall@10": [copied(one) for one in recall]})
    copies = decide(*both, guardrails=guard, together=of_copies(40))
    alone = decide(*both, guardrails=guard)
    assert once.guardrails["recall@10"].p_value == pytest.approx(
        copies.guardrails["recall@10"].p_value
    )
    assert alone.guardrails["recall@10"].p_value < copies.guardrails["recall@10"].p_value / 2.0


def test_query_types_count_copies_as_one_too():
    gain = np.random.default_rng(2).normal(0.1, 0.2, size=40)
    types = ["a"] * 20 + ["b"] * 20
    once = decide(*pair(gain), query_types=types)
    copies = decide(*pair(copied(gain)), query_types=types * COPIES, together=of_copies(40))
    for one, other in zip(once.by_type, copies.by_type, strict=True):
        assert one.group == other.group
        assert one.comparison.p_value == pytest.approx(other.comparison.p_value)


def test_a_judges_queries_stay_apart_from_peoples():
    random = np.random.default_rng(4)
    gain = random.normal(0.05, 0.2, size=120)
    judged = gain + random.normal(0.0, 0.05, size=120)
    is_people = np.arange(120) < 40

    def both(gain, judged, is_people):
        return (
            Measured({"x": 1}, 0.5 + gain, judge=ByJudge(is_people, 0.5 + judged)),
            Measured({"x": 0}, 0.0 * gain + 0.5, judge=ByJudge(is_people, 0.0 * gain + 0.5)),
        )

    once = decide(*both(gain, judged, is_people), draws=0)
    copies = decide(
        *both(copied(gain), copied(judged), copied(is_people)), together=of_copies(120), draws=0
    )
    assert once.comparison.judge is not None
    assert copies.comparison.interval == pytest.approx(once.comparison.interval)
    assert copies.comparison.judge.queries == 80


def test_latencies_stay_as_they_are():
    both = pair(np.zeros(4), latency_p95_ms=[np.ones(7), np.ones(7)])
    found, _ = as_one(*both, np.array([0, 0, 2, 2]))
    assert found.composite.size == 2
    assert found.metrics["latency_p95_ms"].size == 7


def test_without_a_holdout_copies_count_as_one(make_trials):
    random = np.random.default_rng(5)
    gains = np.vstack([np.zeros(12), random.normal(0.02, 0.06, size=(5, 12))])
    winner = int(gains.mean(axis=1).argmax())
    trials = make_trials(gains)

    def found(gains, together=None):
        both = (
            Measured(trials[winner].params, 0.5 + gains[winner]),
            Measured(trials[0].params, 0.5 + gains[0]),
        )
        return decide_without_holdout(*both, gains, trials, together=together, draws=0)

    copies = np.tile(gains, COPIES)
    alone, as_ones = found(copies), found(copies, of_copies(12))
    assert as_ones.corrected.queries == 12
    assert alone.corrected.queries == 36
    assert np.ptp(as_ones.corrected.interval) > np.ptp(alone.corrected.interval)
    assert "count as one: 12 in all" in as_ones.sentence
    few = found(copies[:, :24], of_copies(8, COPIES))
    assert few.outcome == "not enough queries"
    assert "with only 8 queries" in few.sentence


def test_a_trial_without_values_keeps_none():
    gains = np.array([[0.0, 0.0, 0.0], [np.nan] * 3, [0.1, 0.3, 0.2]])
    found = gains_as_one(gains, np.array([0, 0, 2]))
    assert np.isnan(found[1]).all()
    # .1 + .3 of three queries in two sets: .4 * 2/3
    np.testing.assert_allclose(found[2], [0.4 * 2 / 3, 0.2 * 2 / 3])


@pytest.fixture
def make_trials():
    from tuner.core.trial import Trial, TrialState

    def make(gains):
        return [
            Trial(
                number=row,
                arm="baseline" if row == 0 else "tpe",
                params={"x": row},
                state=TrialState.FINISHED,
                objective=float(0.5 + one.mean()),
            )
            for row, one in enumerate(gains)
        ]

    return make


def test_a_comparison_of_sets_is_the_ordinary_one_of_their_totals():
    gain = np.array([0.1, 0.3, 0.2, -0.1, 0.4])
    found = decide(*pair(gain), together=np.array([0, 0, 2, 3, 4]), draws=0).comparison
    sets = np.array([0.4, 0.2, -0.1, 0.4]) * 4 / 5
    expected = compare_paired(sets, 0.0 * sets, seed=0, permutations=0, resamples=0)
    assert found.p_value == pytest.approx(expected.p_value)
    assert found.mean_difference == pytest.approx(gain.mean())
