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


Series = tuple[IntArray, FloatArray]
"""Days as numbers of the calendar, and a value of each."""
# Three weeks: with fewer, weekdays cannot be told from chance.
LEAST_FOR_WEEKDAYS = 21


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


def without_weekdays(
    windows: tuple[Series, Series],
) -> tuple[tuple[Series, Series], float]:
    """Return two windows of (days, values) without what weekdays differ by, and a factor.

    The effects of the weekdays, adding up to 0 over a week, are fitted by least squares together
    with a level for each window, so that whole weeks keep their means. What they took from the
    degrees of freedom, (n - 2) / (n - 2 - 6), is to be multiplied to a variance of the result.
    Nothing is taken out of fewer than ``LEAST_FOR_WEEKDAYS`` days, nor where a recent weekday has
    no day before it to be held against.
    """
    days = np.concatenate([day for day, _ in windows])
    values = np.concatenate([value for _, value in windows])
    weekdays = [np.unique(day % 7) for day, _ in windows]
    if days.size < LEAST_FOR_WEEKDAYS or not np.isin(weekdays[1], weekdays[0]).all():
        return windows, 1.0
    is_recent = np.repeat([0.0, 1.0], [day.size for day, _ in windows])
    seasons = weekday_columns(days)
    design = np.column_stack([1.0 - is_recent, is_recent, seasons])
    effects = (np.linalg.pinv(design) @ values)[2:]
    level = values - seasons @ effects
    first = windows[0][0].size
    freedom = days.size - 2
    factor = freedom / (freedom - seasons.shape[1])
    return ((windows[0][0], level[:first]), (windows[1][0], level[first:])), factor


def weekday_columns(days: IntArray) -> FloatArray:
    """Return the contrasts of the weekdays that occur, of shape (days, weekdays - 1).

    Each holds a weekday against the last one: their effects add up to 0 over a week.
    """
    known, place = np.unique(days % 7, return_inverse=True)
    each = np.eye(known.size)[place]
    return np.asarray(each[:, :-1] - each[:, -1:])


def _residual(off_fit: FloatArray, values: FloatArray) -> FloatArray:
    residual = off_fit @ values
    is_rounding = is_constant(residual, magnitude=largest(values))
    return np.zeros_like(residual) if is_rounding else residual
