"""Read runs and judgements in JSON: one object of queries, an array of records, or JSON lines.

Objects are parsed into tuples of pairs, so that a key that is there twice is not lost.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tuner.datasets._lines import ProblemLog, as_string, is_encodable, json_type, read_text

Answer = dict[str, float] | list[str]

_QUERY_KEYS = ("query_id", "query-id", "qid", "_id", "id", "query")
_DOCUMENT_KEYS = ("doc_id", "corpus-id", "corpus_id", "docid", "docno", "document_id", "pid")
_NESTED_DOCUMENT_KEYS = (*_DOCUMENT_KEYS, "doc", "document", "id", "_id")
_RANKING_KEYS = ("docs", "results", "ranking", "documents", "doc_ids", "retrieved", "hits")
_GRADES_KEYS = ("relevant_docs", "grades", "judgements", "qrels", "relevant")
_SCORE_KEYS = ("score", "similarity")
_GRADE_KEYS = ("grade", "relevance", "rel", "label", "score")

_RUN_SHAPES = "{document: score}, a list of document ids, best first, or of {doc_id, score}"
_QRELS_SHAPES = "{document: grade}"


class _Entry(NamedTuple):
    """What a file says of one query, or of one document of it, and where."""

    query: str
    value: Any
    keys: tuple[str, ...]
    line: int | None
    named: str = ""  # the key that held the value, where it was a record


@dataclass(frozen=True)
class _File:
    """The file that is being read; reports with the line, also inside of one large object."""

    path: Path
    log: ProblemLog
    text: str
    _reported: list[None] = field(default_factory=list)

    def report(self, kind: str, message: str, keys: tuple[str, ...], line: int | None) -> None:
        # Looking a line up in a large file is slow, and what comes later is not shown anyway.
        if line is None and len(self._reported) < 50:
            line = _line_of(self.text, keys)
        self._reported.append(None)
        shown = tuple(dict.fromkeys(keys))
        self.log.add(kind, message, self.path, line, key=shown)


def read_json_qrels(path: Path, log: ProblemLog) -> tuple[str, dict[str, dict[str, float]]]:
    """Return the format and query id -> document id -> grade; what is broken is reported."""
    format, file, entries = _entries(path, log, _GRADES_KEYS + _RANKING_KEYS)
    found: dict[str, dict[str, float]] = {}
    complete: dict[str, int | None] = {}
    for entry in entries:
        value, named = entry.value, entry.named
        if isinstance(value, _Row):
            _add(found.setdefault(entry.query, {}), value, entry, file, _GRADE_KEYS, "grade")
            continue
        if named == "grades" and entry.query in found:
            found[entry.query].update(_scored(value, entry, file, "grade"))
            continue
        if not _is_first(complete, entry, file):
            continue
        if isinstance(value, list) and named in _GRADES_KEYS:
            ids = _listed(value, entry, file)
            found[entry.query] = dict.fromkeys(ids, 1.0)
        elif isinstance(value, list):
            message = (
                "is a list, as in a run; judgements need a grade: write "
                f"{_QRELS_SHAPES}, or did you swap --qrels and --run?"
            )
            file.report("shape", message, entry.keys, entry.line)
        else:
            found[entry.query] = _scored(value, entry, file, "grade")
    _check_any(found, file, "judgement")
    return format, found


def read_json_run(path: Path, log: ProblemLog) -> tuple[str, dict[str, Answer]]:
    """Return the format and query id -> scores or ranking; what is broken is reported."""
    format, file, entries = _entries(path, log, _RANKING_KEYS)
    found: dict[str, Answer] = {}
    rows: dict[str, dict[str, float]] = {}
    complete: dict[str, int | None] = {}
    for entry in entries:
        if isinstance(entry.value, _Row):
            scores = rows.setdefault(entry.query, {})
            found[entry.query] = scores
            _add(scores, entry.value, entry, file, _SCORE_KEYS, "score")
        elif _is_first(complete, entry, file):
            found[entry.query] = _answer(entry, file)
    _check_any(found, file, "ranking")
    return format, found


class _Row(NamedTuple):
    """A record of one document of one query."""

    document: str
    values: dict[str, Any]


def _entries(
    path: Path, log: ProblemLog, value_keys: tuple[str, ...]
) -> tuple[str, _File, Iterator[_Entry]]:
    text = read_text(path, log) or ""
    file = _File(path, log, text)
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


def _queries(pairs: tuple[tuple[str, Any], ...], file: _File) -> Iterator[_Entry]:
    for written, value in pairs:
        query = _id(written, "query id", (written,), None, file)
        if query:
            yield _Entry(query, value, (query,), None)


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
    return bool(keys & set(_QUERY_KEYS)) and bool(keys & {*value_keys, *_DOCUMENT_KEYS})


def _lines(file: _File) -> Iterator[tuple[str, int | None, Any]]:
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
    items: Iterator[tuple[str, int | None, Any]], file: _File, value_keys: tuple[str, ...]
) -> Iterator[_Entry]:
    """Yield what each record says; one that is no record of a query is reported."""
    for name, line, pairs in items:
        keys = (name,) if name else ()
        if not isinstance(pairs, tuple):
            file.report("record", f"must be an object, got {_type(pairs)}", keys, line)
            continue
        values = dict(pairs)
        query_key = next((key for key in _QUERY_KEYS if values.get(key) is not None), None)
        if query_key is None:
            file.report("query", f"'query_id' is missing{_there(values)}", keys, line)
            continue
        query = _id(values[query_key], query_key, keys, line, file)
        if not query:
            continue
        document_key = next((key for key in _DOCUMENT_KEYS if key in values), None)
        named = [key for key in value_keys if key in values]
        if document_key is not None:
            document = _id(values[document_key], document_key, keys, line, file)
            if document:
                yield _Entry(query, _Row(document, values), keys, line)
        elif named:
            # Evaluation samples list the relevant documents, and beside them the grades of some.
            both = named[:2] if named[:2] == ["relevant_docs", "grades"] else named[:1]
            for key in both:
                yield _Entry(query, values[key], (*keys, key), line, key)
        else:
            message = f"none of {', '.join(map(repr, value_keys[:3]))} is there{_there(values)}"
            file.report("missing", message, keys, line)


def _answer(entry: _Entry, file: _File) -> Answer:
    value = entry.value
    if isinstance(value, list) and value and all(isinstance(part, tuple) for part in value):
        hits = [dict(part) for part in value]
        key = next((k for k in _NESTED_DOCUMENT_KEYS if k in hits[0]), "doc_id")
        score_key = next((k for k in _SCORE_KEYS if k in hits[0]), None)
        if score_key is None:
            return _listed([hit.get(key) for hit in hits], entry, file)
        pairs = tuple((hit.get(key), hit.get(score_key)) for hit in hits)
        return _scored(pairs, entry, file, "score")
    if isinstance(value, list) and value and all(_is_pair(part) for part in value):
        return _scored(tuple(map(tuple, value)), entry, file, "score")
    if isinstance(value, list):
        return _listed(value, entry, file)
    return _scored(value, entry, file, "score")


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and isinstance(value[1], int | float)


def _scored(value: Any, entry: _Entry, file: _File, what: str) -> dict[str, float]:
    """Return document -> number of an object, or nothing after reporting what it is instead."""
    if not isinstance(value, tuple):
        shapes = _RUN_SHAPES if what == "score" else _QRELS_SHAPES
        message = f"must be {shapes}, got {_type(value)}"
        file.report("shape", message, entry.keys, entry.line)
        return {}
    found: dict[str, float] = {}
    for written, number in value:
        document = _id(written, "document id", entry.keys, entry.line, file)
        if document:
            _put(found, document, number, entry, file, what)
    return found


def _listed(value: list[Any], entry: _Entry, file: _File) -> list[str]:
    found = [_id(part, "document id", entry.keys, entry.line, file) for part in value]
    unique = dict.fromkeys(found)
    if len(unique) < len(found):
        seen: set[str] = set()
        for document in found:
            if document and document in seen:
                message = f"the document {document!r} is there twice"
                file.report("repeat", message, (*entry.keys, document, document), entry.line)
            seen.add(document)
    return [document for document in unique if document]


def _add(
    found: dict[str, float],
    row: _Row,
    entry: _Entry,
    file: _File,
    value_keys: tuple[str, ...],
    what: str,
) -> None:
    key = next((key for key in value_keys if key in row.values), None)
    if key is None:
        message = f"{value_keys[0]!r} is missing{_there(row.values)}"
        file.report("missing", message, entry.keys, entry.line)
    else:
        _put(found, row.document, row.values[key], entry, file, what)


def _put(
    found: dict[str, float], document: str, number: Any, entry: _Entry, file: _File, what: str
) -> None:
    keys = (*entry.keys, document) if entry.line is None else entry.keys
    about = f"of query {entry.query!r} and document {document!r}"
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    if not is_number or not math.isfinite(number):
        got = _type(number) if not is_number else repr(number)
        message = f"the {what} {about} must be a finite number, got {got}"
        file.report(what, message, keys, entry.line)
    elif document in found:
        message = f"the document {document!r} of query {entry.query!r} is there twice"
        file.report("repeat", message, (*keys, document), entry.line)
    else:
        found[document] = float(number)


def _is_first(complete: dict[str, int | None], entry: _Entry, file: _File) -> bool:
    """Note a query that is complete with this entry, and report one that was so before."""
    if entry.query not in complete:
        complete[entry.query] = entry.line
        return True
    first = complete[entry.query]
    message = f"the query {entry.query!r} is there twice"
    if first is not None:
        message += f", first on line {first}"
    file.report("query twice", message, (*entry.keys, *entry.keys), entry.line)
    return False


def _id(value: Any, name: str, keys: tuple[str, ...], line: int | None, file: _File) -> str:
    """Return an id; a whole number is taken as its digits. Empty after a report."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        message = f"{name!r} must be a string, got {_type(value)}{as_string(value)}"
        file.report("id", message, keys, line)
        return ""
    if not value.strip():
        file.report("id", f"{name!r} is empty", keys, line)
        return ""
    if not value.isascii() and not is_encodable(value):
        file.report("id", f"{name!r} holds half of a surrogate pair", keys, line)
        return ""
    return value


def _check_any(found: object, file: _File, what: str) -> None:
    if not found and not file.log.mentions(file.path):
        file.log.add("none", f"holds no {what}", file.path)


def _there(values: dict[str, Any]) -> str:
    return f"; the keys are: {', '.join(values) or 'none'}"


def _type(value: object) -> str:
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
