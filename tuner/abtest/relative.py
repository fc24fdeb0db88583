"""How much two arms differ as a share of the control, whose own error counts as well."""

from __future__ import annotations

import math
from dataclasses import dataclass

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


def relative_interval(
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

    >>> low, high = relative_interval(ArmMeans(3.0, 2.0, 0.01, 0.01), 2.0)
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
