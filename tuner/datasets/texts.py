"""Read the texts of a data set: documents and questions as JSON lines, in the BEIR layout."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tuner.core.corpus import Document, Query, Triple
from tuner.datasets.dataset import Evidence, Step
from tuner.datasets.folders import only_variant, variants
from tuner.datasets.lines import (
    ProblemLog,
    Record,
    places_told,
    read_records,
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
        record.note_id("_id", found.lines)
        if record.is_broken:
            continue
        title, text = (record.text(key) for key in ("title", "text"))
        if not (title.strip() or text.strip()) and _are_strings(record, "title", "text"):
            message = f"document {record.id!r} has no title and no text{_keys_hint(record)}"
            record.report("empty", message)
        found.documents.append(Document(record.id, title, text))
    if log.is_unread(file):
        return CorpusFile([], {})  # half a file would have half of the judgements reported
    if not found.lines and not log.mentions(file):
        log.add("none", "holds no document", file)
    return found


def read_queries(file: Path, log: ProblemLog) -> QueriesFile:
    """Return the questions of JSON lines ``{"_id", "text"}`` and what else a query may have."""
    found = QueriesFile([], {}, {})
    for record in read_records(file, log, id_key="_id"):
        record.note_id("_id", found.lines)
        if record.is_broken:
            continue
        text, query_type, difficulty, group = (
            record.text(key) for key in ("text", "query_type", "difficulty", "group")
        )
        if not text.strip() and _are_strings(record, "text"):
            message = f"query {record.id!r} has no text{_keys_hint(record)}"
            record.report("empty", message)
        found.queries.append(Query(record.id, text, query_type, difficulty, group))
        answer = record.text("answer")
        answers = [answer, *record.texts("answer_aliases")]
        if any(answers):
            found.answers[record.id] = tuple(dict.fromkeys(filter(None, answers)))
    if log.is_unread(file):
        return QueriesFile([], {}, {})
    if not found.lines and not log.mentions(file):
        log.add("none", "holds no query", file)
    return found


def _are_strings(record: Record, *keys: str) -> bool:
    # A field of another type has been reported already: not as an empty one too.
    return all(isinstance(record.values.get(key), str | None) for key in keys)


def _keys_hint(record: Record) -> str:
    keys = ", ".join(record.values)
    return "" if "text" in record.values else f"; its keys are: {keys}"


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


SUPPORTING_SHAPE = 'a list of {"doc_id": string, "text": string}'
PATHS_SHAPE = "a list of paths, each a list of [subject, relation, object] strings"


def _is_known(record: Record, what: str, known: Collection[str] | None) -> bool:
    if known is None or record.id in known:
        return True
    record.report(f"unknown {what}", f"unknown {what} {record.id!r}")
    return False


def read_graph(
    folder: Path, log: ProblemLog, document_ids: Collection[str] | None
) -> tuple[list[Triple], dict[str, tuple[str, ...]]]:
    """Return the facts and the names of the files beside a corpus; none where they are missing."""
    triples = only_variant(variants(folder, "triples.jsonl"), log)
    entities = only_variant(variants(folder, "entities.jsonl"), log)
    return (
        read_triples(triples, log, document_ids) if triples else [],
        read_entities(entities, log, document_ids) if entities else {},
    )


def read_triples(file: Path, log: ProblemLog, document_ids: Collection[str] | None) -> list[Triple]:
    """Return the facts found in documents; an unknown document is reported."""
    triples = []
    for record in read_records(file, log, id_key="doc_id"):
        if record.is_broken or not _is_known(record, "document", document_ids):
            continue
        parts = [record.text(key) for key in ("subject", "relation", "object")]
        if not (parts[0].strip() and parts[2].strip()):
            record.report("empty", "a triple needs a subject and an object")
        triples.append(Triple(record.id, *parts))
    return triples


def read_entities(
    file: Path, log: ProblemLog, document_ids: Collection[str] | None
) -> dict[str, tuple[str, ...]]:
    """Return the names found in each document; an unknown document is reported."""
    entities: dict[str, tuple[str, ...]] = {}
    lines: dict[str, int] = {}
    for record in read_records(file, log, id_key="doc_id"):
        record.note_id("doc_id", lines)
        if not record.is_broken and _is_known(record, "document", document_ids):
            entities[record.id] = record.texts("entities")
    return entities


def read_evidences(
    file: Path, log: ProblemLog, query_ids: Collection[str] | None
) -> tuple[dict[str, Evidence], dict[str, dict[str, list[str]]]]:
    """Return labelled evidence and supporting texts by query; an unknown query is reported."""
    evidences: dict[str, Evidence] = {}
    supports: dict[str, dict[str, list[str]]] = {}
    lines: dict[str, int] = {}
    for record in read_records(file, log, id_key="query_id"):
        record.note_id("query_id", lines)
        if record.is_broken or not _is_known(record, "query", query_ids):
            continue
        evidence = Evidence(record.texts("entities"), _paths(record))
        supports[record.id] = _supports(record)
        if evidence != Evidence() or not supports[record.id]:
            evidences[record.id] = evidence
    return evidences, supports


def _supports(record: Record) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    told = record.values.get("supporting") or []
    is_right = isinstance(told, list) and all(
        isinstance(one, dict) and all(isinstance(one.get(key), str) for key in ("doc_id", "text"))
        for one in told
    )
    if not is_right:
        record.report("supporting", f"'supporting' must be {SUPPORTING_SHAPE}")
        return found
    for one in told:
        found.setdefault(one["doc_id"], []).append(one["text"])
    return found


def _paths(record: Record) -> tuple[tuple[Step, ...], ...]:
    paths = parse_paths(record.values.get("paths"))
    if paths is None:
        record.report("paths", f"'paths' must be {PATHS_SHAPE}")
    return paths or ()


def parse_paths(paths: object) -> tuple[tuple[Step, ...], ...] | None:
    """Return the paths of a JSON value; none for null, and None where it is of another shape."""
    if paths is None:
        return ()
    if isinstance(paths, list) and all(
        isinstance(path, list) and path and all(_is_step(step) for step in path) for path in paths
    ):
        return tuple(tuple((step[0], step[1], step[2]) for step in path) for path in paths)
    return None


def _is_step(step: object) -> bool:
    if not isinstance(step, list) or len(step) != 3:
        return False
    return all(isinstance(part, str) for part in step)


def join_steps(steps: Sequence[Step]) -> tuple[tuple[Step, ...], ...]:
    """Return chains in which the object of each step is the subject of the next.

    Letter case does not count, and an empty string joins nothing. Each step is in exactly one
    chain: where two could follow, the first one does, and the other begins a chain of its own.

    >>> join_steps([("Ada", "mother", "Anne"), ("Ben", "born", "Rye"), ("anne", "died", "UK")])
    ((('Ada', 'mother', 'Anne'), ('anne', 'died', 'UK')), (('Ben', 'born', 'Rye'),))
    """
    unique = list(dict.fromkeys(steps))
    left = list(unique)
    chains = []
    while left:
        # First the steps that follow none; what they do not take along are branches and circles.
        first = (step for step in left if not any(_joins(other, step) for other in unique))
        chain = [next(first, left[0])]
        left.remove(chain[0])
        while following := next((step for step in left if _joins(chain[-1], step)), None):
            left.remove(following)
            chain.append(following)
        chains.append(tuple(chain))
    return tuple(chains)


def names_in(steps: Iterable[Step]) -> tuple[str, ...]:
    """Return every subject and object once, in the order of the steps."""
    names = (name for subject, _, object_ in steps for name in (subject, object_))
    return tuple(dict.fromkeys(filter(None, names)))


def _joins(step: Step, following: Step) -> bool:
    return bool(step[2]) and step[2].casefold() == following[0].casefold()
