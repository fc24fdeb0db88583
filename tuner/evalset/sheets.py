"""Annotation sheets: CSV that spreadsheets neither run nor change, written and read back."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tuner.core.errors import InputError
from tuner.core.shown import is_formula, shortened
from tuner.datasets.lines import ProblemLog, read_text

COLUMNS = ("query_id", "query", "document_id", "title", "passage", "grade", "comment")

GRADES = (0, 1, 2, 3)
"""Not relevant, related, partly answers, answers: from 1 a passage counts as relevant."""

# A spreadsheet runs formulas, and takes ids like 00123, 405e34, 3-4 or MAR1 for numbers and dates.
_CHANGED = re.compile(
    r"'*(?:[\d.]|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|true|false)\w*)", re.IGNORECASE
)
_ID_COLUMNS = ("query_id", "document_id")
_MOST_CHARACTERS = 32_000  # a spreadsheet's cell holds 32,767


@dataclass(frozen=True, slots=True)
class Row:
    """One passage to be graded for one query."""

    query_id: str
    query: str
    document_id: str
    title: str = ""
    passage: str = ""


@dataclass(frozen=True, slots=True)
class GradedRow:
    """A row as it came back; ``number`` counts from 1 with the header, as spreadsheets do.

    ``cells`` are the columns that are no part of ``row``, such as ``grade``, stripped of spaces.
    """

    row: Row
    number: int
    cells: Mapping[str, str]

    @property
    def key(self) -> tuple[str, str]:
        """Return what is graded: the ids of the query and of the document."""
        return self.row.query_id, self.row.document_id


@dataclass(frozen=True)
class Sheet:
    """A sheet that was read, in its own order. ``columns`` are all of its columns."""

    file: str
    columns: tuple[str, ...]
    rows: Mapping[tuple[str, str], GradedRow] = field(default_factory=dict)


def protect(text: str, *, is_id: bool = False) -> str:
    """Return a cell that a spreadsheet shows as it is: a leading quote where it would not.

    >>> protect("=1+1"), protect("00123", is_id=True), protect("Ada")
    ("'=1+1", "'00123", 'Ada')
    """
    is_risky = is_formula(text) or (is_id and _CHANGED.match(text))
    return f"'{text}" if is_risky else text


def unprotect(text: str, *, is_id: bool = False) -> str:
    """Return what ``protect`` was given."""
    is_quoted = text.startswith("'")
    if is_quoted and (is_formula(text) or (is_id and _CHANGED.match(text))):
        return text[1:]
    return text


def write_sheet(
    path: str | Path,
    rows: Sequence[Row],
    *,
    extra: Sequence[str] = ("grade", "comment"),
    cells: Iterable[Mapping[str, str]] | None = None,
) -> None:
    """Write rows as CSV with a byte order mark, by which spreadsheets know UTF-8.

    ``cells`` fills the ``extra`` columns, one mapping a row; they are blank without it. Line
    breaks become spaces, so that row numbers are line numbers; passages longer than a cell can
    hold are cut, with an ellipsis. A file that is there is never overwritten: it may hold grades.

    Raises:
        InputError: the file is there already, or cannot be written.
    """
    text = sheet_text(rows, extra=extra, cells=cells)
    try:
        with Path(path).open("x", encoding="utf-8", newline="") as file:
            file.write(text)
    except FileExistsError as error:
        message = "is there already, and may hold grades; name another file, or remove it"
        raise InputError(message, file=str(path)) from error
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=str(path)) from error


def sheet_text(
    rows: Sequence[Row],
    *,
    extra: Sequence[str] = ("grade", "comment"),
    cells: Iterable[Mapping[str, str]] | None = None,
) -> str:
    """Return what ``write_sheet`` writes, byte order mark and all."""
    own = [name for name in COLUMNS if name not in ("grade", "comment")]
    values = [{} for _ in rows] if cells is None else list(cells)
    table = io.StringIO(newline="")
    writer = csv.writer(table)
    writer.writerow([*own, *extra])
    for row, filled in zip(rows, values, strict=True):
        texts = {name: getattr(row, name) for name in own} | dict(filled)
        writer.writerow(
            protect(_shown(name, texts.get(name, "")), is_id=name in _ID_COLUMNS)
            for name in (*own, *extra)
        )
    return f"\ufeff{table.getvalue()}"


def read_sheet(path: str | Path, *, needs: Sequence[str] = ("grade",)) -> Sheet:
    """Read a sheet that came back from an annotator, whatever delimiter the spreadsheet used.

    Raises:
        InputError: a missing column, a row without ids or that occurs twice, an unreadable file;
            all of them at once, with file and row.
    """
    file = Path(path)
    log = ProblemLog()
    text = read_text(file, log) or ""
    delimiter = max(",;\t", key=text.split("\n", 1)[0].count)
    try:
        table = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise InputError(f"invalid CSV: {error}", file=str(path)) from error
    header = tuple(cell.strip().casefold() for cell in table[0]) if table else ()
    missing = [name for name in ("query_id", "document_id", *needs) if name not in header]
    if missing and not log.mentions(file):
        there = ", ".join(filter(None, header)) or "none"
        named = ", ".join(map(repr, missing))
        are = f"columns {named} are" if len(missing) > 1 else f"column {named} is"
        log.add("columns", f"{are} missing; the columns are: {there[:200]}", file, 1)
    if log.mentions(file):
        raise InputError(problems=log.problems())
    rows: dict[tuple[str, str], GradedRow] = {}
    for number, fields in enumerate(table[1:], 2):
        if not any(field.strip() for field in fields):
            continue
        # A spreadsheet may leave out the empty cells at a row's end.
        padded = [*fields, *[""] * (len(header) - len(fields))]
        if any(cell.strip() for cell in padded[len(header) :]):
            message = f"{len(fields)} cells, but the header has {len(header)}"
            log.add("cells", message, file, number)
            continue
        _add_row(rows, dict(zip(header, padded, strict=False)), number, file, log)
    if not rows and not log.mentions(file):
        log.add("none", "holds no row to grade", file)
    log.refuse()
    return Sheet(str(path), header, rows)


def grade_of(
    graded: GradedRow, column: str, file: str, log: ProblemLog, *, grades: Sequence[int] = GRADES
) -> int | None:
    """Return the grade in a column, or None after reporting that it is missing or no grade."""
    written = graded.cells.get(column, "")
    # A spreadsheet may write 2 as 2.0.
    found = re.fullmatch(r"(-?\d{1,9})(?:[.,]0+)?", written, re.ASCII)
    if found and int(found[1]) in grades:
        return int(found[1])
    known = ", ".join(map(str, grades))
    what = f"query {graded.row.query_id!r}, document {graded.row.document_id!r}"
    problem = f"{written!r} is no {column}" if written else f"{column} is missing"
    log.add(
        f"{column} missing", f"{what}: {problem}; write one of {known}", Path(file), graded.number
    )
    return None


def _add_row(
    rows: dict[tuple[str, str], GradedRow],
    record: Mapping[str, str],
    number: int,
    file: Path,
    log: ProblemLog,
) -> None:
    texts = {
        name: unprotect(record.get(name, ""), is_id=name in _ID_COLUMNS)
        for name in Row.__dataclass_fields__
    }
    blank = [name for name in _ID_COLUMNS if not texts[name].strip()]
    if blank:
        log.add("ids", f"{' and '.join(blank)} must not be blank", file, number)
        return
    cells = {n: unprotect(v).strip() for n, v in record.items() if n not in texts}
    graded = GradedRow(Row(**texts), number, cells)
    first = rows.setdefault(graded.key, graded)
    if first is not graded:
        message = (
            f"query {graded.row.query_id!r}, document {graded.row.document_id!r} "
            f"is there twice, first in row {first.number}"
        )
        log.add("twice", message, file, number)


def _shown(name: str, text: str) -> str:
    if name in _ID_COLUMNS:
        return text
    text = " ".join(re.split(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+", text))
    return shortened(text, _MOST_CHARACTERS)
