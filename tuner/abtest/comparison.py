"""Two arms of different units, such as users: how much their means differ, and how surely.

Units are what was assigned, such as users, each one value. Ratios come here as values of units by
``linearised``. CUPED's adjusted values, whose interval is narrower, are values like others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.abtest.sequential import Look
from tuner.core.errors import InputError
from tuner.core.rankings import FloatArray
from tuner.stats.pairs import check_share, is_constant, largest
from tuner.stats.resampling import Interval

# Nothing that is counted or measured from 0 up can be lost by more than all of it.
ALL_OF_IT = -1.0


@dataclass(frozen=True)
class ArmMeans:
    """Two independent estimates with the variances of these estimates (not of the values)."""

    treatment: float
    control: float
    treatment_variance: float
    control_variance: float


def fieller_interval(
    means: ArmMeans, width: float, *, is_from_0_up: bool = False
) -> Interval | None:
    """Return Fieller's interval (1954) of (treatment - control) / abs(control).

    It holds every share r with |T - (1 + r) C| <= width * sqrt(v_T + (1 + r)^2 v_C), where
    ``width`` is that of the difference's interval in standard errors: each r is tested as the
    difference is, so the interval covers as that one does, at any number of looks too. Dividing
    the difference's interval by the control instead takes the control for known, which covers
    too little as soon as the lift is large. None where the control cannot be told from 0 at this
    width: the share is then unbounded. ``is_from_0_up``: no value is negative, so that no more
    than all of the control can be lost.

    T = 3, C = 2, variances .01, width 2: (4 - .04) q^2 - 12 q + (9 - .04) = 0, q = 1.333 and 1.697.

    >>> low, high = fieller_interval(ArmMeans(3.0, 2.0, 0.01, 0.01), 2.0)
    >>> round(low, 3), round(high, 3)
    (0.333, 0.697)
    """
    a = means.control**2 - width**2 * means.control_variance
    b = means.treatment * means.control
    c = means.treatment**2 - width**2 * means.treatment_variance
    root = b**2 - a * c
    if a <= 0.0 or root < 0.0 or not math.isfinite(root):
        return None
    low, high = (b - math.sqrt(root)) / a, (b + math.sqrt(root)) / a
    low, high = (low - 1.0, high - 1.0) if means.control > 0 else (1.0 - high, 1.0 - low)
    return (max(low, ALL_OF_IT), max(high, ALL_OF_IT)) if is_from_0_up else (low, high)


@dataclass(frozen=True)
class ArmComparison:
    """What two independent samples say about treatment minus control; None where undefined.

    Attributes:
        n_treatment: units with a value.
        n_control: units with a value.
        treatment: the treatment's mean, ratio or quantile.
        control: the same of the control.
        difference: ``treatment`` - ``control``.
        relative: ``difference`` / abs(``control``); None where the control is 0.
        standard_error: of ``difference``.
        alpha: of both intervals and what p-values may be held against.
        interval: covers the true difference at one look that was planned before.
        p_value: two-sided, for that look; None: not tested.
        always_valid_interval: covers it at all looks together.
        always_valid_p: for any number of looks.
        relative_interval, always_valid_relative_interval: the same two of ``relative``; None where
            the control cannot be told from 0.
        remark: why nothing was tested, else None.
    """

    n_treatment: int
    n_control: int
    treatment: float | None
    control: float | None
    difference: float | None
    relative: float | None
    standard_error: float | None = None
    alpha: float = 0.05
    interval: Interval | None = None
    p_value: float | None = None
    always_valid_interval: Interval | None = None
    always_valid_p: float | None = None
    relative_interval: Interval | None = None
    always_valid_relative_interval: Interval | None = None
    remark: str | None = None

    @property
    def is_share(self) -> bool:
        """Say whether the difference can be told as a share of the control."""
        return self.relative is not None and self.always_valid_relative_interval is not None


def compare_arms(
    treatment: npt.ArrayLike,
    control: npt.ArrayLike,
    *,
    planned_units: float,
    alpha: float = 0.05,
    is_from_0_up: bool = False,
) -> ArmComparison:
    """Compare the means of two arrays of values of units, shapes (n,) and (m,); NaN is left out.

    Welch's t-test (1947), which lets the arms have different variances: t = difference /
    sqrt(var_t / n + var_c / m) with Satterthwaite's degrees of freedom. A pooled variance is wrong
    as soon as a split of 10 to 90 meets a treatment that changes the spread. ``planned_units`` of
    both arms together tune the always-valid side, see ``tuner.abtest.sequential``. ``is_from_0_up``
    says that what is measured is never negative, so that at most all of the control can be lost.

    1, 2, 3, 6 against 1, 1, 2, 2: difference 1.5, variances 14/3 and 1/3, t = 1.5 / sqrt(1.25) =
    1.342 with 3.43 degrees of freedom, p = .26.

    >>> result = compare_arms([1, 2, 3, 6], [1, 1, 2, 2], planned_units=8)
    >>> round(result.p_value, 2)
    0.26

    Raises:
        InputError: an array is not one-dimensional or holds an infinity, or no units are planned.
    """
    check_share("alpha", alpha)
    left, right = unit_values(treatment, "treatment"), unit_values(control, "control")
    remark = why_untested(left, right)
    if remark is not None:
        means = (mean_of(left), mean_of(right))
        return untested(left.size, right.size, *means, alpha=alpha, remark=remark)
    from scipy import special

    difference, error, degrees = welch(left, right)
    width = -float(special.stdtrit(degrees, alpha / 2))
    arms = ArmMeans(
        float(left.mean()),
        float(right.mean()),
        float(left.var(ddof=1)) / left.size,
        float(right.var(ddof=1)) / right.size,
    )
    return tested(
        left.size,
        right.size,
        arms,
        error,
        Look((left.size + right.size) / planned_units, alpha, degrees),
        interval=(difference - error * width, difference + error * width),
        p_value=2.0 * float(special.stdtr(degrees, -abs(difference) / error)),
        relative_interval=fieller_interval(arms, width, is_from_0_up=is_from_0_up),
        is_from_0_up=is_from_0_up,
    )


def skewness_of_difference(treatment: npt.ArrayLike, control: npt.ArrayLike) -> float:
    """Return the skewness of the difference of two means; 0 is what Welch's test takes it for.

    (k_t / n^2 - k_c / m^2) / (v_t / n + v_c / m)^1.5 with the third and second central moments k
    and v of the arms. In equal arms it cancels out; in a small arm of rare or skewed values not.

    0, 0, 0, 4 against 1, 1, 1: k = 6, v = 3, so (6 / 16) / (3 / 4)^1.5 = .577.

    >>> round(skewness_of_difference([0, 0, 0, 4], [1, 1, 1]), 3)
    0.577
    """
    third, second = 0.0, 0.0
    arms = ((unit_values(treatment, "treatment"), 1.0), (unit_values(control, "control"), -1.0))
    for values, sign in arms:
        if values.size:
            off = values - values.mean()
            third += sign * float((off**3).mean()) / values.size**2
            second += float((off**2).mean()) / values.size
    return third / second**1.5 if second > 0.0 else 0.0


def untested(
    n_treatment: int,
    n_control: int,
    treatment: float | None,
    control: float | None,
    *,
    alpha: float,
    remark: str,
) -> ArmComparison:
    """Return a comparison that holds the figures of both arms, and why nothing was tested."""
    difference = None if treatment is None or control is None else treatment - control
    relative = difference / abs(control) if difference is not None and control else None
    return ArmComparison(
        n_treatment, n_control, treatment, control, difference, relative, alpha=alpha, remark=remark
    )


def tested(
    n_treatment: int,
    n_control: int,
    arms: ArmMeans,
    standard_error: float,
    look: Look,
    *,
    interval: Interval,
    p_value: float,
    relative_interval: Interval | None,
    is_from_0_up: bool,
) -> ArmComparison:
    """Complete a comparison by its difference, relative difference and always-valid side."""
    difference = arms.treatment - arms.control
    wide = look.interval(0.0, 1.0)[1]
    return ArmComparison(
        n_treatment,
        n_control,
        arms.treatment,
        arms.control,
        difference,
        difference / abs(arms.control) if arms.control else None,
        standard_error,
        look.alpha,
        interval,
        p_value,
        look.interval(difference, standard_error),
        look.p_value(difference, standard_error),
        relative_interval,
        fieller_interval(arms, wide, is_from_0_up=is_from_0_up),
    )


def unit_values(values: npt.ArrayLike, name: str) -> FloatArray:
    """Return the defined values of an arm, sorted, so that their order changes no digit.

    Raises:
        InputError: not one-dimensional, or an infinity.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise InputError(f"the {name} has shape {array.shape}; give one value a unit")
    if np.isinf(array).any():
        raise InputError(f"the {name} holds an infinite value; write NaN where there is none")
    return np.sort(array[~np.isnan(array)])


def mean_of(values: FloatArray) -> float | None:
    """Return the mean; None for no values."""
    return float(values.mean()) if values.size else None


def welch(left: FloatArray, right: FloatArray) -> tuple[float, float, float]:
    """Return the difference of means, its standard error, and Satterthwaite's degrees of freedom.

    df = (u + v)^2 / (u^2 / (n - 1) + v^2 / (m - 1)) with u = var / n and v = var / m. As scipy's
    ``ttest_ind``, which warns where one of the arms is constant.
    """
    u, v = left.var(ddof=1) / left.size, right.var(ddof=1) / right.size
    degrees = (u + v) ** 2 / (u**2 / (left.size - 1) + v**2 / (right.size - 1))
    return float(left.mean() - right.mean()), math.sqrt(u + v), float(degrees)


def why_untested(left: FloatArray, right: FloatArray) -> str | None:
    """Say why two arms cannot be tested; None where they can."""
    for name, values in (("treatment", left), ("control", right)):
        if values.size < 2:
            count = {0: "no unit", 1: "only one unit"}[values.size]
            return f"{count} of the {name} has a value: a test needs at least two in each arm"
    magnitude = largest(left, right)
    if is_constant(left, magnitude=magnitude) and is_constant(right, magnitude=magnitude):
        return "all units of each arm have the same value: there is no spread to test against"
    return None


# A true value from before the experiment differs between the arms so clearly in one of 1,000.
BALANCE_ALPHA = 0.001


@dataclass(frozen=True, eq=False)
class Adjusted:
    """Values of units after CUPED.

    Attributes:
        treatment: shape (n,), adjusted, in the order given.
        control: shape (m,).
        theta: what was subtracted for each unit of the covariate.
        variance_reduction: 1 - variance after / variance before, of the difference of means.
    """

    treatment: FloatArray
    control: FloatArray
    theta: float
    variance_reduction: float


def adjust_cuped(
    treatment: FloatArray,
    control: FloatArray,
    treatment_before: FloatArray,
    control_before: FloatArray,
) -> Adjusted:
    """Subtract from each value what the same unit's value from before explains.

    Deng, Xu, Kohavi and Walker 2013: y - theta (x - mean(x)), theta = cov(x, y) / var(x) over the
    units of both arms. The means of the arms differ by as much as before in expectation, with the
    variance lower by the squared correlation. A unit without a value from before (NaN) gets the
    mean, which changes nothing for it.

    x = 1, 2, 3, 4 and y = 2, 4, 7, 7 (the first two treatment): cov = 3, var = 5/3, theta = 1.8,
    so 2 + 2.7, 4 + .9 and 7 - .9, 7 - 2.7.

    Raises:
        InputError: the covariate cannot be from before the experiment: it differs between the arms
            (p < .001), which only the treatment itself can have caused.
    """
    y = np.concatenate([treatment, control])
    x = np.concatenate([treatment_before, control_before])
    if y.shape != x.shape:
        raise InputError("give one value from before for each unit, NaN where there is none")
    known = ~np.isnan(x)
    if np.count_nonzero(known) < 3 or float(np.ptp(x[known])) == 0.0:
        return Adjusted(treatment, control, 0.0, 0.0)
    balance = compare_arms(treatment_before, control_before, planned_units=y.size)
    if balance.p_value is not None and balance.p_value < BALANCE_ALPHA:
        raise InputError(
            f"the values from before already differ between the arms (p = {balance.p_value:.1g}): "
            "they are not from before the experiment, or the arms were not assigned at random"
        )
    centred = np.where(known, x - x[known].mean(), 0.0)
    theta = float(np.dot(centred, y - y.mean()) / np.dot(centred, centred))
    after = y - theta * centred
    left, right = after[: treatment.size], after[treatment.size :]
    before = _variance(treatment, control)
    reduction = 1.0 - _variance(left, right) / before if before > 0.0 else 0.0
    return Adjusted(left, right, theta, reduction)


def _variance(left: FloatArray, right: FloatArray) -> float:
    if min(left.size, right.size) < 2:
        return math.nan
    return float(left.var(ddof=1) / left.size + right.var(ddof=1) / right.size)
