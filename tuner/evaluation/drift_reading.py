"""What was observed on which day, read from a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from tuner.core.errors import InputError
from tuner.datasets._lines import ProblemLog, read_text
from tuner.datasets._tables import csv_rows, json_rows, number_of
from tuner.monitoring.drift import Observation, parse_day

DATE_COLUMNS = ("date", "day", "time", "timestamp")
QUERY_COLUMNS = ("query_id", "query-id", "qid")
TYPE = "query_type"
# Whatever their cells hold, these are figures: a score that cannot be read must not go unwatched.
FIGURES = ("score", "objective", "graph_used", "retrieved", "without_graph", "empty", "latency_ms")

Row = Mapping[str, Any]


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
    rows = list(json_rows(text, path, log) if is_json else _csv_rows(text, path, log))
    if not rows and not log.mentions(path):
        raise InputError("holds no observation", file=str(path))
    names = list(dict.fromkeys(name for _, row in rows for name in row))
    date_column = next((name for name in DATE_COLUMNS if name in names), None)
    if date_column is None:
        if rows:
            message = f"no column is called {' or '.join(DATE_COLUMNS)}; the columns are: "
            log.add("date", message + ", ".join(names), path)
        raise InputError(problems=log.problems())
    figures = _figures(rows, names)
    found = []
    for line, row in rows:
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
    problems = log.problems()
    if problems:
        raise InputError(problems=problems)
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


def _figures(rows: Sequence[tuple[int, Row]], names: Sequence[str]) -> list[str]:
    """Return the columns whose cells are mostly numbers; a stray text in one is an error later."""
    labels = {*DATE_COLUMNS, *QUERY_COLUMNS, TYPE}
    figures = []
    for name in names:
        if name in labels:
            continue
        if name in FIGURES:
            figures.append(name)
            continue
        cells = [cell for _, row in rows if not _is_blank(cell := row.get(name))]
        count = sum(_is_number(name, cell) for cell in cells)
        if 2 * count > len(cells) or not cells:
            figures.append(name)
    return figures


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
        return parse_day(written)
    except ValueError as error:
        log.add("date", str(error), path, line)
        return None


def _label(row: Row, *columns: str) -> str:
    written = next((row[name] for name in columns if row.get(name) is not None), "")
    return str(written).strip()
