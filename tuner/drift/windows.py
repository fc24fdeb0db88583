"""Did a series of daily figures change? Windows of days, a trend, and the mix of kinds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tuner.core.errors import InputError
from tuner.core.rankings import BoolArray, FloatArray, IntArray
from tuner.drift.observations import (
    LEAST_FOR_WEEKDAYS,
    Series,
    autocorrelation,
    centring,
    mean_variance,
    spread,
    weekday_columns,
    without_weekdays,
)
from tuner.stats.paired import degrees_of_freedom
from tuner.stats.pairs import check_share, is_constant, largest
from tuner.stats.resampling import Interval

Worse = Literal["lower", "higher"]
"""The direction of a change for the worse."""


@dataclass(frozen=True)
class Change:
    """How the level of a daily figure moved; None where there is nothing to estimate it from.

    Attributes:
        before, after: the level in the reference and the recent days; of a trend, its ends.
        difference: ``after - before``.
        relative: difference / abs(before); None where that is 0.
        interval: where the true difference lies with probability ``confidence``; None where the
            figures show no spread at all.
        p_value: one-sided, of no change for the worse. It is at most (1 - confidence) / 2 exactly
            where ``interval`` lies on the worse side of 0.
        days_before, days_after: days with data; of a trend, all of them and 0.
        queries: common to both windows where these were paired by query, else 0.
        autocorrelation: that was estimated and allowed for, between one day and the next.
    """

    before: float
    after: float
    difference: float
    relative: float | None
    interval: Interval | None
    confidence: float
    p_value: float
    days_before: int
    days_after: int
    queries: int = 0
    autocorrelation: float = 0.0


def compare_windows(
    reference_days: npt.ArrayLike,
    reference: npt.ArrayLike,
    recent_days: npt.ArrayLike,
    recent: npt.ArrayLike,
    *,
    worse: Worse = "lower",
    confidence: float = 0.95,
) -> Change:
    """Compare the mean of recent days with that of reference days, one value a day.

    Welch 1947, the variance of each mean enlarged for days that resemble their neighbours: with
    an autocorrelation of r from one day to the next, R_ij = r^|day_i - day_j|, s^2 = e'e / tr(MR)
    for residuals e = My, and var(mean) = s^2 1'R1 / n^2, which is s^2 / n for r = 0 (first-order
    autoregression plugged in, as Andrews 1991). Days are numbers of the calendar, so a gap counts
    as what it is. r is estimated within the windows and errs on the high side. From three weeks of
    days on, what weekdays differ by is taken out first: see ``without_weekdays``.

    .8, .6 then .5, .3: difference -.3, V = .02/2 + .02/2, t = -.3 / .1414 = -2.121, df = 2: .084.

    >>> change = compare_windows([1, 3], [0.8, 0.6], [5, 7], [0.5, 0.3])
    >>> round(change.difference, 3), round(change.p_value, 3)
    (-0.3, 0.084)

    Raises:
        InputError: fewer than two days in a window, a day twice, or values that are not finite.
    """
    check_share("confidence", confidence)
    windows = (
        _series(reference_days, reference, "the reference window"),
        _series(recent_days, recent, "the recent window"),
    )
    windows, factor = without_weekdays(windows)
    rho = autocorrelation([(days, centring(days.size), values) for days, values in windows])
    first, second = _variances(windows, rho, factor)
    return _change(
        float(windows[0][1].mean()),
        float(windows[1][1].mean()),
        (first, second),
        worse=worse,
        confidence=confidence,
        days=(windows[0][0].size, windows[1][0].size),
        rho=rho,
        magnitude=largest(windows[0][1], windows[1][1]),
    )


def compare_windows_paired(
    days: npt.ArrayLike,
    queries: npt.ArrayLike,
    values: npt.ArrayLike,
    is_recent: npt.ArrayLike,
    *,
    worse: Worse = "lower",
    confidence: float = 0.95,
) -> Change:
    """Compare recent with reference days by the queries that were judged in both.

    One value for each query and day. Each query is its own control: the estimate is the mean over
    queries of d_q = its recent mean - its reference mean. Its variance is that over queries, with
    ``degrees_of_freedom``, plus that over days of what queries have in common on a day: clustered
    both ways without the term for the cells (Cameron, Gelbach and Miller 2011), which errs on the
    wide side; degrees of freedom by Satterthwaite 1946. Where a night gives what the night before
    did, the days add nothing, and this is the paired t-test over queries.

    Query 1: .8, .8 then .6, .6; query 2: .5, .5 then .4, .4: d = -.2, -.1, mean -.15, t = -3.

    >>> change = compare_windows_paired(
    ...     [1, 2, 8, 9] * 2, [0] * 4 + [1] * 4,
    ...     [0.8, 0.8, 0.6, 0.6, 0.5, 0.5, 0.4, 0.4], [0, 0, 1, 1] * 2,
    ... )
    >>> round(change.difference, 3), round(change.p_value, 4)
    (-0.15, 0.1024)

    Raises:
        InputError: fewer than two queries in both windows, or fewer than two days in one.
    """
    check_share("confidence", confidence)
    day, value = np.asarray(days, dtype=np.int64), np.asarray(values, dtype=np.float64)
    query = np.unique(np.asarray(queries), return_inverse=True)[1]
    recent = np.asarray(is_recent, dtype=np.bool_)
    means = np.stack([_means_by(query, value, part) for part in (~recent, recent)])
    is_common = np.asarray(np.isfinite(means).all(axis=0), dtype=np.bool_)
    if np.count_nonzero(is_common) < 2:
        raise InputError("pairing needs at least two queries that were judged in both windows")
    kept = is_common[query]
    day, value, query, recent = day[kept], value[kept], query[kept], recent[kept]
    residual = value - means[recent.astype(np.int64), query]
    series = []
    for part, name in ((~recent, "the reference window"), (recent, "the recent window")):
        dates = np.unique(day[part])
        shared = [float(residual[part & (day == one)].mean()) for one in dates]
        series.append(_series(dates, shared, name))
    level, factor = without_weekdays((series[0], series[1]))
    rho = autocorrelation([(dates, centring(dates.size), shared) for dates, shared in level])
    difference = means[1, is_common] - means[0, is_common]
    size = largest(means[0, is_common], means[1, is_common])
    over_queries = 0.0
    if not is_constant(difference, magnitude=size):
        over_queries = float(difference.var(ddof=1) / difference.size)
    return _change(
        float(means[0, is_common].mean()),
        float(means[1, is_common].mean()),
        (
            *_variances(level, rho, factor),
            (over_queries, degrees_of_freedom(difference)),
        ),
        worse=worse,
        confidence=confidence,
        days=(series[0][0].size, series[1][0].size),
        queries=int(difference.size),
        rho=rho,
        magnitude=size,
    )


def trend(
    days: npt.ArrayLike,
    values: npt.ArrayLike,
    *,
    worse: Worse = "lower",
    confidence: float = 0.95,
) -> Change:
    """Fit a line through daily values: a slow decline that no window of a week shows.

    The change is the slope by least squares times the days from the first to the last. Its
    variance is s^2 w'Rw for slope = w'y, with s^2 and the autocorrelation as in
    ``compare_windows`` but of the residuals about the line; degrees of freedom tr(MR)^2 /
    tr(MRMR), which is n - 2 without autocorrelation. From three weeks of days on, weekdays have
    levels of their own beside the line.

    Days 0, 2, 4 of .5, .4, .4: slope -.025, change -.1, s^2 = .001667, t = -.025 / .01443 = -1.732.

    >>> change = trend([0, 2, 4], [0.5, 0.4, 0.4])
    >>> round(change.difference, 3), round(change.p_value, 4)
    (-0.1, 0.1667)

    Raises:
        InputError: fewer than three days, a day twice, or values that are not finite.
    """
    check_share("confidence", confidence)
    day, value = _series(days, values, "the trend", least=3)
    centred = day - day.mean()
    seasons = weekday_columns(day) if day.size >= LEAST_FOR_WEEKDAYS else np.empty((day.size, 0))
    design = np.column_stack([np.ones(day.size), centred, seasons])
    inverse = np.linalg.pinv(design)
    weights = inverse[1]
    off_line = np.eye(day.size) - design @ inverse
    rho = autocorrelation([(day, off_line, value)])
    slope, span = float(weights @ value), float(day[-1] - day[0])
    start = float(inverse[0] @ value) + slope * float(centred[0])
    variance, degrees = spread(day, off_line, value, weights, rho)
    return _change(
        start,
        start + slope * span,
        ((span**2 * variance, degrees),),
        worse=worse,
        confidence=confidence,
        days=(day.size, 0),
        rho=rho,
        magnitude=largest(value),
    )


def _variances(
    windows: tuple[Series, Series], rho: float, factor: float
) -> list[tuple[float, float]]:
    found = [mean_variance(days, values, rho) for days, values in windows]
    return [(factor * variance, degrees) for variance, degrees in found]


def _change(
    before: float,
    after: float,
    parts: tuple[tuple[float, float], ...],
    *,
    worse: Worse,
    confidence: float,
    days: tuple[int, int],
    rho: float,
    magnitude: float,
    queries: int = 0,
) -> Change:
    """Test a difference whose variance is the sum of parts, each with its degrees of freedom."""
    difference = after - before
    if abs(difference) <= 1e-12 * max(magnitude, 1.0):
        difference = 0.0
    variance = sum(part for part, _ in parts)
    interval: Interval | None = None
    if variance <= (1e-12 * max(magnitude, 1.0)) ** 2:
        p_value = _without_spread(difference, worse, days)
    else:
        from scipy import stats

        degrees = variance**2 / sum(part**2 / freedom for part, freedom in parts)
        error = math.sqrt(variance)
        low, high = stats.t.interval(confidence, degrees, loc=difference, scale=error)
        interval = (float(low), float(high))
        fall = difference if worse == "lower" else -difference
        p_value = float(stats.t.cdf(fall / error, degrees))
    return Change(
        before=before,
        after=after,
        difference=difference,
        relative=difference / abs(before) if before else None,
        interval=interval,
        confidence=confidence,
        p_value=p_value,
        days_before=days[0],
        days_after=days[1],
        queries=queries,
        autocorrelation=rho,
    )


def _without_spread(difference: float, worse: Worse, days: tuple[int, int]) -> float:
    """Return how rarely a random choice of the recent days would have all of the worse values."""
    if difference == 0.0 or (difference < 0.0) != (worse == "lower"):
        return 1.0
    # The orders in which this can happen: all of them, but for those within the two windows.
    orders = [math.lgamma(count + 1) for count in days] if days[1] else []
    return math.exp(math.fsum(orders) - math.lgamma(sum(days) + 1))


def _series(
    days: npt.ArrayLike, values: npt.ArrayLike, name: str, *, least: int = 2
) -> tuple[IntArray, FloatArray]:
    day, value = np.asarray(days, dtype=np.int64), np.asarray(values, dtype=np.float64)
    if day.ndim != 1 or day.shape != value.shape or not np.isfinite(value).all():
        raise InputError(f"{name}: give one finite value a day, got {value.size} for {day.size}")
    if day.size < least:
        raise InputError(f"{name} has {day.size} days with data; at least {least} are needed")
    if np.unique(day).size != day.size:
        raise InputError(f"{name} has a day twice; give one value a day")
    order = np.argsort(day)
    return day[order], value[order]


def _means_by(query: IntArray, value: FloatArray, part: BoolArray) -> FloatArray:
    """Return each query's mean within a part of the records, NaN where it has none there."""
    size = int(query.max()) + 1 if query.size else 0
    counts = np.bincount(query[part], minlength=size)
    sums = np.bincount(query[part], weights=value[part], minlength=size)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
