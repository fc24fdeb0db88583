"""Rows of an experiment's log, from CSV, JSON lines or Parquet, with every broken one named."""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tuner.core.errors import InputError, did_you_mean, refuse
from tuner.core.rankings import FloatArray
from tuner.datasets.lines import ProblemLog, read_text
from tuner.datasets.tables import csv_rows, json_rows, number_of

_EMPTY = "holds no rows"
_PARQUET_MAGIC = b"PAR1"

# A place: a line of a text file, a row of a Parquet file.
Row = tuple[int, Sequence[Any]]


@dataclass(frozen=True, eq=False)
class Table:
    """The columns that were asked for, row by row.

    Attributes:
        path: the file.
        texts: column -> strings, never empty.
        numbers: column -> shape (rows,), NaN where blank.
        lines: shape (rows,): the line of each row; in Parquet its number, from 1.
        is_text: whether ``lines`` are lines.
    """

    path: Path
    texts: dict[str, list[str]]
    numbers: dict[str, FloatArray]
    lines: list[int]
    is_text: bool


def read_table(
    path: str | Path,
    texts: Sequence[str],
    numbers: Sequence[str],
    *,
    optional: Collection[str] = (),
) -> Table:
    """Read the columns ``texts`` and ``numbers`` of a .csv (or .tsv), .jsonl or .parquet file.

    Text files may be gzipped; Parquet is known by its content. Blank, NaN and null are no value;
    true and yes are 1, false and no 0. A column of ``optional`` that the file lacks has no values.

    Raises:
        InputError: with every problem found: no such file, missing columns, broken lines, what is
            no number, ids that are missing.
    """
    file = Path(path).expanduser()
    log = ProblemLog()
    wanted = [*texts, *dict.fromkeys(numbers)]
    is_text = True
    try:
        if _starts_with(file, _PARQUET_MAGIC):
            is_text = False
            rows = _parquet_rows(file, wanted, optional, log)
        elif ".jsonl" in file.suffixes or ".ndjson" in file.suffixes:
            rows = _json_rows(file, wanted, optional, log)
        elif {".csv", ".tsv"} & set(file.suffixes):
            rows = _csv_rows(file, wanted, optional, log)
        else:
            raise InputError("must end in .csv, .tsv, .jsonl or .parquet", file=str(file))
        return _table(file, rows, texts, wanted[len(texts) :], log, is_text)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=str(file)) from error


def note_row(
    log: ProblemLog, file: Path, line: int, kind: str, message: str, *, is_text: bool
) -> None:
    """Note a problem of one row: by its line, or in Parquet by its number."""
    if is_text:
        log.add(kind, message, file, line)
    else:
        log.add(kind, message, file, key=(f"record {line}",))


def _table(
    file: Path,
    rows: Iterable[Row],
    texts: Sequence[str],
    numbers: Sequence[str],
    log: ProblemLog,
    is_text: bool,
) -> Table:
    found: dict[str, list[str]] = {name: [] for name in texts}
    values = {name: array("d") for name in numbers}
    lines: list[int] = []
    for line, row in rows:
        for name, value in zip(texts, row, strict=False):
            text = "" if value is None else str(value)
            if not text.strip():
                note_row(log, file, line, f"blank {name}", f"{name!r} is empty", is_text=is_text)
            found[name].append(text)
        for name, value in zip(numbers, row[len(texts) :], strict=True):
            try:
                number = number_of(name, value)
            except ValueError as error:
                number = math.nan
                note_row(log, file, line, f"number {name}", str(error), is_text=is_text)
            values[name].append(number)
        lines.append(line)
    problems = log.problems()
    if not problems and not lines:
        raise InputError(_EMPTY, file=str(file))
    refuse(problems)
    arrays = {name: np.frombuffer(column, dtype=np.float64) for name, column in values.items()}
    return Table(file, found, arrays, lines, is_text)


def _csv_rows(
    file: Path, wanted: Sequence[str], optional: Collection[str], log: ProblemLog
) -> Iterator[Row]:
    text = read_text(file, log)
    if text is None:
        return
    rows = csv_rows(text, file, log)
    header = next(rows, (1, []))[1]
    if not header:
        if not log.mentions(file):
            log.add("empty", _EMPTY, file)
        return
    places = _places(header, wanted, optional, file, log)
    if places is not None:
        for line, row in rows:
            yield line, [None if place is None else row[place] for place in places]


def _json_rows(
    file: Path, wanted: Sequence[str], optional: Collection[str], log: ProblemLog
) -> Iterator[Row]:
    seen: set[str] = set()
    for line, record in json_rows(read_text(file, log) or "", file, log):
        seen.update(record)
        yield line, [record.get(name) for name in wanted]
    if seen:
        # A key may be absent from some lines, but not from all.
        _places(sorted(seen), wanted, optional, file, log)


def _parquet_rows(
    file: Path, wanted: Sequence[str], optional: Collection[str], log: ProblemLog
) -> Iterator[Row]:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        content = ParquetFile(file)
        if _places(content.schema_arrow.names, wanted, optional, file, log) is None:
            return
        number = 0
        there = [name for name in dict.fromkeys(wanted) if name in content.schema_arrow.names]
        for batch in content.iter_batches(columns=there):
            blank = [None] * batch.num_rows
            columns = [
                batch.column(name).to_pylist() if name in there else blank for name in wanted
            ]
            for row in zip(*columns, strict=True):
                number += 1
                yield number, row
    except ArrowException as error:
        log.add("parquet", f"not a whole Parquet file: {error}", file)


def _places(
    header: Sequence[str],
    wanted: Sequence[str],
    optional: Collection[str],
    file: Path,
    log: ProblemLog,
) -> list[int | None] | None:
    """Return where the wanted columns stand; None, with a problem for each, where one does not."""
    is_right = True
    for name in dict.fromkeys(wanted):
        if header.count(name) == 1 or (name in optional and name not in header):
            continue
        is_right = False
        if name in header:
            log.add("columns", f"the column {name!r} stands {header.count(name)} times", file, 1)
        else:
            message = f"no column {name!r}{did_you_mean(name, header)}"
            log.add(f"no {name}", message, file)
    if not is_right:
        return None
    return [header.index(name) if name in header else None for name in wanted]


def _starts_with(file: Path, magic: bytes) -> bool:
    if file.is_dir():
        raise InputError("this is a folder; name a file", file=str(file))
    if file.exists() and not file.is_file():
        raise InputError("is a pipe or a device, which may never end; give a file", file=str(file))
    with file.open("rb") as content:
        return content.read(len(magic)) == magic
