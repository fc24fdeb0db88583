import math

import pytest
from statsmodels.stats.power import TTestIndPower, TTestPower

from tuner.core.errors import InputError
from tuner.stats import (
    minimum_detectable_difference,
    minimum_detectable_effect,
    power_paired,
    power_unpaired,
    queries_needed,
    sample_size_paired,
    sample_size_unpaired,
)


@pytest.mark.parametrize(
    ("effect", "paired", "arm"), [(0.2, 199, 394), (0.5, 34, 64), (0.8, 15, 26)]
)
def test_published_sample_sizes(effect, paired, arm):
    assert sample_size_paired(effect) == sample_size_paired(-effect) == paired
    assert sample_size_unpaired(effect) == arm


@pytest.mark.parametrize(
    ("n", "effect"), [(50, 0.404), (100, 0.283), (200, 0.199), (500, 0.126), (1000, 0.089)]
)
def test_published_minimum_detectable_effects(n, effect):
    assert minimum_detectable_effect(n) == pytest.approx(effect, abs=0.0006)


def test_the_normal_approximation_for_two_samples_is_not_what_is_computed():
    # 2 (1.95996 + .84162)^2 / .5^2 = 62.8: what a snippet gives for a paired design of d = .5.
    approximation = 2 * (1.95996 + 0.84162) ** 2 / 0.5**2
    assert approximation == pytest.approx(62.8, abs=0.1)
    assert sample_size_paired(0.5) == 34
    assert sample_size_unpaired(0.5) == 64


def test_power_of_two_queries_by_hand():
    # With no effect the power is alpha itself, whatever n.
    assert power_paired(0.0, 2) == pytest.approx(0.05)
    assert power_unpaired(0.0, 9, alpha=0.01) == pytest.approx(0.01)


@pytest.mark.parametrize("n", [2, 5, 30, 400])
@pytest.mark.parametrize("effect", [0.05, 0.2])
@pytest.mark.parametrize("alpha", [0.01, 0.05])
def test_power_agrees_with_statsmodels(n, effect, alpha):
    assert power_paired(effect, n, alpha=alpha) == pytest.approx(
        TTestPower().power(effect, n, alpha), abs=1e-12
    )
    assert power_unpaired(effect, n, alpha=alpha) == pytest.approx(
        TTestIndPower().power(effect, n, alpha), abs=1e-12
    )


@pytest.mark.parametrize(("effect", "alpha", "power"), [(0.15, 0.05, 0.9), (0.4, 0.01, 0.8)])
def test_sizes_agree_with_statsmodels(effect, alpha, power):
    size = TTestPower().solve_power(effect, alpha=alpha, power=power)
    assert sample_size_paired(effect, alpha=alpha, power=power) == math.ceil(size)
    arm = TTestIndPower().solve_power(effect, alpha=alpha, power=power)
    assert sample_size_unpaired(effect, alpha=alpha, power=power) == math.ceil(arm)


def test_extreme_effects_have_an_answer():
    assert sample_size_paired(1e6) == 2
    # For tiny effects the normal approximation is exact: (1.95996 + .84162)^2 / d^2 = 7.8489e12
    assert sample_size_paired(1e-6) == pytest.approx(7.8489e12, rel=1e-4)
    assert power_paired(100.0, 1000) == pytest.approx(1.0)


def test_queries_needed_is_in_the_units_of_the_metric():
    assert queries_needed(0.02, 0.1) == queries_needed(-0.02, 0.1) == 199  # d_z = .02 / .1 = .2
    assert queries_needed(0.02, 0.0) == 2
    # .2829 * .1
    assert minimum_detectable_difference(100, 0.1) == pytest.approx(0.02829, abs=1e-5)
    assert minimum_detectable_difference(100, 0.0) == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sample_size_paired(0.0), "effect_size=0.0"),
        (lambda: sample_size_unpaired(float("nan")), "effect_size=nan"),
        (lambda: sample_size_paired(0.2, power=1.0), "power=1.0"),
        (lambda: sample_size_paired(0.2, alpha=0.0), "alpha=0.0"),
        (lambda: queries_needed(0.0, 0.1), "no number of queries shows it"),
        (lambda: queries_needed(0.1, -0.1), "standard_deviation=-0.1"),
        (lambda: queries_needed(0.1, float("nan")), "standard_deviation=nan"),
        (lambda: minimum_detectable_effect(1), "n=1"),
        (lambda: minimum_detectable_effect(10, alpha=0.5, power=0.4), "must be above alpha"),
        (lambda: power_unpaired(0.2, 1), "n=1"),
    ],
)
def test_questions_without_an_answer_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
