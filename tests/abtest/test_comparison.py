"""Two arms of users: means, ratios, quantiles, CUPED, guard-rails, sample ratio, sample sizes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.power import TTestIndPower

from tuner.abtest.assignment import check_sample_ratio
from tuner.abtest.comparison import adjust_cuped, compare_arms
from tuner.abtest.guardrail import arm_non_inferiority
from tuner.abtest.quantile import (
    Measured,
    compare_quantiles,
    draw_quantiles,
    quantile_non_inferiority,
)
from tuner.abtest.size import unit_spread, units_any_look, units_one_look
from tuner.abtest.units import linearised
from tuner.core.errors import InputError

HALVES = {"control": 0.5, "treatment": 0.5}
values = st.lists(st.floats(-100, 100).map(lambda x: round(x, 3)), min_size=2, max_size=30)


def measured(random, users, rows=8, slow=1.0):
    """Rows of users that differ, so that a user's rows are alike."""
    units = np.repeat(np.arange(users), rows)
    base = random.lognormal(0.0, 0.5, users)[units]
    return Measured(100.0 * slow * base * random.lognormal(0.0, 0.4, units.size), units)


# Sample ratio


def test_5200_against_4800_is_a_mismatch_with_6e_5():
    found = check_sample_ratio({"control": 5200, "treatment": 4800}, HALVES)
    # (200^2 + 200^2) / 5000 = 16; P(chi-square(1) > 16) = 6.33e-5
    assert found.p_value == pytest.approx(6.334e-5, rel=1e-3)
    assert found.is_mismatch


def test_5100_against_4900_is_none():
    # (100^2 + 100^2) / 5000 = 4; p = .0455, and the line is at .001
    found = check_sample_ratio({"control": 5100, "treatment": 4900}, HALVES)
    assert found.p_value == pytest.approx(0.0455, abs=1e-4)
    assert not found.is_mismatch


def test_the_ratio_is_that_of_the_configured_shares():
    shares = {"control": 0.09, "treatment": 0.01}  # of all users; 90 % are in no arm
    assert not check_sample_ratio({"control": 9000, "treatment": 1000}, shares).is_mismatch
    assert check_sample_ratio({"control": 5000, "treatment": 5000}, shares).is_mismatch


def test_an_arm_without_units_is_a_mismatch():
    assert check_sample_ratio({"control": 100, "treatment": 0}, HALVES).is_mismatch


def test_no_units_at_all_are_an_error():
    with pytest.raises(InputError, match="no units"):
        check_sample_ratio({"control": 0, "treatment": 0}, HALVES)


# Means


def test_welch_by_hand():
    # Means 3 and 1.5; variances 14/3 and 1/3: se = sqrt(14/12 + 1/12) = 1.118, t = 1.342,
    # df = 1.25^2 / ((14/12)^2 / 3 + (1/12)^2 / 3) = 3.427
    found = compare_arms([1, 2, 3, 6], [1, 1, 2, 2], planned_units=8)
    assert found.difference == 1.5
    assert found.relative == 1.0
    assert found.standard_error == pytest.approx(math.sqrt(1.25))
    assert found.p_value == pytest.approx(2 * stats.t.sf(1.3416, 3.427), abs=1e-4)


def test_welch_not_pooled_variance():
    random = np.random.default_rng(1)
    left, right = random.normal(1, 3, 50), random.normal(0, 1, 450)
    found = compare_arms(left, right, planned_units=500)
    welch = stats.ttest_ind(left, right, equal_var=False)
    assert found.p_value == pytest.approx(welch.pvalue)
    assert found.interval == pytest.approx(tuple(welch.confidence_interval(0.95)))
    pooled = stats.ttest_ind(left, right)
    assert found.p_value > 2 * pooled.pvalue  # the small arm has the large variance


def test_not_tested_is_not_p_1():
    for left, right in (([1.0], [1, 2, 3]), ([], [1, 2, 3]), ([2, 2, 2], [2, 2, 2])):
        found = compare_arms(left, right, planned_units=10)
        assert found.p_value is None
        assert found.always_valid_p is None
        assert found.interval is None
        assert found.remark
    nothing = compare_arms([math.nan, math.nan], [1, 2], planned_units=4)
    assert "no unit of the treatment" in str(nothing.remark)


def test_one_constant_arm_is_tested_without_a_warning():
    found = compare_arms([0.1 + 0.2] * 5, [0.1, 0.2, 0.3, 0.2], planned_units=9)
    assert found.p_value is not None


def test_units_without_a_value_are_left_out():
    found = compare_arms([1, 2, 3, 6, math.nan], [1, 1, 2, 2], planned_units=8)
    assert found == compare_arms([1, 2, 3, 6], [1, 1, 2, 2], planned_units=8)


@given(values, values)
def test_exchanging_the_arms_turns_the_sign(left, right):
    one = compare_arms(left, right, planned_units=60)
    other = compare_arms(right, left, planned_units=60)
    assert one.p_value == pytest.approx(other.p_value) if one.p_value is not None else True
    assert one.difference == pytest.approx(-other.difference)


@given(values, values, st.randoms())
def test_the_order_of_units_changes_nothing(left, right, random):
    one = compare_arms(left, right, planned_units=60)
    random.shuffle(left)
    assert compare_arms(left, right, planned_units=60) == one


@given(values, values)
def test_interval_leaves_out_0_exactly_when_p_is_under_alpha(left, right):
    found = compare_arms(left, right, planned_units=60)
    if found.p_value is None or abs(found.p_value - 0.05) < 1e-6:
        return
    low, high = found.interval
    assert (found.p_value < 0.05) == (low > 0 or high < 0)


@pytest.mark.parametrize("wrong", [[[1.0, 2.0]], [1.0, math.inf]])
def test_values_that_cannot_be(wrong):
    with pytest.raises(InputError):
        compare_arms(wrong, [1, 2, 3], planned_units=5)


# Ratios


def test_linearised_by_hand():
    # R = 4/8 = .5, mean(x) = 8/3: .5 + (1 - 1) / .., .5 + (3 - 2) * 3/8, .5 + (0 - 1) * 3/8
    assert linearised([1, 3, 0], [2, 4, 2]).tolist() == pytest.approx([0.5, 0.875, 0.125])


def test_linearised_gives_the_delta_methods_variance():
    random = np.random.default_rng(2)
    x = 1.0 + random.poisson(3, 500)
    y = random.binomial(x.astype(int), 0.4).astype(float)
    ratio, mean_x = y.sum() / x.sum(), x.mean()
    covariance = np.cov(y, x)
    # Var(Y/X) = (var(y) - 2 R cov(y, x) + R^2 var(x)) / (n mean(x)^2)
    delta = (covariance[0, 0] - 2 * ratio * covariance[0, 1] + ratio**2 * covariance[1, 1]) / (
        500 * mean_x**2
    )
    linear = linearised(y, x)
    assert linear.mean() == pytest.approx(ratio)
    assert linear.var(ddof=1) / 500 == pytest.approx(delta)


def test_users_not_rows_are_the_unit():
    # Ten users with a hundred equal rows each are ten observations, whatever the rows say.
    random = np.random.default_rng(3)
    users = random.random(20).round()
    few = [linearised(half, np.ones(10)) for half in (users[:10], users[10:])]
    many = [linearised(half * 100, np.full(10, 100.0)) for half in (users[:10], users[10:])]
    one, other = (compare_arms(*arms, planned_units=20) for arms in (few, many))
    assert one.p_value == pytest.approx(other.p_value)


def test_a_user_without_a_denominator_counts_for_nothing_in_the_ratio():
    assert linearised([1, 3, 0], [2, 4, 0]).mean() == pytest.approx(4 / 6)


@pytest.mark.parametrize(
    ("top", "bottom", "message"),
    [([1, 2], [0, 0], "all denominators"), ([1, 2], [1, -1], "negative"), ([1], [1, 2], "shape")],
)
def test_ratios_that_cannot_be(top, bottom, message):
    with pytest.raises(InputError, match=message):
        linearised(top, bottom)


# CUPED


def test_cuped_by_hand():
    # x = 1, 2, 3, 4 and y = 2, 4, 7, 7: sum of products 9, of squares 5, theta = 1.8
    found = adjust_cuped(*map(np.array, ([2.0, 7.0], [4.0, 7.0], [1.0, 4.0], [2.0, 3.0])))
    assert found.theta == pytest.approx(1.8)
    assert found.treatment.tolist() == pytest.approx([2 + 2.7, 7 - 2.7])
    assert found.control.tolist() == pytest.approx([4 + 0.9, 7 - 0.9])


def test_cuped_takes_the_squared_correlation_from_the_variance():
    random = np.random.default_rng(4)
    before = random.normal(size=20_000)
    now = 0.8 * before + 0.6 * random.normal(size=20_000)
    found = adjust_cuped(now[::2], now[1::2], before[::2], before[1::2])
    assert found.variance_reduction == pytest.approx(0.64, abs=0.02)


def test_cuped_takes_values_from_before_the_experiment_only():
    # The treatment moved these: whatever they are, they are not from before.
    random = np.random.default_rng(5)
    during = np.concatenate([random.normal(1.0, 1.0, 500), random.normal(0.0, 1.0, 500)])
    with pytest.raises(InputError, match="not from before the experiment"):
        adjust_cuped(during[:500], during[500:], during[:500], during[500:])


def test_users_who_are_new_keep_their_value():
    now, before = np.array([2.0, 4.0, 7.0, 7.0, 5.0]), np.array([1.0, 2.0, 3.0, 4.0, math.nan])
    found = adjust_cuped(now[[0, 3]], now[[1, 2, 4]], before[[0, 3]], before[[1, 2, 4]])
    assert found.control[2] == 5.0


def test_cuped_without_a_spread_changes_nothing():
    now = np.array([1.0, 2.0, 3.0])
    found = adjust_cuped(now, now, np.ones(3), np.ones(3))
    assert found.theta == 0.0
    assert found.treatment.tolist() == now.tolist()


@given(st.floats(-50, 50), st.floats(0.1, 50))
def test_the_unit_of_the_values_from_before_changes_nothing(shift, scale):
    random = np.random.default_rng(6)
    before = random.normal(size=40)
    now = before + random.normal(size=40)
    one = adjust_cuped(now[:20], now[20:], before[:20], before[20:])
    moved = before * scale + shift
    other = adjust_cuped(now[:20], now[20:], moved[:20], moved[20:])
    np.testing.assert_allclose(one.treatment, other.treatment, atol=1e-9)


# Quantiles


def test_p95_by_bootstrap_of_users_not_a_mean_of_p95s():
    # One user has 80 fast rows, nine have 10 slow ones each: 90 of 170 rows are slow.
    treatment = Measured(
        np.r_[np.full(80, 10.0), np.full(90, 100.0)],
        np.r_[np.zeros(80, dtype=int), np.repeat(np.arange(1, 10), 10)],
    )
    draws = draw_quantiles(treatment, treatment, quantile=0.4, seed=0, resamples=200)
    assert draws.treatment == 10.0  # the mean of the users' quantiles would be 91
    # Users are drawn: without the first one (.9^10 = 35 % of samples) everything is slow.
    assert np.mean(draws.treatment_draws == 100.0) > 0.3


def test_points_are_numpys_linear_quantiles():
    random = np.random.default_rng(7)
    arm = measured(random, 30)
    draws = draw_quantiles(arm, arm, quantile=0.9, seed=0, resamples=100)
    assert draws.treatment == np.quantile(arm.values, 0.9)


def test_each_draw_is_the_quantile_of_the_rows_of_the_users_drawn():
    random = np.random.default_rng(8)
    arm = measured(random, 7, rows=9)
    draws = draw_quantiles(arm, arm, quantile=0.9, seed=3, resamples=100)
    again = np.random.default_rng(3)
    for drawn in draws.treatment_draws[:20]:
        users = again.integers(0, 7, size=7)
        rows = np.concatenate([arm.values[arm.units == user] for user in users])
        assert drawn == pytest.approx(np.quantile(rows, 0.9))


def test_users_widen_the_interval_of_a_quantile():
    random = np.random.default_rng(9)
    left, right = measured(random, 100), measured(random, 100)
    by_user = draw_quantiles(left, right, quantile=0.95, seed=0, resamples=300)
    alone = [Measured(arm.values, np.arange(arm.values.size)) for arm in (left, right)]
    by_row = draw_quantiles(*alone, quantile=0.95, seed=0, resamples=300)
    errors = [
        compare_quantiles(draws, planned_units=200).standard_error for draws in (by_user, by_row)
    ]
    assert errors[0] > 1.3 * errors[1]


def test_a_slower_tail_is_found():
    random = np.random.default_rng(10)
    draws = draw_quantiles(
        measured(random, 400, slow=1.5), measured(random, 400), quantile=0.95, seed=0, resamples=300
    )
    found = compare_quantiles(draws, planned_units=800)
    assert found.p_value == pytest.approx(2 / 301)  # none of 300 draws lies beyond 0
    assert found.interval[0] > 0
    assert found.always_valid_p < 0.01


def test_a_tail_of_a_few_rows_is_not_tested():
    arm = Measured(np.arange(60.0), np.arange(60))
    draws = draw_quantiles(arm, arm, quantile=0.95, seed=0)
    assert "at least 5 are needed" in str(draws.remark)  # .05 * 60 = 3 rows beyond
    found = compare_quantiles(draws, planned_units=120)
    assert found.p_value is None
    assert found.treatment == pytest.approx(56.05)
    kept = quantile_non_inferiority(draws, margin=1, higher_is_better=False, planned_units=120)
    assert kept.p_value is None
    assert kept.always_valid_p is None


def test_draws_depend_on_the_seed_alone():
    random = np.random.default_rng(11)
    arm = measured(random, 50)
    one, same, other = (
        draw_quantiles(arm, arm, quantile=0.9, seed=seed, resamples=100) for seed in (1, 1, 2)
    )
    assert one.treatment_draws.tolist() == same.treatment_draws.tolist()
    assert one.treatment_draws.tolist() != other.treatment_draws.tolist()


# Guard-rails


def test_non_inferiority_by_hand():
    # 1.1 - 1.05 - .5 = -.45; se = sqrt(.02/2 + .003333/4) = .10408, t = -4.323, df = 1.1709
    found = arm_non_inferiority(
        [1.0, 1.2], [1.0, 1.0, 1.1, 1.1], margin=0.5, higher_is_better=False, planned_units=6
    )
    assert found.loss == pytest.approx(0.05)
    assert found.p_value == pytest.approx(stats.t.cdf(-4.3236, 1.1709), abs=1e-4)


def test_a_relative_margin_lets_the_control_be_an_estimate():
    random = np.random.default_rng(12)
    left, right = random.normal(10, 3, 300), random.normal(10, 3, 300)
    found = arm_non_inferiority(
        left, right, margin=0.05, is_relative=True, higher_is_better=False, planned_units=600
    )
    scaled = stats.ttest_ind(left, 1.05 * right, equal_var=False, alternative="less")
    assert found.p_value == pytest.approx(scaled.pvalue)
    # Fieller's bound is the margin with p = alpha, but for the degrees of freedom.
    at_bound = arm_non_inferiority(
        left,
        right,
        margin=found.loss_bound,
        is_relative=True,
        higher_is_better=False,
        planned_units=600,
    )
    assert at_bound.p_value == pytest.approx(0.05, abs=1e-4)


@given(values, values, st.floats(0, 10))
def test_direction_is_a_matter_of_sign(left, right, margin):
    lower = arm_non_inferiority(
        left, right, margin=margin, higher_is_better=False, planned_units=60
    )
    higher = arm_non_inferiority(
        [-x for x in left],
        [-x for x in right],
        margin=margin,
        higher_is_better=True,
        planned_units=60,
    )
    assert lower.loss == pytest.approx(higher.loss) if lower.loss is not None else True
    assert (lower.p_value is None) == (higher.p_value is None)
    if lower.p_value is not None:
        assert lower.p_value == pytest.approx(higher.p_value, abs=1e-9)


def test_too_few_users_keep_no_guard_rail():
    random = np.random.default_rng(13)
    left, right = random.normal(10, 3, 10), random.normal(10, 3, 10)
    found = arm_non_inferiority(
        left, right, margin=0.01, is_relative=True, higher_is_better=False, planned_units=20
    )
    assert found.p_value > 0.05
    assert found.always_valid_p > 0.05


def test_a_broken_guard_rail_is_shown_to_be_broken():
    random = np.random.default_rng(14)
    left, right = random.normal(12, 1, 300), random.normal(10, 1, 300)
    found = arm_non_inferiority(
        left, right, margin=0.05, is_relative=True, higher_is_better=False, planned_units=600
    )
    assert found.broken_p < 0.001
    assert found.always_valid_p == 1.0


def test_a_share_of_nothing_is_refused():
    with pytest.raises(InputError, match="absolute margin"):
        arm_non_inferiority(
            [1, 2], [0, 0], margin=0.1, is_relative=True, higher_is_better=False, planned_units=4
        )


# Sample sizes


def test_sizes_by_cohen():
    # d = .2, .5, .8: 394, 64, 26 in each arm; spread = 2 sd for equal shares
    assert [units_one_look(d, 2.0) // 2 for d in (0.2, 0.5, 0.8)] == [394, 64, 26]


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_unequal_splits_agree_with_statsmodels(share):
    total = units_one_look(0.2, unit_spread(1.0, share, 1 - share))
    ratio = (1 - share) / share
    first = TTestIndPower().solve_power(effect_size=0.2, power=0.8, alpha=0.05, ratio=ratio)
    assert total == pytest.approx(first * (1 + ratio), rel=0.01)


def test_one_side_at_5_percent_is_two_sides_at_10():
    assert units_one_look(0.2, 2.0, sides=1) == units_one_look(0.2, 2.0, alpha=0.1)


def test_large_samples_are_the_normal_approximations():
    # (1.96 + .8416)^2 * 4 / .001^2 = 31.4 million
    expected = (stats.norm.isf(0.025) + stats.norm.ppf(0.8)) ** 2 * 4 / 0.001**2
    assert units_one_look(0.001, 2.0) == pytest.approx(expected, rel=1e-3)


def test_any_look_costs_more_than_one_planned_look_but_not_twice():
    one = units_one_look(0.1, 2.0)
    many = units_any_look(0.1, 2.0, planned_units=one)
    assert one < many < 2 * one


def test_half_the_power_is_where_the_interval_is_as_narrow():
    random = np.random.default_rng(15)
    left, right = random.normal(0, 1, 500), random.normal(0, 1, 500)
    found = compare_arms(left, right, planned_units=2000)
    spread = found.standard_error * math.sqrt(1000)
    low, high = found.always_valid_interval
    assert units_any_look((high - low) / 2, spread, planned_units=2000, power=0.5) == pytest.approx(
        1000, rel=0.01
    )


def test_no_effect_has_no_size():
    with pytest.raises(InputError, match="effect"):
        units_any_look(0.0, 2.0, planned_units=100)


# Against an independent implementation


def test_tea_tasting_agrees():
    tasting = pytest.importorskip("tea_tasting", reason="needs graphrag-tuner[bench]: tea-tasting")
    import pyarrow

    random = np.random.default_rng(16)
    n = 400
    arm = np.repeat([0, 1], n // 2)
    before = random.normal(size=n)
    orders = 1.0 + random.poisson(2, n)
    clicks = random.binomial(orders.astype(int), 0.4).astype(float)
    value = before + random.normal(size=n) * (1 + arm)
    data = pyarrow.table(
        {"variant": arm, "value": value, "before": before, "clicks": clicks, "orders": orders}
    )
    found = tasting.Experiment(
        mean=tasting.Mean("value"),
        ratio=tasting.RatioOfMeans("clicks", "orders"),
        cuped=tasting.Mean("value", "before"),
    ).analyze(data)
    control, treatment = arm == 0, arm == 1

    def agree(name, left, right, rel):
        ours, theirs = compare_arms(left, right, planned_units=n), found[name]
        assert ours.difference == pytest.approx(theirs.effect_size, rel=rel)
        assert ours.p_value == pytest.approx(theirs.pvalue, rel=rel)
        assert ours.interval == pytest.approx(
            (theirs.effect_size_ci_lower, theirs.effect_size_ci_upper), rel=rel
        )

    agree("mean", value[treatment], value[control], 1e-9)
    agree(
        "ratio",
        linearised(clicks[treatment], orders[treatment]),
        linearised(clicks[control], orders[control]),
        1e-9,
    )
    adjusted = adjust_cuped(value[treatment], value[control], before[treatment], before[control])
    agree("cuped", adjusted.treatment, adjusted.control, 1e-2)
