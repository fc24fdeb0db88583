"""Variance of what is fitted to daily values that resemble those of the day before."""

from __future__ import annotations

import numpy as np

from tuner.core.rankings import FloatArray, IntArray
from tuner.stats.pairs import is_constant, largest

# Beyond it, a month of days says no more than one or two independent ones would.
_HIGHEST = 0.95
_GRID = np.linspace(0.0, _HIGHEST, 96)


def centring(size: int) -> FloatArray:
    """Return the matrix that takes the mean away from ``size`` values."""
    return np.asarray(np.eye(size) - 1.0 / size)


def _apart(days: IntArray) -> IntArray:
    return np.asarray(np.abs(days[:, None] - days[None, :]))


def mean_variance(days: IntArray, values: FloatArray, rho: float) -> tuple[float, float]:
    """Return the variance of the mean and its degrees of freedom; see ``spread``."""
    weights = np.full(days.size, 1.0 / days.size)
    return spread(days, centring(days.size), values, weights, rho)


def spread(
    days: IntArray, off_fit: FloatArray, values: FloatArray, weights: FloatArray, rho: float
) -> tuple[float, float]:
    """Return the variance of ``weights @ values`` and its degrees of freedom.

    ``off_fit`` is the matrix M that leaves the residuals e of the fit, and R_ij =
    rho^|day_i - day_j|: s^2 = e'e / tr(MR), variance = s^2 w'Rw, degrees = tr(MR)^2 / tr(MRMR).
    """
    related = rho ** _apart(days)
    residual = off_fit @ values
    if is_constant(residual, magnitude=largest(values)):
        residual = np.zeros_like(residual)
    seen = off_fit @ related
    trace = float(np.trace(seen))
    variance = float(residual @ residual) / trace * float(weights @ related @ weights)
    return variance, trace**2 / float(np.trace(seen @ seen))


def autocorrelation(parts: list[tuple[IntArray, FloatArray, FloatArray]]) -> float:
    """Estimate the correlation of a day with the next from residuals, at least 0.

    The sample's figure is too low, since the fit follows the series: the one returned is that for
    which the expected figure, tr(MLMR) / tr(MR) with L for neighbouring days, is the one seen.
    Without neighbouring days it is 0. ``parts`` are days, M and values of each window.
    """
    product, square = 0.0, 0.0
    expected_product, expected_square = np.zeros_like(_GRID), np.zeros_like(_GRID)
    for days, off_fit, values in parts:
        apart = _apart(days)
        neighbours = off_fit @ (0.5 * (apart == 1)) @ off_fit
        product += float(values @ neighbours @ values)
        square += float(values @ off_fit @ values)
        powers = _GRID[:, None] ** np.arange(int(apart.max()) + 1)
        # Both are sums of a matrix times rho^apart: added up by distance first.
        expected_product += powers @ np.bincount(apart.ravel(), neighbours.ravel())
        expected_square += powers @ np.bincount(apart.ravel(), off_fit.ravel())
    if square <= 1e-24 or not any((_apart(days) == 1).any() for days, _, _ in parts):
        return 0.0
    expected = np.maximum.accumulate(expected_product / expected_square)
    return float(np.interp(product / square, expected, _GRID))
