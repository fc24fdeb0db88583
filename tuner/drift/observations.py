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
