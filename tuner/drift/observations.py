"""What was observed on which day, cut into windows of the calendar, and by day."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from tuner.core.errors import InputError
from tuner.core.rankings import FloatArray, IntArray
from tuner.stats.pairs import is_constant, largest


@dataclass(frozen=True, slots=True)
class Observation:
    """What was seen on one day: of one query, of a batch, or of the whole day.

    ``values`` holds figures by name, NaN where one is undefined; ``query_id`` and ``query_type``
    are empty where they are not known.
    """

    day: date
    values: Mapping[str, float]
    query_id: str = ""
    query_type: str = ""


@dataclass(frozen=True)
class Windows:
    """Days of the calendar, whether or not there are data on them; first and last belong to it.

    Attributes:
        recent: what is asked about.
        reference: what it is held against, the days just before.
        trend: the days that a line is fitted through, up to the last recent one.
    """

    recent: tuple[date, date]
    reference: tuple[date, date]
    trend: tuple[date, date]

    @classmethod
    def until(
        cls, as_of: date, *, recent_days: int = 7, reference_days: int = 28, trend_days: int = 90
    ) -> Windows:
        """Return the windows that end on a day. Whole weeks keep weekends from looking like drift.

        >>> Windows.until(date(2024, 3, 7), recent_days=7, reference_days=28).reference[0]
        datetime.date(2024, 2, 2)

        Raises:
            InputError: a recent window below 2 days, a reference that is shorter than it, or days
                before the year 1.
        """
        if recent_days < 2 or reference_days < recent_days:
            raise InputError(
                f"{recent_days} recent days against {reference_days} before them: give at least 2, "
                "and a reference that is no shorter, such as 7 and 28"
            )
        trend_days = max(trend_days, recent_days + reference_days)
        if trend_days > as_of.toordinal():
            raise InputError(f"{trend_days} days up to {as_of} begin before the calendar does")
        before = as_of - timedelta(days=recent_days)
        return cls(
            recent=(before + timedelta(days=1), as_of),
            reference=(before - timedelta(days=reference_days - 1), before),
            trend=(as_of - timedelta(days=trend_days - 1), as_of),
        )


@dataclass(frozen=True, eq=False)
class Daily:
    """One figure a day, for the days that have one, oldest first.

    ``days`` are ``date.toordinal`` numbers, so that differences are days of the calendar.
    """

    days: IntArray
    values: FloatArray

    def within(self, window: tuple[date, date]) -> Daily:
        """Return the days of a window."""
        first, last = (day.toordinal() for day in window)
        kept = (self.days >= first) & (self.days <= last)
        return Daily(self.days[kept], self.values[kept])


@dataclass(frozen=True, eq=False)
class Cells:
    """One value for each query and day, several runs of a day averaged, by day and query.

    ``queries`` are numbers from 0 in the order of the ids.
    """

    days: IntArray
    queries: IntArray
    values: FloatArray


def by_query(observations: Iterable[Observation], name: str) -> Cells:
    """Return a figure of every query on every day; a query asked twice a day counts once."""
    days, queries, values = _arrays(observations, name)
    known = queries >= 0
    return _averaged(days[known], queries[known], values[known])


def figures_in(observations: Iterable[Observation]) -> list[str]:
    """Return the names of all figures, in the order in which they turn up."""
    return list(dict.fromkeys(name for one in observations for name in one.values))


def by_day(
    observations: Iterable[Observation], name: str, *, percentile: float | None = None
) -> Daily:
    """Return a figure of each day that has one: the mean, or a percentile (numpy's ``linear``).

    For a mean, a query's several values of a day count once. Each day counts as one, however many
    queries it has.
    """
    days, queries, values = _arrays(observations, name)
    if percentile is None:
        cells = _averaged(days, queries, values)
        means = _averaged(cells.days, np.zeros_like(cells.queries), cells.values)
        return Daily(means.days, means.values)
    order = np.argsort(days, kind="stable")
    dates, begins = np.unique(days[order], return_index=True)
    figures = [
        float(np.percentile(part, percentile)) for part in np.split(values[order], begins)[1:]
    ]
    return Daily(dates, np.array(figures, dtype=np.float64))


def _arrays(
    observations: Iterable[Observation], name: str
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return day, query and value of each observation that has the figure.

    Without an id a query is one of its own: these are numbered down from -1.
    """
    numbers: dict[str, int] = {}
    days, queries, values = array("q"), array("q"), array("d")
    unknown = 0
    for one in observations:
        value = one.values.get(name, math.nan)
        if math.isnan(value):
            continue
        if one.query_id:
            number = numbers.setdefault(one.query_id, len(numbers))
        else:
            unknown += 1
            number = -unknown
        days.append(one.day.toordinal())
        queries.append(number)
        values.append(value)
    query = np.array(queries, dtype=np.int64)
    rank = np.empty(len(numbers), dtype=np.int64)
    rank[[numbers[id_] for id_ in sorted(numbers)]] = np.arange(len(numbers))
    query[query >= 0] = rank[query[query >= 0]]
    return np.array(days, dtype=np.int64), query, np.array(values, dtype=np.float64)


def _averaged(days: IntArray, queries: IntArray, values: FloatArray) -> Cells:
    """Return the mean of what has the same day and query, whatever the order it is given in."""
    order = np.lexsort((values, queries, days))  # equal inputs add up to equal sums
    days, queries, values = days[order], queries[order], values[order]
    is_first = np.ones(days.size, dtype=np.bool_)
    is_first[1:] = (days[1:] != days[:-1]) | (queries[1:] != queries[:-1])
    group = np.cumsum(is_first) - 1
    means = np.bincount(group, weights=values) / np.bincount(group)
    return Cells(days[is_first], queries[is_first], means)


def count_types(
    observations: Iterable[Observation], window: tuple[date, date], kinds: Sequence[str]
) -> IntArray:
    """Count the queries of each type on each day of a window that has any: (days, kinds)."""
    place = {kind: column for column, kind in enumerate(kinds)}
    rows: dict[date, list[int]] = {}
    for one in observations:
        if window[0] <= one.day <= window[1] and one.query_type in place:
            rows.setdefault(one.day, [0] * len(kinds))[place[one.query_type]] += 1
    counts = [rows[day] for day in sorted(rows)]
    return np.array(counts, dtype=np.int64).reshape(len(counts), len(kinds))


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
