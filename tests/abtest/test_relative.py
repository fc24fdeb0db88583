"""Differences as shares of the control: Fieller's interval by inversion, and its coverage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tuner.abtest.comparison import ArmMeans, compare_arms, fieller_interval

means = st.floats(0.5, 20)
variances = st.floats(1e-4, 1.0)


@given(means, means, variances, variances, st.floats(1.0, 5.0))
def test_it_holds_the_shares_that_the_difference_does_not_refuse(t, c, vt, vc, width):
    interval = fieller_interval(ArmMeans(t, c, vt, vc), width)
    # Otherwise the control itself is within that many errors of 0.
    assume(c**2 > width**2 * vc * (1 + 1e-6))
    low, high = interval

    def is_kept(share):
        error = np.sqrt(vt + (1 + share) ** 2 * vc)
        return bool(abs(t - (1 + share) * c) <= width * error + 1e-6)

    assert is_kept(low)
    assert is_kept(high)
    assert is_kept((low + high) / 2)
    beyond = 0.05 * (high - low) + 1e-3
    assert not is_kept(low - beyond)
    assert not is_kept(high + beyond)


def test_a_control_below_0_turns_the_shares():
    # From -2 to -3 is a loss of one half, from -2 to -1 a gain of one half.
    low, high = fieller_interval(ArmMeans(-3.0, -2.0, 0.01, 0.01), 2.0)
    up = fieller_interval(ArmMeans(3.0, 2.0, 0.01, 0.01), 2.0)
    assert (low, high) == pytest.approx((-up[1], -up[0]))
    assert low < -0.5 < high


def test_no_more_than_all_can_be_lost_of_what_is_never_negative():
    arms = ArmMeans(0.01, 0.1, 0.0004, 0.0004)
    low, _ = fieller_interval(arms, 2.0)
    assert low < -1.0
    assert fieller_interval(arms, 2.0, is_from_0_up=True)[0] == -1.0


def test_more_than_all_can_be_lost_of_what_may_be_negative():
    # From 2 to -1 is a loss of one and a half of the control.
    arms = [-1.2, -0.8, -1.1, -0.9], [1.9, 2.1, 2.2, 1.8]
    found = compare_arms(*arms, planned_units=8)
    assert found.relative == pytest.approx(-1.5)
    assert found.relative_interval[0] < -1.5
    never_below_0 = compare_arms(*arms, planned_units=8, is_from_0_up=True)
    assert never_below_0.relative_interval[0] == -1.0


def test_no_share_is_told_of_a_control_that_may_be_0():
    assert fieller_interval(ArmMeans(1.0, 0.1, 0.01, 0.01), 2.0) is None
    result = compare_arms([1, 2, 3, 4], [-2, 2, -1, 1.5], planned_units=8)
    assert result.relative is not None
    assert result.relative_interval is None
    assert not result.is_share


@pytest.mark.parametrize("lift", [0.5, 1.0])
def test_it_covers_as_promised_where_the_lift_is_large(lift):
    random = np.random.default_rng(1)
    rounds, n = 2_000, 200
    covered = plain = 0
    for _ in range(rounds):
        left, right = random.normal(1 + lift, 1, n), random.normal(1, 1, n)
        result = ArmMeans(left.mean(), right.mean(), left.var(ddof=1) / n, right.var(ddof=1) / n)
        low, high = fieller_interval(result, 1.966)  # t's 97.5 % quantile, 398 degrees of freedom
        covered += low <= lift <= high
        half = 1.966 * np.sqrt(result.treatment_variance + result.control_variance)
        plain += abs(result.treatment - result.control - lift * result.control) <= half
    assert 0.935 <= covered / rounds <= 0.965
    assert plain / rounds < 0.90  # the difference's interval divided by the control


def test_both_intervals_come_with_the_comparison():
    random = np.random.default_rng(0)
    result = compare_arms(random.normal(3, 1, 400), random.normal(2, 1, 400), planned_units=800)
    low, high = result.relative_interval
    wide_low, wide_high = result.always_valid_relative_interval
    assert wide_low < low < result.relative < high < wide_high
