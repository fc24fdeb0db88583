"""What was observed on which day, read from a file."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

from tuner.core.days import parse_day
from tuner.core.errors import InputError
from tuner.datasets.lines import ProblemLog, read_text
from tuner.datasets.tables import csv_rows, json_rows, number_of
from tuner.drift.observations import Observation

DATE_COLUMNS = ("date", "day", "time", "timestamp")
QUERY_COLUMNS = ("query_id", "query-id", "qid")
TYPE = "query_type"
# Whatever their cells hold, these are figures: a score that cannot be read must not go unwatched.
FIGURES = ("score", "objective", "graph_used", "retrieved", "without_graph", "empty", "latency_ms")

Row = Mapping[str, Any]

_parse_day = lru_cache(maxsize=4096)(parse_day)  # the lines of a day stand together


def read_observations(path: Path) -> tuple[Observation, ...]:
    """Read a CSV file or JSON lines with a column ``date`` and figures in any others.

    A date is ISO 8601 (``2024-03-01``, or with a time; one with an offset is taken in UTC).
    ``query_id`` and ``query_type`` are known; true and false count 1 and 0; an empty cell, null
    or NaN is undefined. Columns that hold other text are left out.

    Raises:
        InputError: not such a file, or lines that are wrong, with their numbers.
    """
    log = ProblemLog()
    text = read_text(path, log)
    if text is None:
        raise InputError(problems=log.problems())
    is_json = text.lstrip().startswith(("{", "["))

    def rows(log: ProblemLog) -> Iterator[tuple[int, Row]]:
        return json_rows(text, path, log) if is_json else _csv_rows(text, path, log)

    # Read twice: the rows of a year of logs take many times the room of what is kept of them.
    names, figures = _columns(row for _, row in rows(log))
    if not names and not log.mentions(path):
        raise InputError("holds no observation", file=str(path))
    date_column = next((name for name in DATE_COLUMNS if name in names), None)
    if date_column is None:
        if names:
            message = f"no column is called {' or '.join(DATE_COLUMNS)}; the columns are: "
            log.add("date", message + ", ".join(names), path)
        raise InputError(problems=log.problems())
    found = []
    for line, row in rows(ProblemLog()):  # whatever is wrong with the lines is known by now
        day = _day(row, date_column, path, line, log)
        values = {}
        for name in figures:
            if name not in row:
                continue
            try:
                values[name] = number_of(name, row[name])
            except ValueError as error:
                log.add(f"number {name}", str(error), path, line)
        if day is not None:
            found.append(Observation(day, values, _label(row, *QUERY_COLUMNS), _label(row, TYPE)))
    log.refuse()
    return tuple(found)


def _csv_rows(text: str, path: Path, log: ProblemLog) -> Iterator[tuple[int, Row]]:
    rows = csv_rows(text, path, log)
    line, header = next(rows, (1, []))
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        log.add("twice", f"columns that stand there more than once: {', '.join(twice)}", path, line)
        return
    for number, fields in rows:
        yield number, dict(zip(header, fields, strict=True))


def _columns(rows: Iterable[Row]) -> tuple[list[str], list[str]]:
    """Return all columns, and those of figures: known ones, and any whose cells are mostly numbers.

    A stray text in one of these is an error later.
    """
    labels = {*DATE_COLUMNS, *QUERY_COLUMNS, TYPE}
    balance: dict[str, int] = {}
    filled: set[str] = set()
    for row in rows:
        for name, cell in row.items():
            balance.setdefault(name, 0)
            if name not in labels and name not in FIGURES and not _is_blank(cell):
                filled.add(name)
                balance[name] += 1 if _is_number(name, cell) else -1
    figures = [
        name
        for name in balance
        if name not in labels and (name in FIGURES or name not in filled or balance[name] > 0)
    ]
    return list(balance), figures


def _is_blank(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _is_number(name: str, cell: Any) -> bool:
    try:
        number_of(name, cell)
    except ValueError:
        return False
    return True


def _day(row: Row, column: str, path: Path, line: int, log: ProblemLog) -> date | None:
    written = row.get(column)
    if not isinstance(written, str):
        log.add("date", f"{column} is {written!r}; write 2024-03-01", path, line)
        return None
    try:
        return _parse_day(written)
    except ValueError as error:
        log.add("date", str(error), path, line)
        return None


def _label(row: Row, *columns: str) -> str:
    for name in columns:
        written = row.get(name)
        if written is not None:
            return sys.intern(str(written).strip())  # the same few ids, day after day
    return ""
