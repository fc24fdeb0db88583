"""Always-valid inference: by hand, its two sides agree, and peeking does no harm."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from tuner.abtest.comparison import compare_arms
from tuner.abtest.sequential import (
    Look,
    mixing,
)
from tuner.core.errors import InputError

# information at which r = mixing(.05) * information is 8
AT_8 = 8.0 / mixing(0.05)

REPETITIONS = 200

zs = st.floats(-30, 30)
informations = st.floats(0.01, 100)
alphas = st.floats(0.001, 0.4)


def test_mixing_by_hand():
    # -2 log .05 = 5.9915; log of that = 1.7903; + 1
    assert mixing(0.05) == pytest.approx(5.9915 + 1.7903 + 1.0, abs=1e-4)


def test_p_value_by_hand():
    # exp(9 * 8 / 18) / sqrt(9) = e^4 / 3
    p = Look(AT_8).p_value(3.0, 1.0)
    assert p == pytest.approx(3.0 / math.e**4)
    assert Look(AT_8).p_value(0.0, 1.0) == 1.0


def test_interval_by_hand():
    # sqrt(1.125 * log(9 / .0025)) = sqrt(1.125 * 8.1887) = 3.0352
    low, high = Look(AT_8).interval(1.0, 2.0)
    assert (low, high) == pytest.approx((1.0 - 6.0703, 1.0 + 6.0703), abs=1e-3)


def test_it_is_the_papers_formula():
    # (2): sigma sqrt((t rho^2 + 1) / (t^2 rho^2) log((t rho^2 + 1) / alpha^2))
    t, sigma, alpha = 400, 1.7, 0.05
    rho_squared = mixing(alpha) / 1000  # tuned to 1000 units
    expected = sigma * math.sqrt(
        (t * rho_squared + 1) / (t**2 * rho_squared) * math.log((t * rho_squared + 1) / alpha**2)
    )
    _, high = Look(t / 1000, alpha=alpha).interval(0.0, sigma / math.sqrt(t))
    assert high == pytest.approx(expected)


def test_likelihood_ratio_is_the_mixture_over_a_normal_distribution():
    # Effects drawn from N(0, tau^2), tau^2 = r se^2: integrate the likelihood ratio numerically.
    z, ratio = 2.3, 8.0
    mixture, _ = integrate.quad(
        lambda effect: (
            math.exp(z * effect - effect**2 / 2) * stats.norm.pdf(effect, scale=math.sqrt(ratio))
        ),
        -40,
        40,
    )
    assert Look(AT_8).p_value(z, 1.0) == pytest.approx(1 / mixture, rel=1e-6)


def test_one_sided_is_never_bolder_than_the_mixture_over_half_a_normal_distribution():
    z, ratio = 2.3, 8.0
    mixture, _ = integrate.quad(
        lambda effect: (
            2.0
            * math.exp(z * effect - effect**2 / 2)
            * stats.norm.pdf(effect, scale=math.sqrt(ratio))
        ),
        0,
        40,
    )
    p = Look(AT_8).upper_p(-z, 1.0)
    assert 1 / mixture <= p <= 1.1 / mixture


def test_one_sided_by_hand():
    # 3 e^-4 / (2 - e^-4)
    p = Look(AT_8).upper_p(-3.0, 1.0)
    assert p == pytest.approx(3.0 * math.exp(-4) / (2.0 - math.exp(-4)))
    assert Look(AT_8).upper_p(0.1, 1.0) == 1.0


@given(zs, informations, alphas)
def test_interval_leaves_out_0_exactly_when_p_is_under_alpha(z, information, alpha):
    p = Look(information, alpha=alpha).p_value(z, 1.0)
    low, high = Look(information, alpha=alpha).interval(z, 1.0)
    if abs(p - alpha) > 1e-9:
        assert (p < alpha) == (low > 0.0 or high < 0.0)


@given(zs, informations, alphas)
def test_bound_is_below_0_exactly_when_one_sided_p_is_under_alpha(z, information, alpha):
    p = Look(information, alpha=alpha).upper_p(z, 1.0)
    bound = Look(information, alpha=alpha).upper_bound(z, 1.0)
    if abs(p - alpha) > 1e-9:
        assert (p < alpha) == (bound < 0.0)


@given(zs, informations, st.floats(1, 1e6))
def test_a_look_is_never_bolder_than_a_planned_one(z, information, degrees):
    planned = 2.0 * stats.t.sf(abs(z), degrees)
    assert Look(information, degrees=degrees).p_value(z, 1.0) >= planned * 0.999


@given(st.floats(0, 6), informations, st.floats(2, 200))
def test_few_degrees_of_freedom_keep_interval_and_p_together(z, information, degrees):
    p = Look(information, degrees=degrees).p_value(z, 1.0)
    low, _ = Look(information, degrees=degrees).interval(z, 1.0)
    if abs(p - 0.05) > 1e-6:
        assert (p < 0.05) == (low > 0.0)


@given(st.floats(0.1, 1000))
def test_units_of_measurement_change_nothing(scale):
    one = Look(0.7).p_value(2.5, 1.0)
    assert Look(0.7).p_value(2.5 * scale, scale) == pytest.approx(one)


def test_peeking_at_a_t_test_finds_what_is_not_there_and_ours_does_not():
    random = np.random.default_rng(7)
    looks = [20 * look for look in range(1, 21)]
    naive = ours = 0
    for _ in range(REPETITIONS):
        left, right = random.normal(size=400), random.normal(size=400)
        found = [compare_arms(left[:n], right[:n], planned_units=800) for n in looks]
        naive += any(one.p_value <= 0.05 for one in found)
        ours += any(one.always_valid_p <= 0.05 for one in found)
    # Expected 24 % and under 5 %; 200 repetitions have standard errors of 3 and 1.5 points.
    assert naive / REPETITIONS > 0.16
    assert ours / REPETITIONS <= 0.05


def test_the_interval_covers_the_truth_at_all_looks_together():
    random = np.random.default_rng(8)
    misses = 0
    for _ in range(REPETITIONS):
        left, right = random.normal(0.3, 1.0, 400), random.normal(0.0, 2.0, 400)
        found = [
            compare_arms(left[:n], right[:n], planned_units=800).always_valid_interval
            for n in range(40, 401, 40)
        ]
        misses += any(not low <= 0.3 <= high for low, high in found)
    assert misses / REPETITIONS <= 0.05


def test_it_still_finds_what_is_there():
    random = np.random.default_rng(9)
    left, right = random.normal(0.3, 1.0, 800), random.normal(0.0, 1.0, 800)
    assert compare_arms(left, right, planned_units=1600).always_valid_p < 0.001


@pytest.mark.parametrize(
    ("error", "information", "message"),
    [(0.0, 1.0, "standard_error=0.0"), (1.0, 0.0, "information=0.0"), (math.nan, 1.0, "nan")],
)
def test_input_that_cannot_be(error, information, message):
    with pytest.raises(InputError, match=message):
        Look(information).p_value(1.0, error)
