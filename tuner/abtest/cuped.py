"""CUPED: a narrower interval from what was known of each unit before the experiment began."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tuner.abtest.comparison import compare_arms
from tuner.core.errors import InputError
from tuner.core.rankings import FloatArray

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
