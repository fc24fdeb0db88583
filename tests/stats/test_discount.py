"""Weights of ranks from an ablation: the curve that made the answers lies within its intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import InputError
from tuner.metrics.context import fit_discount, rank_weights
from tuner.stats.discount import fit_discount_with_intervals

CURVE = np.array([1.0, 0.7, 0.5, 0.6, 0.9])


def gains(seed=0, queries=200, noise=0.3):
    random = np.random.default_rng(seed)
    worth = random.uniform(0.4, 1.0, size=(queries, 1))
    return worth * CURVE + noise * random.normal(size=(queries, CURVE.size))


def test_a_curve_shaped_like_a_u_is_found_within_its_intervals():
    found = [fit_discount_with_intervals(gains(seed), [1, 2, 3, 4, 5]) for seed in range(200)]
    np.testing.assert_allclose(np.mean([one.weights for one in found], axis=0), CURVE, atol=0.01)
    ends = np.array([one.intervals for one in found])
    is_inside = (ends[:, 1:, 0] < CURVE[1:]) & (CURVE[1:] < ends[:, 1:, 1])
    # 800 intervals of 95 %, four of each draw: ± 3 %, were those as good as one.
    assert 0.92 < is_inside.mean() < 0.98
    assert (ends[:, 0] == 1.0).all()
    assert found[0].queries == 200


@given(
    values=st.lists(
        st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=3), min_size=4, max_size=12
    ),
    last=st.integers(3, 6),
)
def test_weights_are_those_of_fit_discount_and_metrics_take_them(values, last):
    gained = np.array(values) + np.array([1.5, 0.0, 0.0])
    ranks = [1, 2, last]
    found = fit_discount_with_intervals(gained, ranks)
    if not found.weights:  # rank 1 is not clearly above 0
        assert found.gain_intervals[0][0] <= 0.0
        return
    flat = np.tile(ranks, len(gained))
    np.testing.assert_allclose(found.weights, fit_discount(flat, gained.ravel()), atol=1e-9)
    np.testing.assert_allclose(rank_weights(found.weights, last), found.weights)
    assert len(found.intervals) == last
    assert all(0.0 <= low <= high for low, high in found.intervals)


def test_fiellers_interval_is_where_a_t_test_cannot_tell():
    from scipy import stats

    gained = gains(queries=30)
    low, high = fit_discount_with_intervals(gained, [1, 2, 3, 4, 5]).intervals[2]
    for end in (low, high):
        left = gained[:, 2] - end * gained[:, 0]
        p_value = stats.ttest_1samp(left, 0.0).pvalue
        # By fewer degrees of freedom than n - 1, so a little further out.
        assert 0.03 < p_value <= 0.0501


def test_ranks_between_those_that_were_tried_lie_on_a_line_and_have_intervals():
    found = fit_discount_with_intervals(gains()[:, [0, 4]], [1, 5])
    np.testing.assert_allclose(np.diff(found.weights, 2), 0.0, atol=1e-12)
    widths = [high - low for low, high in found.intervals]
    assert widths == sorted(widths)


def test_a_query_many_times_is_no_more_than_one_in_a_cluster():
    once = fit_discount_with_intervals(gains(queries=20), [1, 2, 3, 4, 5])
    many = fit_discount_with_intervals(
        np.tile(gains(queries=20), (5, 1)), [1, 2, 3, 4, 5], clusters=list(range(20)) * 5
    )
    np.testing.assert_allclose(many.intervals, once.intervals)


def test_answers_that_do_not_need_the_passage_give_no_weights():
    noise = np.random.default_rng(0).normal(size=(50, 3))
    found = fit_discount_with_intervals(noise, [1, 2, 3])
    assert found.weights == found.intervals == ()
    assert found.gain_intervals[0][0] < 0.0 < found.gain_intervals[0][1]


def test_gains_without_spread_have_intervals_without_width():
    found = fit_discount_with_intervals(np.tile([1.0, 0.5], (4, 1)), [1, 2])
    assert found.weights == (1.0, 0.5)
    assert found.intervals == ((1.0, 1.0), (0.5, 0.5))


@pytest.mark.parametrize(
    ("values", "ranks", "message"),
    [
        (np.ones((3, 2)), [1], "for 1 ranks"),
        (np.ones((3, 2)), [2, 3], "the first must be 1"),
        (np.ones((3, 2)), [1, 1], "they must rise"),
        (np.full((3, 2), np.nan), [1, 2], "not a finite number"),
        (np.ones((1, 2)), [1, 2], "at least 2 are needed"),
    ],
)
def test_what_cannot_be_fitted_is_refused(values, ranks, message):
    with pytest.raises(InputError, match=message):
        fit_discount_with_intervals(values, ranks)
