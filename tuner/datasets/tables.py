"""Rows of a log, from CSV or JSON lines, and the numbers in their cells; broken ones are named."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tuner.datasets.lines import HALF_A_PAIR, ProblemLog, is_encodable, json_type

_BLANK = frozenset(("", "nan", "na", "n/a", "null", "none"))
_TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
_DELIMITERS = ",\t;"
# Squares and sums of so large a figure leave float64, and nothing that is measured is as large.
_LARGEST = 1e100


def csv_rows(text: str, file: Path, log: ProblemLog) -> Iterator[tuple[int, list[str]]]:
    """Yield each row with the line on which it begins, the header first, blank lines left out.

    Columns are apart by commas, tabs or semicolons, whichever the header has most of. A row with
    another number of fields than the header is reported instead, and so is what is no CSV.
    """
    delimiter = max(_DELIMITERS, key=text.split("\n", 1)[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header: list[str] | None = None
    line = 1
    try:
        for fields in reader:
            begin, line = line, reader.line_num + 1
            if not any(field.strip() for field in fields):
                continue
            if header is None:
                header = [name.strip() for name in fields]
                yield begin, header
            elif len(fields) != len(header):
                plural = "s" if len(fields) > 1 else ""
                message = f"{len(fields)} field{plural}, but the header has {len(header)}"
                log.add("fields", message, file, begin)
            else:
                yield begin, fields
    except csv.Error as error:
        # A quote that nobody closes is found at the end of the file, but stands in this row.
        log.add("csv", f"not valid CSV, in the row that begins here: {error}", file, line)


def json_rows(text: str, file: Path, log: ProblemLog) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each line that is a JSON object, with its number; others are reported."""
    # Split at line feeds only: str.splitlines would also break a JSON string at U+2028.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            log.add("json", f"not valid JSON: {error}", file, number)
            continue
        if "\\ud" in line.lower() and not is_encodable(record):
            log.add("surrogate", HALF_A_PAIR, file, number)
        elif isinstance(record, dict):
            yield number, record
        else:
            log.add(
                "object", f"a line must be a JSON object, got {json_type(record)}", file, number
            )


def number_of(name: str, cell: Any) -> float:
    """Return the number in a cell of the column ``name``; NaN where it is blank, null or NaN.

    true and yes are 1, false and no are 0.

    Raises:
        ValueError: it is something else, in words; or no such time can be.
    """
    number = _parsed(name, cell)
    if math.isinf(number):
        message = f"{name!r} must be a number, got {_shown(cell)}; leave it empty where undefined"
        raise ValueError(message)
    if abs(number) > _LARGEST:
        raise ValueError(f"{name!r} must be a number up to {_LARGEST:g}, got {_shown(cell)}")
    if number < 0.0 and name.startswith("latency") and name.endswith("_ms"):
        raise ValueError(f"{name!r} is a time, which cannot be negative, got {cell!r}")
    return number


def _parsed(name: str, cell: Any) -> float:
    if cell is None:
        return math.nan
    if isinstance(cell, bool | int | float):
        try:
            return float(cell)
        except OverflowError:
            return math.inf
    text = str(cell).strip()
    lowered = text.lower()
    if lowered in _BLANK:
        return math.nan
    if lowered in _TRUTH:
        return _TRUTH[lowered]
    try:
        # float() also reads 1_000, which no other tool does.
        if "_" not in text:
            return float(text)
    except ValueError:
        pass
    raise ValueError(f"{name!r} must be a number, got {_shown(text)}{_with_point(text)}")


def _shown(cell: Any) -> str:
    text = repr(cell)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _with_point(text: str) -> str:
    """Return a hint for a decimal comma."""
    written = text.replace(",", ".", 1)
    if written == text:
        return ""
    try:
        float(written)
    except ValueError:
        return ""
    return f"; write {written}"
