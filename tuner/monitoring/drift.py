"""What was observed on which day: read from files, cut into windows of the calendar, by day."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from tuner.core.errors import InputError, Problem
from tuner.core.rankings import FloatArray, IntArray

DATE_COLUMNS = ("date", "day", "time", "timestamp")
QUERY_COLUMNS = ("query_id", "query-id", "qid")
TYPE_COLUMN = "query_type"

_SHOWN_PROBLEMS = 20
_BOOLEANS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
_UNDEFINED = {"", "nan", "null", "none", "na"}


@dataclass(frozen=True)
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
            InputError: a recent window below 2 days, or a reference that is shorter than it.
        """
        if recent_days < 2 or reference_days < recent_days:
            raise InputError(
                f"{recent_days} recent days against {reference_days} before them: give at least 2, "
                "and a reference that is no shorter, such as 7 and 28"
            )
        before = as_of - timedelta(days=recent_days)
        trend_days = max(trend_days, recent_days + reference_days)
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
    """One value for each query and day, several runs of a day averaged."""

    days: IntArray
    queries: Sequence[str]
    values: FloatArray


def by_query(observations: Iterable[Observation], name: str) -> Cells:
    """Return a figure of every query on every day; a query asked twice a day counts once."""
    found: dict[tuple[int, str], list[float]] = {}
    for one in observations:
        value = one.values.get(name, math.nan)
        if one.query_id and not math.isnan(value):
            found.setdefault((one.day.toordinal(), one.query_id), []).append(value)
    keys = sorted(found)
    return Cells(
        np.array([day for day, _ in keys], dtype=np.int64),
        [query for _, query in keys],
        np.array([math.fsum(found[key]) / len(found[key]) for key in keys]),
    )


def by_day(
    observations: Iterable[Observation], name: str, *, percentile: float | None = None
) -> Daily:
    """Return a figure of each day that has one: the mean, or a percentile (numpy's ``linear``).

    For a mean, a query's several values of a day count once. Each day counts as one, however many
    queries it has.
    """
    found: dict[int, dict[str, list[float]]] = {}
    for number, one in enumerate(observations):
        value = one.values.get(name, math.nan)
        if not math.isnan(value):
            key = one.query_id or f" {number}"  # no id: a query of its own
            found.setdefault(one.day.toordinal(), {}).setdefault(key, []).append(value)
    days = sorted(found)
    figures = []
    for day in days:
        queries = found[day].values()
        if percentile is None:
            means = [math.fsum(values) / len(values) for values in queries]
            figures.append(math.fsum(means) / len(means))
        else:
            together = [value for values in queries for value in values]
            figures.append(float(np.percentile(together, percentile)))
    return Daily(np.array(days, dtype=np.int64), np.array(figures, dtype=np.float64))


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


def read_observations(path: Path) -> tuple[Observation, ...]:
    """Read a CSV file or JSON lines with a column ``date`` and figures in any others.

    A date is ISO 8601 (``2024-03-01``, or with a time; one with an offset is taken in UTC).
    ``query_id`` and ``query_type`` are known; true and false count 1 and 0; an empty cell, null
    or NaN is undefined. Columns that hold other text are left out.

    Raises:
        InputError: not such a file, or lines that are wrong, with their numbers.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"cannot read it: {reason}", file=str(path)) from error
    problems: list[Problem] = []
    rows = list(_json_rows(text, path, problems) if _is_json(text) else _csv_rows(text))
    figures = _figure_columns(rows)
    date_column = next((name for name in DATE_COLUMNS if any(name in row for _, row in rows)), None)
    if date_column is None and not problems:
        there = ", ".join(dict.fromkeys(name for _, row in rows for name in row)) or "none"
        message = f"no column is called {' or '.join(DATE_COLUMNS)}; the columns are: {there}"
        raise InputError(message, file=str(path))
    found = []
    for line, row in rows:
        try:
            found.append(_observation(row, str(date_column), figures))
        except ValueError as error:
            problems.append(Problem(str(error), str(path), line))
    if problems:
        more = len(problems) - _SHOWN_PROBLEMS
        rest = [Problem(f"{more} more lines are wrong", str(path))] if more > 0 else []
        raise InputError(problems=[*problems[:_SHOWN_PROBLEMS], *rest])
    if not found:
        raise InputError("holds no observation", file=str(path))
    return tuple(found)


def parse_day(text: str) -> date:
    """Return the day of an ISO 8601 date or time; one with an offset counts in UTC.

    >>> parse_day("2024-03-01T23:30:00-02:00")
    datetime.date(2024, 3, 2)

    Raises:
        ValueError: it is not one, in words.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        message = f"{text!r} is not a date; write 2024-03-01, or 2024-03-01T08:00:00+00:00"
        raise ValueError(message) from None
    return (moment if moment.tzinfo is None else moment.astimezone(UTC)).date()


Row = Mapping[str, Any]


def _is_json(text: str) -> bool:
    return text.lstrip().startswith("{")


def _csv_rows(text: str) -> Iterator[tuple[int, Row]]:
    reader = csv.DictReader(text.splitlines())
    for row in reader:
        # Cells beyond the header are under None, missing ones are None.
        yield reader.line_num, {name.strip(): cell for name, cell in row.items() if name}


def _json_rows(text: str, path: Path, problems: list[Problem]) -> Iterator[tuple[int, Row]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            problems.append(Problem(f"invalid JSON: {error}", str(path), number))
            continue
        if isinstance(row, dict):
            yield number, row
        else:
            problems.append(Problem("a line must be a JSON object", str(path), number))


def _figure_columns(rows: Sequence[tuple[int, Row]]) -> tuple[str, ...]:
    """Return the columns whose cells are mostly numbers; a stray text in one is an error later."""
    labels = {*DATE_COLUMNS, *QUERY_COLUMNS, TYPE_COLUMN}
    numbers: dict[str, int] = {}
    for _, row in rows:
        for name, cell in row.items():
            if name not in labels and cell is not None:
                numbers.setdefault(name, 0)
                numbers[name] += 1 if _is_number(cell) else -1
    return tuple(name for name, balance in numbers.items() if balance > 0)


def _is_number(cell: Any) -> bool:
    try:
        _number("", cell)
    except ValueError:
        return False
    return True


def _number(name: str, cell: Any) -> float:
    if isinstance(cell, bool | int | float):
        value = float(cell)
    else:
        text = "" if cell is None else str(cell).strip().lower()
        if text in _UNDEFINED:
            return math.nan
        try:
            value = _BOOLEANS[text] if text in _BOOLEANS else float(text)
        except ValueError:
            raise ValueError(f"{name}: {cell!r} is not a number") from None
    if math.isinf(value):
        raise ValueError(f"{name} is infinite; leave it empty where it is undefined")
    return value


def _observation(row: Row, date_column: str, figures: Sequence[str]) -> Observation:
    written = row.get(date_column)
    if not isinstance(written, str):
        raise ValueError(f"{date_column} is {written!r}; write 2024-03-01")
    query = next((row[name] for name in QUERY_COLUMNS if row.get(name) is not None), "")
    return Observation(
        day=parse_day(written),
        values={name: _number(name, row[name]) for name in figures if name in row},
        query_id=str(query).strip(),
        query_type=str(row.get(TYPE_COLUMN) or "").strip(),
    )
