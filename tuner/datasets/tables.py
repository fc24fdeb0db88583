"""Rows of a table, from CSV, tabs or JSON lines, and the numbers in their cells."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tuner.core.grades import GradeScale
from tuner.core.shown import counted
from tuner.datasets.lines import (
    ABSENT,
    HALF_A_PAIR,
    ProblemLog,
    is_encodable,
    json_type,
    read_lines,
)

_BLANK = frozenset(("", "nan", "na", "n/a", "null", "none"))
_TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
_DELIMITERS = ",\t;"
# Squares and sums of so large a figure leave float64, and nothing that is measured is as large.
_LARGEST = 1e100

QUERY_COLUMNS = frozenset({"query-id", "query_id", "queryid", "qid", "query"})
_FIRST_COLUMNS = QUERY_COLUMNS | {"id", "_id", "doc_id", "docid", "corpus-id", "corpus_id", "pid"}
_INDEX_COLUMNS = frozenset({"", "index", "unnamed: 0"})
_WITHOUT_INDEX = "write the table without it (pandas: index=False; R: row.names = FALSE)"
IN_QUOTES = "the fields are in quotes; write them without (R: quote = FALSE)"


def csv_rows(
    text: str, file: Path, log: ProblemLog, *, delimiters: str = _DELIMITERS, is_strict: bool = True
) -> Iterator[tuple[int, list[str]]]:
    """Yield each row with the line on which it begins, the header first, blank lines left out.

    Columns are apart by one of the ``delimiters``, whichever the header has most of. A row with
    another number of fields than the header is reported instead, and so is what is no CSV; quotes
    in the middle of a field are none unless it ``is_strict``.
    """
    delimiter = max(delimiters, key=text.split("\n", 1)[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=is_strict)
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
                message = (
                    f"{counted(len(fields), 'field')}, but the header has {len(header)}; put what "
                    f"contains {delimiter!r} in double quotes"
                )
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


def read_separated(file: Path, log: ProblemLog) -> list[tuple[int, str, list[str]]]:
    """Return each line's number, its text and its fields, out of their quotes.

    A table with a column of row numbers before the others is reported, and nothing returned.
    """
    rows = [(number, line, line.split("\t")) for number, line in read_lines(file, log)]
    # As R's write.table and csv.QUOTE_NONNUMERIC write them: all that is no number.
    if rows and all(is_quoted(fields) for _, _, fields in rows[:2]):
        rows = [(number, line, [unquoted(f) for f in fields]) for number, line, fields in rows]
    if not rows:
        return rows
    # A tab at the end of every line is a habit of some tools, and no column.
    if all(len(fields) > 3 and not fields[-1].strip() for _, _, fields in rows):
        rows = [(number, line, fields[:-1]) for number, line, fields in rows]
    number, _, header = rows[0]
    name = index_before(header)
    if name is None and _is_first(header[0]) and len(rows) > 1:
        # R names no column of row names.
        others = rows[1:]
        name = header[0] if all(len(f) == len(header) + 1 for _, _, f in others) else None
    if name is not None:
        log.add("index", f"an index column stands before {name}; {_WITHOUT_INDEX}", file, number)
        return []
    return rows


def index_before(header: Sequence[str]) -> str | None:
    """Return the first real column of a header that begins with an index's, or None."""
    fields = [unquoted(field).strip() for field in header[:2]]
    is_index = len(fields) == 2 and fields[0].lower() in _INDEX_COLUMNS and _is_first(fields[1])
    return fields[1] if is_index else None


def is_quoted(fields: Sequence[str]) -> bool:
    """Say whether all fields that are no numbers stand in quotes, and one at least does."""
    texts = [field for field in fields if not _is_number(field)]
    return bool(texts) and all(len(f) > 1 and f[0] == f[-1] == '"' for f in map(str.strip, texts))


def unquoted(field: str) -> str:
    """Return a field out of its quotes, or as it is where it stands in none."""
    inner = field.strip()
    if len(inner) < 2 or not inner[0] == inner[-1] == '"':
        return field
    return inner[1:-1].replace('""', '"')


def _is_first(name: str) -> bool:
    return unquoted(name).strip().lower() in _FIRST_COLUMNS


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


@dataclass(frozen=True)
class PairTable:
    """Numbers by query and document, a line each; what is none, or there twice, is reported.

    So is an id that is not among the known ``queries`` and ``documents``, where these are given.
    ``lines`` are those where each pair was first seen, with those of broken numbers.
    """

    file: Path
    log: ProblemLog
    number: Literal["grade", "score"]
    queries: Collection[str] | None = None
    documents: Collection[str] | None = None
    named: tuple[str, str] = ("queries", "corpus")
    values: dict[str, dict[str, float]] = field(default_factory=dict)
    lines: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def _what(self) -> str:
        return "judgement" if self.number == "grade" else "ranking"

    def add_fields(self, line: int, fields: Sequence[str]) -> None:
        """Add a row of three fields, or report that it has more or less."""
        if len(fields) == 3:
            self.add(line, *fields)
            return
        message = (
            f"expected query id, document id and {self.number}, separated by tabs; "
            f"got {counted(len(fields), 'field')}"
        )
        self.log.add("fields", message, self.file, line)

    def add(self, line: int, query: str, document: str, written: str) -> None:
        """Add a number as it is written."""
        if self.queries is not None and query not in self.queries:
            message = f"unknown query {query!r}: not in the {self.named[0]}"
            self.log.add("unknown query", message, self.file, line)
        if self.documents is not None and document not in self.documents:
            message = f"unknown document {document!r}: not in the {self.named[1]}"
            self.log.add(ABSENT, message, self.file, line)
        value = parse_grade(written)
        first = self.lines.setdefault((query, document), line)
        if first != line:
            pair = f"of query {query!r} and document {document!r}"
            message = f"duplicate {self._what} {pair}, first on line {first}"
            earlier = self.values.get(query, {}).get(document)
            if self.number == "grade" and None not in (value, earlier) and value != earlier:
                message = f"grade {value:g} {pair} conflicts with {earlier:g} on line {first}"
            self.log.add("repeat", message, self.file, line)
        elif value is None:
            example = " such as 0, 1 or 2" if self.number == "grade" else ""
            message = f"invalid {self.number} {written!r}: must be a finite number{example}"
            self.log.add(self.number, message, self.file, line)
        else:
            self.values.setdefault(query, {})[document] = value

    def check_any(self) -> None:
        """Report a file without a row, of which nothing else is wrong."""
        if not self.lines and not self.log.mentions(self.file):
            self.log.add("none", f"holds no {self._what}", self.file)


def read_judgements(
    file: Path,
    log: ProblemLog,
    query_ids: Collection[str] | None,
    document_ids: Collection[str] | None,
    relevant_from: float,
) -> dict[str, dict[str, float]]:
    """Return query id -> document id -> grade; a header line is recognised and skipped.

    Where the known ids are given, an id that is not among them is reported.
    """
    queries, documents = (None if ids is None else set(ids) for ids in (query_ids, document_ids))
    table = PairTable(file, log, "grade", queries, documents)
    rows = read_separated(file, log)
    for number, _, fields in rows[1:] if rows and _is_header(rows[0][2]) else rows:
        table.add_fields(number, fields)
    check_some_relevant(table.values, bool(table.lines), file, log, relevant_from)
    return table.values


def _is_header(fields: list[str]) -> bool:
    return fields[0].strip().lower() in QUERY_COLUMNS and parse_grade(fields[-1]) is None


def parse_grade(written: str) -> float | None:
    """Return a finite decimal number, or None for anything else."""
    # float() alone would take "nan", "1_000" and digits of other scripts.
    if not _NUMBER.fullmatch(written.strip()) or not written.isascii():
        return None
    grade = float(written)
    return grade if math.isfinite(grade) else None


def check_some_relevant(
    qrels: dict[str, dict[str, float]],
    any_read: bool,
    file: Path,
    log: ProblemLog,
    relevant_from: float,
) -> None:
    """Report judgements of which none says "relevant"."""
    if not any_read:
        if log.mentions(file):
            return
        log.add("none", "holds no judgement, so no query can be scored", file)
    elif message := GradeScale(relevant_from).problem(qrels.values()):
        log.add("none", message, file)
