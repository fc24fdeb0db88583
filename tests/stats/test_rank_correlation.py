"""How metrics go with a quality: rank correlations, explained variance, and their intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tuner.core.errors import InputError
from tuner.stats.rank_correlation import (
    by_cluster,
    correlate_ranks,
    explained_gain,
    resampled_interval,
    tau_b,
)

NAN = float("nan")
few = st.lists(st.integers(0, 3), min_size=4, max_size=4)


@given(first=few, second=few)
def test_tau_b_is_scipys(first, second):
    ours = tau_b(np.array(first, dtype=float), np.array(second, dtype=float))
    np.testing.assert_allclose(ours, stats.kendalltau(first, second).statistic)


@given(values=st.lists(st.tuples(few, few), min_size=1, max_size=4), factor=st.floats(0.1, 10))
def test_a_rank_correlation_is_symmetric_and_knows_no_scale(values, factor):
    first, second = (np.array(side, dtype=float).T for side in zip(*values, strict=True))
    taus = tau_b(first, second)
    np.testing.assert_allclose(taus, tau_b(second, first))
    np.testing.assert_allclose(taus, tau_b(factor * first + 1.0, second))
    np.testing.assert_allclose(taus, -tau_b(-first, second))
    assert (np.abs(taus[~np.isnan(taus)]) <= 1.0 + 1e-12).all()


def test_values_that_differ_by_rounding_are_tied():
    assert np.isnan(tau_b(np.array([0.1 + 0.2, 0.3]), np.array([0.0, 1.0])))


def test_queries_without_variation_are_told_apart():
    #         both vary  quality does not  metric does not  one lacks a value
    metric = np.array([[0.0, 0.0, 1.0, NAN], [1.0, 0.5, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    quality = np.array([[0.0, 1.0, 0.0, 1.0], [0.5, 1.0, 0.5, 0.0], [1.0, 1.0, 1.0, 1.0]])
    found = correlate_ranks(metric, quality, seed=0)
    # Of the 3 pairs two agree, and one is tied in the metric: 2 / sqrt(2 * 3) = .816.
    assert found.within == pytest.approx(2 / 6**0.5)
    assert (found.queries, found.constant_quality, found.constant_metric) == (1, 1, 1)
    assert found.undefined == 1
    assert found.within_interval is None  # of one query
    # Means 1/3, 5/6, 1 against 1/3, 2/3, 1.
    assert found.between == pytest.approx(1.0)


def test_what_is_explained_is_the_squared_correlation_within_queries():
    # Deviations from each query's mean: metric (-.5, .5), (-.5, .5); quality (-.5, .5), (-.1, .1).
    metric = np.array([[0.0, 0.5], [1.0, 1.5]])
    quality = np.array([[0.0, 7.0], [1.0, 7.2]])
    # Products 2 (.25 + .05) = .6; squares 1 and .5 + .02 = .52: .36 / .52
    assert correlate_ranks(metric, quality, seed=0).explained == pytest.approx(0.36 / 0.52)
    assert correlate_ranks(metric, -quality, seed=0).explained == 0.0


def test_an_interval_of_a_mean_is_about_students():
    values = np.random.default_rng(1).normal(size=12)
    low, high = resampled_interval(
        lambda counts: counts @ values / counts.sum(axis=1), np.arange(12), seed=0, resamples=20_000
    )
    wanted = stats.t.interval(0.95, 11, loc=values.mean(), scale=stats.sem(values))
    np.testing.assert_allclose([low, high], wanted, atol=0.15)


def test_queries_of_a_cluster_are_drawn_together():
    random = np.random.default_rng(0)
    metric, noise = random.normal(size=(6, 20)), random.normal(size=(6, 20))
    ten_times = [np.tile(one, 10) for one in (metric, metric + noise)]
    clusters = list(range(20)) * 10
    once = correlate_ranks(metric, metric + noise, seed=0)
    together = correlate_ranks(*ten_times, seed=0, clusters=clusters)
    alone = correlate_ranks(*ten_times, seed=0)

    def width(found):
        return found.within_interval[1] - found.within_interval[0]

    assert width(together) == pytest.approx(width(once), rel=0.02)
    assert width(alone) < 0.5 * width(once)


def test_what_was_never_seen_in_all_configurations_says_nothing():
    nothing = np.full((3, 2), NAN)
    found = correlate_ranks(nothing, np.ones((3, 2)), seed=0)
    assert (found.within, found.between, found.explained) == (None, None, None)
    assert found.undefined == 2
    assert explained_gain(nothing, nothing, np.ones((3, 2)), seed=0).relative is None


@pytest.mark.parametrize(
    ("metric", "quality", "message"),
    [
        (np.ones((2, 3)), np.ones((2, 4)), "one shape"),
        (np.ones(3), np.ones(3), "one shape"),
        (np.ones((1, 3)), np.ones((1, 3)), "at least 2"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(metric, quality, message):
    with pytest.raises(InputError, match=message):
        correlate_ranks(metric, quality, seed=0)
    with pytest.raises(InputError, match="2 clusters for 3 queries"):
        correlate_ranks(np.ones((2, 3)), np.ones((2, 3)), seed=0, clusters=["a", "b"])


def test_a_gain_is_that_of_explained_variance():
    random = np.random.default_rng(0)
    quality = random.normal(size=(8, 400))
    one, other = (quality + scale * random.normal(size=quality.shape) for scale in (1.0, 2.0))
    found = explained_gain(one, other, quality, seed=0)
    # Squared correlations 1 / (1 + 1) and 1 / (1 + 4): .5 / .2 - 1 = 1.5
    assert found.relative == pytest.approx(1.5, abs=0.25)
    assert found.interval[0] < 1.5 < found.interval[1]
    same = explained_gain(one, 3.0 * one, quality, seed=0)
    assert same.relative == pytest.approx(0.0)
    opposite = explained_gain(one, -one, quality, seed=0)
    assert (opposite.second, opposite.relative) == (0.0, None)


def test_a_clusters_mean_is_of_what_is_defined():
    values = np.array([1.0, NAN, 3.0, NAN])
    np.testing.assert_array_equal(by_cluster(values, ["a", "a", "a", "b"]), [2.0, NAN])


def test_between_configurations_a_pair_that_is_not_told_apart_may_go_either_way():
    random = np.random.default_rng(0)
    # Two are far below the third, and alike: of 3 pairs 2 are known to agree.
    level = np.array([[0.0], [0.0], [1.0]])
    metric, quality = (level + 0.1 * random.normal(size=(3, 50)) for _ in range(2))
    found = correlate_ranks(metric, quality, seed=0)
    np.testing.assert_allclose(found.between_interval, [(2 - 1) / 3, 1.0])
    apart = correlate_ranks(metric + np.array([[0.0], [2.0], [4.0]]), -quality, seed=0)
    low, high = apart.between_interval
    # Of the quality two are alike: again one pair may go either way.
    np.testing.assert_allclose([low, high], [-1.0, (-2 + 1) / 3])


def test_configurations_with_the_same_values_are_tied_and_not_unknown():
    random = np.random.default_rng(0)
    metric = random.normal(size=(3, 50)) + np.array([[0.0], [9.0], [18.0]])
    metric[1] = metric[0]
    quality = random.normal(size=(3, 50)) + np.array([[0.0], [9.0], [18.0]])
    found = correlate_ranks(metric, quality, seed=0)
    # 2 pairs agree, 1 is tied in the metric: 2 / sqrt(2 * 3), and nothing is unknown.
    np.testing.assert_allclose(found.between_interval, [2 / 6**0.5] * 2)
    assert found.between == pytest.approx(2 / 6**0.5)


def test_an_interval_between_configurations_holds_the_truth_where_percentiles_would_not():
    random = np.random.default_rng(0)
    true = np.linspace(0.0, 0.5, 6)[:, None]
    held = 0
    for _ in range(60):
        metric, quality = (true + random.normal(size=(6, 40)) for _ in range(2))
        low, high = correlate_ranks(metric, quality, seed=0, resamples=200).between_interval
        held += low <= 1.0 <= high + 1e-9
    assert held >= 55
