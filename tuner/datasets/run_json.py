"""Read runs and judgements in JSON: one object of queries, an array of records, or JSON lines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuner.core.checks import is_number
from tuner.datasets.dataset import Step
from tuner.datasets.lines import ProblemLog
from tuner.datasets.run_entries import (
    DOCUMENT_KEYS,
    Entry,
    JsonFile,
    Row,
    keys_there,
    read_entries,
    type_name,
)
from tuner.datasets.texts import PATHS_SHAPE, parse_paths

Answer = dict[str, float] | list[str]
Paths = tuple[tuple[Step, ...], ...]


@dataclass(frozen=True, eq=False)
class Run:
    """What a run file holds: query id -> document id -> score, or the documents best first.

    ``entities`` and ``paths``: query id -> what the system's graph retrieved; None where no record
    tells.
    """

    format: str
    answers: dict[str, Answer]
    entities: dict[str, tuple[str, ...]] | None = None
    paths: dict[str, Paths] | None = None


_NESTED_DOCUMENT_KEYS = (*DOCUMENT_KEYS, "doc", "document", "id", "_id")
_RANKING_KEYS = ("docs", "results", "ranking", "documents", "doc_ids", "retrieved", "hits")
_GRADES_KEYS = ("relevant_docs", "grades", "judgements", "qrels", "relevant")
_SCORE_KEYS = ("score", "similarity")
_GRADE_KEYS = ("grade", "relevance", "rel", "label", "score")

_RUN_SHAPES = "{document: score}, a list of document ids, best first, or of {doc_id, score}"
_QRELS_SHAPES = "{document: grade}"


def read_json_qrels(path: Path, log: ProblemLog) -> tuple[str, dict[str, dict[str, float]]]:
    """Return the format and query id -> document id -> grade; what is broken is reported."""
    format, file, entries = read_entries(path, log, _GRADES_KEYS + _RANKING_KEYS)
    found: dict[str, dict[str, float]] = {}
    complete: dict[str, int | None] = {}
    for entry in entries:
        value, named = entry.value, entry.named
        if isinstance(value, Row):
            _add(found.setdefault(entry.query, {}), value, entry, _GRADE_KEYS, "grade")
            continue
        if named == "grades" and entry.query in found:
            found[entry.query].update(_scored(value, entry, "grade"))
            continue
        if not _is_first(complete, entry):
            continue
        if isinstance(value, list) and named in _GRADES_KEYS:
            ids = _listed(value, entry)
            found[entry.query] = dict.fromkeys(ids, 1.0)
        elif isinstance(value, list):
            message = (
                "is a list, as in a run; judgements need a grade: write "
                f"{_QRELS_SHAPES}, or did you swap --qrels and --run?"
            )
            entry.report("shape", message)
        else:
            found[entry.query] = _scored(value, entry, "grade")
    _check_any(found, file, "judgement")
    return format, found


def read_json_run(path: Path, log: ProblemLog) -> Run:
    """Return what a run holds; what is broken is reported."""
    format, file, entries = read_entries(path, log, _RANKING_KEYS)
    found: dict[str, Answer] = {}
    rows: dict[str, dict[str, float]] = {}
    complete: dict[str, int | None] = {}
    entities: dict[str, tuple[str, ...]] = {}
    paths: dict[str, Paths] = {}
    for entry in entries:
        if isinstance(entry.value, Row):
            scores = rows.setdefault(entry.query, {})
            found[entry.query] = scores
            _add(scores, entry.value, entry, _SCORE_KEYS, "score")
        elif _is_first(complete, entry):
            found[entry.query] = _answer(entry)
            if "entities" in entry.record:
                entities[entry.query] = _entities(entry)
            if "paths" in entry.record:
                paths[entry.query] = _paths(entry)
    _check_any(found, file, "ranking")
    return Run(format, found, entities or None, paths or None)


def _entities(entry: Entry) -> tuple[str, ...]:
    names = entry.record["entities"] or []
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return tuple(names)
    message = f"'entities' must be a list of names, got {type_name(names)}"
    if isinstance(names, list):
        message = "'entities' must be a list of names, each a string"
    entry.report("entities", message, entry.beside("entities"))
    return ()


def _paths(entry: Entry) -> Paths:
    found = parse_paths(entry.record["paths"])
    if found is None:
        message = f"'paths' must be {PATHS_SHAPE}"
        entry.report("paths", message, entry.beside("paths"))
    return found or ()


def _answer(entry: Entry) -> Answer:
    value = entry.value
    if entry.record.get("scores") is not None:
        return _with_scores(entry)
    if isinstance(value, list) and value and all(isinstance(part, tuple) for part in value):
        hits = [dict(part) for part in value]
        key = next((k for k in _NESTED_DOCUMENT_KEYS if k in hits[0]), "doc_id")
        score_key = next((k for k in _SCORE_KEYS if k in hits[0]), None)
        if score_key is None:
            return _listed([hit.get(key) for hit in hits], entry)
        pairs = tuple((hit.get(key), hit.get(score_key)) for hit in hits)
        return _scored(pairs, entry, "score")
    if isinstance(value, list) and value and all(_is_pair(part) for part in value):
        return _scored(tuple(map(tuple, value)), entry, "score")
    if isinstance(value, list):
        return _listed(value, entry)
    return _scored(value, entry, "score")


def _with_scores(entry: Entry) -> dict[str, float]:
    """Return document -> score of ``docs`` and the list ``scores`` beside it."""
    documents, scores = entry.value, entry.record["scores"]
    if not isinstance(documents, list) or any(isinstance(part, tuple | list) for part in documents):
        message = (
            f"belongs beside a list of document ids, and {entry.named!r} is not one; leave it out"
        )
    elif not isinstance(scores, list):
        message = f"must be a list of numbers, one for each document, got {type_name(scores)}"
    elif len(scores) != len(documents):
        message = f"must be one for each document: {len(documents)} documents, {len(scores)} scores"
    else:
        return _scored(tuple(zip(documents, scores, strict=True)), entry, "score")
    entry.report("scores", message, entry.beside("scores"))
    return {}


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and isinstance(value[1], int | float)


def _scored(value: Any, entry: Entry, what: str) -> dict[str, float]:
    """Return document -> number of an object, or nothing after reporting what it is instead."""
    if not isinstance(value, tuple):
        shapes = _RUN_SHAPES if what == "score" else _QRELS_SHAPES
        message = f"must be {shapes}, got {type_name(value)}"
        entry.report("shape", message)
        return {}
    found: dict[str, float] = {}
    for written, number in value:
        document = entry.document(written)
        if document:
            _put(found, document, number, entry, what)
    return found


def _listed(value: list[Any], entry: Entry) -> list[str]:
    found = [entry.document(part) for part in value]
    unique = dict.fromkeys(found)
    if len(unique) < len(found):
        seen: set[str] = set()
        for document in found:
            if document and document in seen:
                message = f"the document {document!r} is there twice"
                entry.report("repeat", message, (*entry.keys, document, document))
            seen.add(document)
    return [document for document in unique if document]


def _add(
    found: dict[str, float], row: Row, entry: Entry, value_keys: tuple[str, ...], what: str
) -> None:
    key = next((key for key in value_keys if key in row.values), None)
    if key is None:
        message = f"{value_keys[0]!r} is missing{keys_there(row.values)}"
        entry.report("missing", message)
    else:
        _put(found, row.document, row.values[key], entry, what)


def _put(found: dict[str, float], document: str, number: Any, entry: Entry, what: str) -> None:
    keys = (*entry.keys, document) if entry.line is None else entry.keys
    about = f"of query {entry.query!r} and document {document!r}"
    value = _finite(number)
    if value is None:
        message = f"the {what} {about} must be a finite number, got {type_name(number)}"
        entry.report(what, message, keys)
    elif document in found:
        message = f"the document {document!r} of query {entry.query!r} is there twice"
        entry.report("repeat", message, (*keys, document))
    else:
        found[document] = value


def _finite(number: Any) -> float | None:
    if not is_number(number):
        return None
    try:
        value = float(number)
    except OverflowError:  # a whole number of hundreds of digits
        return None
    return value if math.isfinite(value) else None


def _is_first(complete: dict[str, int | None], entry: Entry) -> bool:
    """Note a query that is complete with this entry, and report one that was so before."""
    if entry.query not in complete:
        complete[entry.query] = entry.line
        return True
    first = complete[entry.query]
    message = f"the query {entry.query!r} is there twice"
    if first is not None:
        message += f", first on line {first}"
    entry.report("query twice", message, (*entry.keys, *entry.keys))
    return False


def _check_any(found: object, file: JsonFile, what: str) -> None:
    if not found and not file.log.mentions(file.path):
        file.log.add("none", f"holds no {what}", file.path)
