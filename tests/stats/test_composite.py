"""Weights of a composite: those that made the quality are found, and tested on other queries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import InputError
from tuner.stats.composite import Halves, compare_taus, fit_weights, query_taus

NAN = float("nan")


def metrics(seed=0, count=3, configurations=6, queries=200):
    return np.random.default_rng(seed).uniform(size=(count, configurations, queries))


@given(st.lists(st.floats(0.05, 1.0), min_size=3, max_size=3), st.floats(0.1, 10.0))
def test_weights_that_made_the_quality_are_found_whatever_its_scale(weights, scale):
    given_, wanted = metrics(queries=20), np.array(weights)
    easy = np.random.default_rng(1).normal(size=20)  # what all configurations share tells nothing
    quality = scale * np.tensordot(wanted, given_, 1) + easy
    np.testing.assert_allclose(fit_weights(given_, quality), wanted / wanted.sum(), atol=1e-6)


@given(seed=st.integers(0, 1000))
def test_weights_are_shares_whatever_the_quality(seed):
    quality = np.random.default_rng(seed).normal(size=(6, 20))
    found = fit_weights(metrics(queries=20), quality)
    assert found is None or ((found >= 0).all() and found.sum() == pytest.approx(1.0))


def test_one_metric_with_noise_gets_almost_all_the_weight():
    given_ = metrics()
    noise = np.random.default_rng(2).normal(scale=0.3, size=given_.shape[1:])
    assert fit_weights(given_, given_[1] + noise)[1] > 0.9


def test_where_no_metric_helps_there_are_no_weights():
    given_ = metrics()
    assert fit_weights(given_, -given_.sum(axis=0)) is None
    assert fit_weights(np.ones((2, 3, 4)), np.random.default_rng(0).normal(size=(3, 4))) is None
    assert fit_weights(np.full((2, 3, 4), NAN), np.ones((3, 4))) is None


def test_a_metric_that_varies_by_rounding_alone_gets_no_weight():
    given_ = metrics(count=2)
    given_[1] = 0.3
    given_[1, 0] = 0.1 + 0.2
    assert fit_weights(given_, given_[0]).tolist() == [1.0, 0.0]


def test_queries_with_an_undefined_value_are_left_out():
    given_ = metrics()
    quality = given_[0].copy()
    quality[2, :50] = NAN
    assert fit_weights(given_, quality).tolist() == pytest.approx([1.0, 0.0, 0.0])


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match=r"got \(2, 3, 4\) and \(3, 5\)"):
        fit_weights(np.ones((2, 3, 4)), np.ones((3, 5)))


def test_a_metric_that_says_nothing_counts_as_0_and_an_answer_of_one_quality_not_at_all():
    metric = np.array([[1.0, 0.0, 0.0, NAN], [1.0, 1.0, 1.0, 1.0]])
    quality = np.array([[0.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    np.testing.assert_array_equal(query_taus(metric, quality), [0.0, 1.0, NAN, NAN])


def test_a_comparison_is_paired_and_counts_a_cluster_once():
    given_ = metrics(queries=40)
    found = compare_taus(given_[0], given_[1], given_[0], list(range(20)) * 2, seed=0)
    assert found.n == 20
    assert found.mean_difference > 0.8
    assert found.interval[0] > 0.5
    same = compare_taus(given_[0], given_[0], given_[0], list(range(40)), seed=0)
    assert (same.mean_difference, same.interval) == (0.0, (0.0, 0.0))


def test_halves_keep_clusters_together_and_are_of_one_size():
    clusters = ["a", "b", "a", "c", "d", "b"]
    for seed in range(10):
        to_fit = Halves.drawn(clusters, seed=seed).is_to_fit
        fitted = {one for one, is_in in zip(clusters, to_fit, strict=True) if is_in}
        tested = {one for one, is_in in zip(clusters, to_fit, strict=True) if not is_in}
        assert len(fitted) == len(tested) == 2
    assert len({tuple(Halves.drawn(clusters, seed=seed).is_to_fit) for seed in range(10)}) > 1
