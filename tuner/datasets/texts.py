"""Read the texts of a data set: documents and questions as JSON lines, in the BEIR layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tuner.core.corpus import Document, Query
from tuner.datasets.lines import (
    ProblemLog,
    Record,
    note_id,
    places_told,
    read_records,
    text_field,
    texts_field,
)

_MOST_LINES = 1000


@dataclass(frozen=True)
class CorpusFile:
    """The documents of a corpus.jsonl."""

    documents: list[Document]
    lines: dict[str, int]  # where each id was first seen, ids of broken lines included


@dataclass(frozen=True)
class QueriesFile:
    """The questions of a queries.jsonl, and the answers that it gives."""

    queries: list[Query]
    answers: dict[str, tuple[str, ...]]
    lines: dict[str, int]


def read_corpus(file: Path, log: ProblemLog) -> CorpusFile:
    """Return the documents of JSON lines ``{"_id", "title", "text"}``; the title may be missing."""
    found = CorpusFile([], {})
    for record in read_records(file, log, id_key="_id"):
        note_id(record, "_id", found.lines, file, log)
        if record.values is None:
            continue
        title, text = (text_field(record, key, file, log) for key in ("title", "text"))
        if not (title.strip() or text.strip()) and _are_strings(record, "title", "text"):
            message = f"document {record.id!r} has no title and no text{_keys_hint(record)}"
            log.add("empty", message, file, record.line)
        found.documents.append(Document(record.id, title, text))
    if not found.lines and not log.mentions(file):
        log.add("none", "holds no document", file)
    return found


def read_queries(file: Path, log: ProblemLog) -> QueriesFile:
    """Return the questions of JSON lines ``{"_id", "text"}`` and what else a query may have."""
    found = QueriesFile([], {}, {})
    for record in read_records(file, log, id_key="_id"):
        note_id(record, "_id", found.lines, file, log)
        if record.values is None:
            continue
        text, query_type, difficulty, group = (
            text_field(record, key, file, log)
            for key in ("text", "query_type", "difficulty", "group")
        )
        if not text.strip() and _are_strings(record, "text"):
            message = f"query {record.id!r} has no text{_keys_hint(record)}"
            log.add("empty", message, file, record.line)
        found.queries.append(Query(record.id, text, query_type, difficulty, group))
        answer = text_field(record, "answer", file, log)
        answers = [answer, *texts_field(record, "answer_aliases", file, log)]
        if any(answers):
            found.answers[record.id] = tuple(dict.fromkeys(filter(None, answers)))
    if not found.lines and not log.mentions(file):
        log.add("none", "holds no query", file)
    return found


def _are_strings(record: Record, *keys: str) -> bool:
    # A field of another type has been reported already: not as an empty one too.
    values = record.values or {}
    return all(isinstance(values.get(key), str | None) for key in keys)


def _keys_hint(record: Record) -> str:
    keys = ", ".join(record.values or {})
    return "" if "text" in (record.values or {}) else f"; its keys are: {keys}"


def judgement_warnings(
    asked: QueriesFile, qrels: Mapping[str, Mapping[str, float]], relevant_from: float
) -> tuple[str, ...]:
    """Say how many queries have no judgement, or no relevant document, and on which lines."""
    unjudged = [query.id for query in asked.queries if query.id not in qrels]
    hopeless = [
        id_
        for id_, judged in qrels.items()
        if not any(grade >= relevant_from for grade in judged.values())
    ]
    told = (
        (unjudged, "of {} queries have no judgement and were left out"),
        (hopeless, "of {} queries have judgements but no relevant document"),
    )
    return tuple(
        f"{len(ids)} {text.format(len(asked.queries))} ({_lines_told(ids, asked.lines)})"
        for ids, text in told
        if ids
    )


def _lines_told(ids: Sequence[str], lines: Mapping[str, int]) -> str:
    """Name the lines, of very many ones the first: a published set leaves out whole splits."""
    shown = places_told([lines[id_] for id_ in ids[:_MOST_LINES]])
    more = len(ids) - _MOST_LINES
    return f"{shown}, and {more} more" if more > 0 else shown
