"""Lines of fields that are apart by tabs, as other tools write them, in quotes too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tuner.datasets.lines import ProblemLog, read_lines

QUERY_COLUMNS = frozenset({"query-id", "query_id", "queryid", "qid", "query"})
_FIRST_COLUMNS = QUERY_COLUMNS | {"id", "_id", "doc_id", "docid", "corpus-id", "corpus_id", "pid"}
_INDEX_COLUMNS = frozenset({"", "index", "unnamed: 0"})
_WITHOUT_INDEX = "write the table without it (pandas: index=False; R: row.names = FALSE)"
IN_QUOTES = "the fields are in quotes; write them without (R: quote = FALSE)"


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
