"""Read what a JSON file says of each query, with its place: one object, an array, or JSON lines.

Objects are parsed into tuples of pairs, so that a key that is there twice is not lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from tuner.core.checks import is_whole
from tuner.datasets.lines import ProblemLog, as_string, is_encodable, json_type, read_text

_QUERY_KEYS = ("query_id", "query-id", "qid", "_id", "id", "query")
DOCUMENT_KEYS = ("doc_id", "corpus-id", "corpus_id", "docid", "docno", "document_id", "pid")


class Row(NamedTuple):
    """A record of one document of one query."""

    document: str
    values: dict[str, Any]


@dataclass(frozen=True)
class JsonFile:
    """The file that is being read; reports with the line, also inside of one large object."""

    path: Path
    log: ProblemLog
    text: str
    _reported: list[None] = field(default_factory=list)

    def report(self, kind: str, message: str, keys: tuple[str, ...], line: int | None) -> None:
        """Note a problem; without a line, it is looked up by the keys that lead there."""
        # Looking a line up in a large file is slow: what comes later is told by its key.
        if line is None and len(self._reported) < 50:
            line = _line_of(self.text, keys)
        self._reported.append(None)
        # Half of a surrogate pair in a key could not be printed.
        unique = dict.fromkeys(keys)
        shown = [key.encode("utf-8", "backslashreplace").decode() for key in unique]
        self.log.add(kind, message, self.path, line, key=shown)


class Entry(NamedTuple):
    """What a file says of one query, or of one document of it, and where."""

    file: JsonFile
    query: str
    value: Any
    keys: tuple[str, ...]
    line: int | None
    named: str = ""  # the key that held the value, where it was a record
    record: Mapping[str, Any] = MappingProxyType({})  # all of that record

    def report(self, kind: str, message: str, keys: tuple[str, ...] | None = None) -> None:
        """Note a problem of what is said here, or at other keys of the same line."""
        self.file.report(kind, message, self.keys if keys is None else keys, self.line)

    def document(self, written: Any) -> str:
        """Return a document's id; empty after a report."""
        return read_id(written, "document id", self.keys, self.line, self.file)

    def beside(self, key: str) -> tuple[str, ...]:
        """Return where another value of the same record is."""
        return (*self.keys[:-1], key)


def read_entries(
    path: Path, log: ProblemLog, value_keys: tuple[str, ...]
) -> tuple[str, JsonFile, Iterator[Entry]]:
    """Return the format, the file to report to, and what it says of each query.

    ``value_keys`` are the keys under which a record may hold its documents, the preferred first.
    """
    text = read_text(path, log) or ""
    file = JsonFile(path, log, text)
    try:
        whole = json.loads(text, object_pairs_hook=tuple)
    except json.JSONDecodeError as error:
        if _has_lines_of_objects(text):
            return "jsonl", file, _records(_lines(file), file, value_keys)
        message = f"invalid JSON: {error.msg} at column {error.colno}"
        log.add("json", message, path, error.lineno)
        return "json", file, iter(())
    except (ValueError, RecursionError) as error:
        log.add("json", f"invalid JSON: {error}", path)
        return "json", file, iter(())
    if isinstance(whole, list):
        numbered = ((f"record {n}", None, value) for n, value in enumerate(whole, 1))
        return "json", file, _records(numbered, file, value_keys)
    if _is_record(whole, value_keys):
        return "jsonl", file, _records(iter([("", 1, whole)]), file, value_keys)
    return "json", file, _queries(whole, file)


def _queries(pairs: tuple[tuple[str, Any], ...], file: JsonFile) -> Iterator[Entry]:
    for written, value in pairs:
        query = read_id(written, "query id", (written,), None, file)
        if query:
            yield Entry(file, query, value, (query,), None)


def _has_lines_of_objects(text: str) -> bool:
    if not text.lstrip().startswith("{"):
        return False
    lines = (line.strip() for line in text.split("\n"))
    return any(line.startswith("{") and line.endswith("}") and _is_json(line) for line in lines)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _is_record(pairs: tuple[tuple[str, Any], ...], value_keys: tuple[str, ...]) -> bool:
    """Return whether the only object of a file is a record, and no mapping of queries."""
    keys = {key for key, _ in pairs}
    return bool(keys & set(_QUERY_KEYS)) and bool(keys & {*value_keys, *DOCUMENT_KEYS})


def _lines(file: JsonFile) -> Iterator[tuple[str, int | None, Any]]:
    for number, line in enumerate(file.text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield "", number, json.loads(line, object_pairs_hook=tuple)
        except json.JSONDecodeError as error:
            message = f"invalid JSON: {error.msg} at column {error.colno}"
            file.report("json", message, (), number)
        except (ValueError, RecursionError) as error:
            file.report("json", f"invalid JSON: {error}", (), number)


def _records(
    items: Iterator[tuple[str, int | None, Any]], file: JsonFile, value_keys: tuple[str, ...]
) -> Iterator[Entry]:
    """Yield what each record says; one that is no record of a query is reported."""
    for name, line, pairs in items:
        keys = (name,) if name else ()
        if not isinstance(pairs, tuple):
            file.report("record", f"must be an object, got {type_name(pairs)}", keys, line)
            continue
        values = dict(pairs)
        query_key = next((key for key in _QUERY_KEYS if values.get(key) is not None), None)
        if query_key is None:
            file.report("query", f"'query_id' is missing{keys_there(values)}", keys, line)
            continue
        query = read_id(values[query_key], query_key, keys, line, file)
        if not query:
            continue
        document_key = next((key for key in DOCUMENT_KEYS if key in values), None)
        named = [key for key in value_keys if key in values]
        if document_key is not None:
            document = read_id(values[document_key], document_key, keys, line, file)
            if document:
                yield Entry(file, query, Row(document, values), keys, line)
        elif named:
            # Evaluation samples list the relevant documents, and beside them the grades of some.
            both = named[:2] if named[:2] == ["relevant_docs", "grades"] else named[:1]
            for key in both:
                yield Entry(file, query, values[key], (*keys, key), line, key, values)
        else:
            message = f"none of {', '.join(map(repr, value_keys[:3]))} is there{keys_there(values)}"
            file.report("missing", message, keys, line)


def read_id(value: Any, name: str, keys: tuple[str, ...], line: int | None, file: JsonFile) -> str:
    """Return an id; a whole number is taken as its digits. Empty after a report."""
    if is_whole(value):
        return str(value)
    if not isinstance(value, str):
        message = f"{name!r} must be a string, got {type_name(value)}{as_string(value)}"
        file.report("id", message, keys, line)
        return ""
    if not value.strip():
        file.report("id", f"{name!r} is empty", keys, line)
        return ""
    if not value.isascii() and not is_encodable(value):
        file.report("id", f"{name!r} holds half of a surrogate pair", keys, line)
        return ""
    return value


def keys_there(values: dict[str, Any]) -> str:
    """Return the end of a message that says which keys a record has."""
    return f"; the keys are: {', '.join(values) or 'none'}"


def type_name(value: object) -> str:
    """Return what JSON calls a value, of which objects are tuples here."""
    return "an object" if isinstance(value, tuple) else json_type(value)


def _line_of(text: str, keys: tuple[str, ...]) -> int | None:
    """Return the line where the keys follow each other in a JSON text, or None."""
    position = 0
    for key in keys:
        written = json.dumps(key, ensure_ascii=False)
        match = re.compile(re.escape(written) + r"\s*[:,\]]").search(text, position)
        if match is None:
            return None
        position = match.end()
    return text.count("\n", 0, position) + 1 if keys else None
