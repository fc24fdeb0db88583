"""Ratio metrics, such as clicks per query, where users count by how much they did."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuner.core.errors import InputError
from tuner.core.rankings import FloatArray


def linearised(numerators: npt.ArrayLike, denominators: npt.ArrayLike) -> FloatArray:
    """Return a value for each unit whose mean is sum(numerators) / sum(denominators).

    The delta method (Deng, Knoblich and Lu 2018): with R the ratio of the sums, unit i counts
    R + (y_i - R x_i) / mean(x), and the variance of these / n is the ratio's. Taking each row for a
    unit instead makes intervals too narrow, as the rows of one user are alike.

    y = 1, 3, 0 and x = 2, 4, 2: R = .5, mean(x) = 8/3, so .5, .5 + 1 / (8/3), .5 - 1 / (8/3).

    >>> linearised([1, 3, 0], [2, 4, 2]).tolist()
    [0.5, 0.875, 0.125]

    Raises:
        InputError: shapes differ, or a denominator is negative, or all are 0.
    """
    top = np.asarray(numerators, dtype=np.float64)
    bottom = np.asarray(denominators, dtype=np.float64)
    if top.shape != bottom.shape or top.ndim != 1:
        raise InputError(
            f"numerators of shape {top.shape} and denominators of shape {bottom.shape}; give one "
            "of each for every unit"
        )
    if (bottom < 0.0).any():
        raise InputError("a denominator is negative: it must count or measure something")
    if not bottom.any():
        raise InputError("all denominators are 0: the ratio is undefined")
    ratio = float(top.sum() / bottom.sum())
    return np.asarray(ratio + (top - ratio * bottom) / bottom.mean(), dtype=np.float64)
