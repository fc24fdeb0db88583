import math

import numpy as np
import pytest
from scipy import stats

from tuner.core.errors import InputError
from tuner.stats import non_inferior_quantile, non_inferiority

NAN = float("nan")


def test_a_margin_in_the_metrics_unit_by_hand():
    result = non_inferiority(
        [1.0, 0.98, 1.0, 0.98, NAN], [1.0, 1.0, 1.0, 1.0, 1.0], margin=0.04, higher_is_better=True
    )
    # losses 0, .02, 0, .02: mean .01, sd = sqrt(4 * .01^2 / 3) = .011547, se .0057735
    # t = (.04 - .01) / .0057735 = 5.196152 = 3 sqrt 3; x = t / sqrt 3 = 3
    # one-sided p (3 degrees of freedom) = 1/2 - (atan 3 + 3/10) / pi = .5 - 1.549046 / pi = .006924
    # bound: .01 + 2.353363 * .0057735 = .023587
    assert (result.n, result.undefined) == (4, 1)
    assert (result.treatment, result.control) == pytest.approx((0.99, 1.0))
    assert result.loss == pytest.approx(0.01)
    assert result.p_value == pytest.approx(0.5 - (math.atan(3) + 0.3) / math.pi)
    assert result.loss_bound == pytest.approx(0.023587, abs=1e-6)
    assert result.is_non_inferior
    assert result.remark is None


def test_rare_large_losses_cost_degrees_of_freedom():
    # losses 0 nine times and 1: mean .1, se .1; k = 8.1111, df = 2.72727 (see test_paired)
    # margin .5: t = (.5 - .1) / .1 = 4
    result = non_inferiority(
        [1.0] * 9 + [0.0], [1.0] * 10, margin=0.5, higher_is_better=True
    )  # fmt: skip
    assert result.p_value == pytest.approx(stats.t.sf(4.0, 2.72727), abs=1e-5)
    assert result.loss_bound == pytest.approx(0.1 + stats.t.isf(0.05, 2.72727) * 0.1, abs=1e-5)


def test_a_relative_margin_by_hand():
    result = non_inferiority(
        [10.0, 11.0, 10.0, 11.0],
        [10.0, 10.0, 10.0, 10.0],
        margin=0.10,
        higher_is_better=False,
        is_relative=True,
    )
    # losses 0, 1, 0, 1: mean .5, sd .57735, se .288675; 10 % of 10 is 1
    # t = (1 - .5) / .288675 = sqrt 3; x = 1; p = 1/2 - (pi/4 + 1/2) / pi = .090845
    # bound: (.5 + 2.353363 * .288675) / 10 = .117936
    assert result.loss == pytest.approx(0.05)
    assert result.p_value == pytest.approx(0.5 - (math.pi / 4 + 0.5) / math.pi)
    assert result.loss_bound == pytest.approx(0.117936, abs=1e-6)
    assert not result.is_non_inferior


def test_a_rise_in_latency_is_never_an_improvement():
    before = np.array([10.0, 12.0, 11.0, 13.0, 12.0])
    after = before * 2 + [0.0, 0.1, -0.1, 0.0, 0.2]
    slower = non_inferiority(after, before, margin=0.5, higher_is_better=False)
    faster = non_inferiority(before, after, margin=0.5, higher_is_better=False)
    assert slower.loss > 0
    assert not slower.is_non_inferior
    assert faster.loss < 0
    assert faster.is_non_inferior


def test_no_visible_difference_on_few_queries_is_not_evidence():
    treatment, control = [0.9, 0.1, 0.5], [0.1, 0.9, 0.5]
    result = non_inferiority(treatment, control, margin=0.01, higher_is_better=True)
    assert result.loss == pytest.approx(0.0)
    assert not result.is_non_inferior


@pytest.mark.parametrize("is_relative", [False, True])
def test_the_bound_is_the_margin_that_just_passes(is_relative):
    random = np.random.default_rng(2)
    control = random.gamma(4.0, 5.0, 40)
    treatment = control * 1.05 + random.normal(0.0, 2.0, 40)
    options = {"higher_is_better": False, "is_relative": is_relative}
    bound = non_inferiority(treatment, control, margin=0.1, **options).loss_bound
    at_bound = non_inferiority(treatment, control, margin=bound, **options)
    assert at_bound.p_value == pytest.approx(0.05)


def test_a_control_that_may_be_0_sets_no_relative_bound():
    result = non_inferiority(
        [1.0, 1.1, 0.9], [9.0, -4.0, 0.5], margin=0.1, higher_is_better=True, is_relative=True
    )
    assert result.loss_bound is None
    assert not result.is_non_inferior


def test_identical_values_pass_once_there_are_five():
    # 2^-4 = .0625 > .05 >= 2^-5 = .03125
    four = non_inferiority([0.5] * 4, [0.5] * 4, margin=0.01, higher_is_better=True)
    five = non_inferiority([0.5] * 5, [0.5] * 5, margin=0.01, higher_is_better=True)
    assert (four.p_value, four.is_non_inferior) == (0.0625, False)
    assert (five.p_value, five.is_non_inferior) == (0.03125, True)
    assert "differ by the same amount" in five.remark
    # With no margin at all only a gain passes.
    zero = non_inferiority([0.5] * 9, [0.5] * 9, margin=0.0, higher_is_better=True)
    assert (zero.p_value, zero.is_non_inferior) == (1.0, False)


@pytest.mark.parametrize(("treatment", "control"), [([], []), ([NAN], [1.0]), ([0.5], [0.5])])
def test_fewer_than_two_queries_never_pass(treatment, control):
    result = non_inferiority(treatment, control, margin=1.0, higher_is_better=True)
    assert result.p_value is None
    assert not result.is_non_inferior
    assert result.remark
    tail = non_inferior_quantile(
        treatment, control, quantile=0.95, margin=1.0, higher_is_better=False, seed=0
    )
    assert tail.p_value is None
    assert not tail.is_non_inferior


def test_a_loss_of_exactly_the_margin_passes_about_once_in_twenty():
    random = np.random.default_rng(5)
    passed = 0
    for _ in range(400):
        control = random.normal(0.6, 0.2, 40)
        treatment = control - 0.02 + random.normal(0.0, 0.1, 40)
        passed += non_inferiority(
            treatment, control, margin=0.02, higher_is_better=True
        ).is_non_inferior
    assert 4 <= passed <= 42  # 20 expected, standard deviation 4.4


def test_a_quantile_that_grows_by_half_on_every_draw():
    control = np.random.default_rng(6).gamma(3.0, 4.0, 120)
    options = {"quantile": 0.95, "higher_is_better": False, "seed": 1, "is_relative": True}
    strict = non_inferior_quantile(control * 1.5, control, margin=0.4, **options)
    loose = non_inferior_quantile(control * 1.5, control, margin=0.6, **options)
    assert (strict.loss, strict.loss_bound) == pytest.approx((0.5, 0.5))
    assert strict.control == pytest.approx(np.percentile(control, 95))
    assert (strict.p_value, strict.is_non_inferior) == (1.0, False)
    assert (loose.p_value, loose.is_non_inferior) == (1 / 2000, True)


def test_a_quantile_is_not_judged_by_the_mean():
    control = np.full(200, 10.0)
    treatment = np.where(np.arange(200) < 20, 30.0, 7.0)  # a mean of 9.3, a p95 of 30
    mean = non_inferiority(treatment, control, margin=1.0, higher_is_better=False)
    tail = non_inferior_quantile(
        treatment, control, quantile=0.95, margin=1.0, higher_is_better=False, seed=0
    )
    assert mean.is_non_inferior
    assert tail.loss == pytest.approx(20.0)
    assert not tail.is_non_inferior


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"margin": -0.1}, "margin=-0.1"),
        ({"margin": NAN}, "margin=nan"),
        ({"margin": 0.1, "alpha": 5}, "alpha=5"),
        ({"margin": 0.1, "is_relative": True}, "a share of it is undefined"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        non_inferiority([1.0, 2.0], [0.0, 0.0], higher_is_better=True, **options)
    with pytest.raises(InputError, match=message):
        non_inferior_quantile(
            [1.0, 2.0], [0.0, 0.0], quantile=0.5, seed=0, higher_is_better=True, **options
        )
