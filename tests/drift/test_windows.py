"""Drift of daily figures by hand: windows, pairing, trend, autocorrelation, the mix of kinds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tuner.core.errors import InputError
from tuner.drift.mix import compare_mix
from tuner.drift.observations import (
    MARGIN,
    autocorrelation,
    centring,
    mean_variance,
    without_weekdays,
)
from tuner.drift.windows import compare_windows, compare_windows_paired, trend
from tuner.stats import compare_paired


def test_without_neighbouring_days_the_windows_are_compared_by_welch():
    before, after = [0.80, 0.70, 0.75, 0.78], [0.70, 0.72, 0.60]
    change = compare_windows([1, 3, 5, 7], before, [9, 11, 13], after)
    welch = stats.ttest_ind(after, before, equal_var=False, alternative="less")
    two_sided = stats.ttest_ind(after, before, equal_var=False).confidence_interval(0.95)
    assert change.p_value == pytest.approx(welch.pvalue)
    assert change.interval == pytest.approx((two_sided.low, two_sided.high))
    # (.70 + .72 + .60) / 3 - (.80 + .70 + .75 + .78) / 4 = .673333 - .7575
    assert change.difference == pytest.approx(-0.0841667, abs=1e-7)
    assert change.relative == pytest.approx(-0.0841667 / 0.7575, abs=1e-6)
    assert (change.days_before, change.days_after, change.autocorrelation) == (4, 3, 0.0)


def test_the_variance_of_a_mean_grows_with_autocorrelation_by_calendar_days():
    # e = (-1, 1), e'e = 2. Days 1 and 2, rho .5: tr(MR) = 2 * (.5 - .25) = .5, s^2 = 4;
    # w'Rw = (1 + 1 + 2 * .5) / 4 = .75; variance 3. tr(MRMR) = .25, so df = .25 / .25 = 1.
    assert mean_variance(np.array([1, 2]), np.array([1.0, 3.0]), 0.5) == pytest.approx((3.0, 1.0))
    # A gap of a day: R = .25: tr = .75, s^2 = 2.667, w'Rw = .625, variance 1.667.
    assert mean_variance(np.array([1, 3]), np.array([1.0, 3.0]), 0.5)[0] == pytest.approx(5 / 3)
    # rho 0: s^2 / n = 2 / 2.
    assert mean_variance(np.array([1, 2]), np.array([1.0, 3.0]), 0.0) == pytest.approx((1.0, 1.0))


def test_autocorrelation_is_estimated_without_the_usual_bias_towards_0():
    random = np.random.default_rng(5)
    found, naive = [], []
    for _ in range(200):
        series = np.empty(28)
        series[0] = random.standard_normal()
        for day in range(1, 28):
            series[day] = 0.6 * series[day - 1] + 0.8 * random.standard_normal()
        found.append(autocorrelation([(np.arange(28), centring(28), series)]))
        rest = series - series.mean()
        naive.append(float(rest[1:] @ rest[:-1] / (rest @ rest)))
    assert np.mean(naive) < 0.5
    # 27 pairs of neighbours: a standard error of .8 / sqrt(27) = .154, of which MARGIN is added.
    assert abs(np.median(found) - (0.6 + MARGIN * 0.154)) < 0.08
    # No neighbours, or nothing that varies: nothing to estimate.
    assert autocorrelation([(np.array([0, 2, 4]), centring(3), np.array([1.0, 2.0, 3.0]))]) == 0.0
    assert autocorrelation([(np.arange(3), centring(3), np.ones(3))]) == 0.0


def test_the_same_queries_are_compared_pair_by_pair():
    # Four nights that all give the same: the paired t-test over the queries and nothing else.
    before, after = np.array([0.9, 0.5, 0.7, 0.2]), np.array([0.8, 0.5, 0.4, 0.1])
    nights = np.array([1, 2, 8, 9])
    days, queries = np.repeat(nights, 4), np.tile(np.arange(4), 4)
    values = np.concatenate([before, before, after, after])
    change = compare_windows_paired(days, queries, values, days >= 8)
    plain = compare_paired(after, before, seed=0)
    assert change.p_value == pytest.approx(plain.p_value / 2)
    assert change.interval == pytest.approx(plain.interval)
    assert change.queries == 4
    # Hard and easy queries make the unpaired test blind to it.
    blind = stats.ttest_ind(after, before, equal_var=False, alternative="less")
    assert change.p_value < blind.pvalue / 2


def test_nights_that_all_queries_share_widen_the_interval():
    random = np.random.default_rng(1)
    days, queries = np.repeat(np.arange(14), 20), np.tile(np.arange(20), 14)
    own = 0.7 + 0.02 * random.standard_normal(280)
    night = 0.1 * random.standard_normal(14)
    calm = compare_windows_paired(days, queries, own, days >= 7)
    moved = compare_windows_paired(days, queries, own + night[days], days >= 7)
    width = [high - low for low, high in (calm.interval, moved.interval)]
    assert width[1] > 5 * width[0]


def test_queries_of_one_window_only_do_not_count():
    days = np.array([1, 2, 8, 9, 1, 2, 8, 9, 8, 9])
    queries = np.array(["a"] * 4 + ["b"] * 4 + ["new"] * 2)
    values = np.array([0.8, 0.8, 0.6, 0.6, 0.5, 0.5, 0.4, 0.4, 0.0, 0.0])
    change = compare_windows_paired(days, queries, values, days >= 8)
    assert (change.queries, change.difference) == (2, pytest.approx(-0.15))
    with pytest.raises(InputError, match="at least two queries"):
        compare_windows_paired(days[:4], queries[:4], values[:4], days[:4] >= 8)


def test_trend_is_the_least_squares_line():
    days, values = [0, 2, 4, 8, 10], [0.80, 0.79, 0.75, 0.76, 0.70]
    change = trend(days, values)
    line = stats.linregress(days, values, alternative="less")
    assert change.difference == pytest.approx(10 * line.slope)
    assert change.before == pytest.approx(line.intercept)
    assert change.p_value == pytest.approx(line.pvalue)


def test_no_spread_leaves_no_interval_and_the_odds_of_the_order():
    fell = compare_windows(range(7), [0.8] * 7, range(7, 10), [0.7] * 3)
    # One choice of 3 of 10 days has all the low ones: 1 / C(10, 3) = 1 / 120.
    assert (fell.interval, fell.p_value) == (None, pytest.approx(1 / 120))
    assert compare_windows(range(7), [0.7] * 7, range(7, 10), [0.8] * 3).p_value == 1.0
    same = compare_windows(range(7), [0.1 + 0.2] * 7, range(7, 10), [0.3] * 3)
    assert (same.difference, same.p_value) == (0.0, 1.0)
    assert trend([0, 1, 2, 3], [4.0, 3.0, 2.0, 1.0]).p_value == pytest.approx(1 / math.factorial(4))
    assert trend(range(200), np.arange(200.0)[::-1]).p_value == pytest.approx(0.0)


def test_a_relative_change_from_0_is_undefined():
    change = compare_windows([1, 3], [0.0, 0.0], [5, 7], [0.1, 0.3], worse="higher")
    assert change.relative is None
    assert change.difference == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compare_windows([1], [0.5], [2, 3], [0.5, 0.5]), "1 days with data"),
        (lambda: compare_windows([1, 1], [0.5, 0.6], [2, 3], [0.5, 0.5]), "a day twice"),
        (lambda: compare_windows([1, 2], [0.5, math.nan], [3, 4], [0.5, 0.5]), "one finite value"),
        (lambda: trend([1, 2], [0.5, 0.6]), "at least 3"),
        (lambda: trend([1, 2, 3], [0.5, 0.6, 0.7], confidence=95), "confidence"),
        (lambda: compare_mix(["a"], [[1, 2]], [[1]]), "days x kinds"),
        (lambda: compare_mix(["a"], [[1]], [[-1]]), "not below 0"),
        (lambda: compare_mix(["a", "b"], [[0, 0]], [[1, 2]]), "without any query"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


SERIES = st.lists(st.integers(0, 50).map(lambda n: n / 50), min_size=12, max_size=20)


@given(SERIES, st.integers(-400, 400), st.integers(1, 9))
def test_only_distances_of_days_and_ratios_of_values_count(values, shift, factor):
    days, array = np.arange(len(values)), np.array(values)
    for test in (lambda d, v: compare_windows(d[:8], v[:8], d[8:], v[8:]), trend):
        plain, moved = test(days, array), test(days + shift, array * factor)
        assert moved.p_value == pytest.approx(plain.p_value, abs=1e-6)
        assert 0.0 <= plain.p_value <= 1.0
        if plain.interval is not None:
            # The interval leaves out 0 on the worse side exactly where the test says so.
            assert (plain.interval[1] < 0) == (plain.p_value < 0.025)


@pytest.mark.slow
@given(SERIES)
def test_what_is_worse_mirrors(values):
    days, array = np.arange(len(values)), np.array(values)
    lower, higher = trend(days, array), trend(days, -array, worse="higher")
    assert higher.p_value == pytest.approx(lower.p_value)
    assert higher.difference == pytest.approx(-lower.difference)


def test_mix_is_pearsons_chi_square_for_independent_queries():
    before, after = [[30, 20, 10], [32, 18, 10]], [[20, 22, 18], [19, 21, 20]]
    change = compare_mix(["one", "two", "three"], before, after)
    pearson = stats.chi2_contingency([np.sum(before, 0), np.sum(after, 0)], correction=False)
    assert change.statistic == pytest.approx(pearson.statistic)
    # Days of a window differ less than chance would have it: no correction, and F has its own tail.
    assert change.dispersion == 1.0
    assert change.p_value == pytest.approx(stats.f.sf(pearson.statistic / 2, 2, 4))
    # 62, 38, 20 of 120 and 39, 43, 38 of 120, each with .5 more: of 121.5
    shares = np.array([[62.5, 38.5, 20.5], [39.5, 43.5, 38.5]]) / 121.5
    psi = float(((shares[1] - shares[0]) * np.log(shares[1] / shares[0])).sum())
    assert change.stability_index == pytest.approx(psi)
    # -.1893 * ln .632 + .0412 * ln 1.130 + .1481 * ln 1.878
    assert psi == pytest.approx(0.0869 + 0.0050 + 0.0934, abs=0.0005)


def test_queries_that_come_in_batches_are_no_drift_of_the_mix():
    # Every day is all of one kind: 4 of 8 days before, 3 of 4 after. As single queries: chi-square
    # 25 and p < 1e-6; as days it may well be chance.
    before, after = [[50, 0], [0, 50]] * 4, [[50, 0]] * 3 + [[0, 50]]
    change = compare_mix(["one", "two"], before, after)
    assert stats.chi2.sf(change.statistic, 1) < 1e-6
    assert change.p_value > 0.2


def test_a_new_kind_is_a_finite_distance_and_one_kind_is_no_mix():
    new = compare_mix(["one", "two"], [[100, 0]] * 7, [[90, 10]] * 7)
    assert 0.1 < new.stability_index < 1.0
    assert new.p_value < 0.001
    assert compare_mix(["one"], [[5]], [[6]]).p_value == 1.0


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 40)), min_size=4, max_size=10))
def test_the_order_of_days_and_kinds_changes_nothing(rows):
    table = np.array(rows)
    plain = compare_mix(["a", "b"], table[:2], table[2:])
    turned = compare_mix(["b", "a"], table[:2][::-1, ::-1], table[2:][::-1, ::-1])
    assert turned.stability_index == pytest.approx(plain.stability_index)
    assert turned.p_value == pytest.approx(plain.p_value)
    assert plain.stability_index >= 0.0


def test_weekday_effects_leave_whole_weeks_their_means_and_cost_degrees_of_freedom():
    days = np.arange(735_000, 735_035)
    season = np.where(days % 7 >= 5, 0.2, 0.0)
    windows = ((days[:28], 1.0 + season[:28]), (days[28:], 0.9 + season[28:]))
    (first, second), factor = without_weekdays(windows)
    assert first[1] == pytest.approx(np.full(28, 1.0 + 0.4 / 7))
    assert second[1] == pytest.approx(np.full(7, 0.9 + 0.4 / 7))
    assert factor == pytest.approx(33 / 27)  # 35 days, two levels, six weekdays


def test_weekdays_are_left_in_where_they_cannot_be_told():
    days = np.arange(735_000, 735_020)
    short = ((days[:13], np.ones(13)), (days[13:], np.ones(7)))
    assert without_weekdays(short) == (short, 1.0)
    # Only weekends before, only weekdays now: a season and a change look the same.
    many = np.arange(735_000, 735_200)
    ends, weeks = many[many % 7 >= 5], many[many % 7 < 5]
    apart = ((ends, np.ones(ends.size)), (weeks, np.ones(weeks.size)))
    assert without_weekdays(apart) == (apart, 1.0)
