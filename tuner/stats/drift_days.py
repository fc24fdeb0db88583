"""Variance of what is fitted to daily values that resemble those of the day before."""

from __future__ import annotations

import numpy as np

from tuner.core.rankings import FloatArray, IntArray
from tuner.stats.pairs import is_constant, largest

# Beyond it, a month of days says no more than one or two independent ones would.
_HIGHEST = 0.95
# An estimate that happens to be too low makes an alarm of nothing. With this share of a standard
# error on top, no more than 5 % of looks are false at an autocorrelation up to .6; without it up to
# 8 % (experiments/statistics/README.md).
MARGIN = 0.75
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
    residual = _residual(off_fit, values)
    seen = off_fit @ related
    trace = float(np.trace(seen))
    variance = float(residual @ residual) / trace * float(weights @ related @ weights)
    return variance, trace**2 / float(np.trace(seen @ seen))


def autocorrelation(parts: list[tuple[IntArray, FloatArray, FloatArray]]) -> float:
    """Estimate the correlation of a day with the next from residuals, from 0 to .95.

    The sample's figure is too low, since the fit follows the series: taken is the one for which the
    expected figure, tr(MLMR) / tr(MR) with L for neighbouring days, is the one seen. To that comes
    ``MARGIN`` of its standard error, sqrt((1 - rho^2) / pairs) (Bartlett 1946). It is 0 without
    neighbouring days. ``parts`` are days, M and values of each window.
    """
    product, square = 0.0, 0.0
    expected_product, expected_square = np.zeros_like(_GRID), np.zeros_like(_GRID)
    for days, off_fit, values in parts:
        apart = _apart(days)
        neighbours = off_fit @ (0.5 * (apart == 1)) @ off_fit
        residual = _residual(off_fit, values)
        product += float(residual @ neighbours @ residual)
        square += float(residual @ residual)
        powers = _GRID[:, None] ** np.arange(int(apart.max()) + 1)
        # Both are sums of a matrix times rho^apart: added up by distance first.
        expected_product += powers @ np.bincount(apart.ravel(), neighbours.ravel())
        expected_square += powers @ np.bincount(apart.ravel(), off_fit.ravel())
    pairs = sum(int(np.count_nonzero(np.diff(days) == 1)) for days, _, _ in parts)
    if square == 0.0 or pairs == 0:
        return 0.0
    expected = np.maximum.accumulate(expected_product / expected_square)
    rho = float(np.interp(product / square, expected, _GRID))
    return min(rho + MARGIN * float(np.sqrt((1.0 - rho**2) / pairs)), _HIGHEST)


def _residual(off_fit: FloatArray, values: FloatArray) -> FloatArray:
    residual = off_fit @ values
    is_rounding = is_constant(residual, magnitude=largest(values))
    return np.zeros_like(residual) if is_rounding else residual
