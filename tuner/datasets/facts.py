"""Triples and entities of documents, evidences of queries, and the paths that single facts form."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from tuner.core.corpus import Triple
from tuner.datasets.dataset import Evidence, Step
from tuner.datasets.lines import ProblemLog, Record, note_id, read_records, text_field, texts_field

PATHS_SHAPE = "a list of paths, each a list of [subject, relation, object] strings"


def _is_known(
    record: Record, what: str, known: Collection[str] | None, file: Path, log: ProblemLog
) -> bool:
    if known is None or record.id in known:
        return True
    log.add(f"unknown {what}", f"unknown {what} {record.id!r}", file, record.line)
    return False


def read_triples(file: Path, log: ProblemLog, document_ids: Collection[str] | None) -> list[Triple]:
    """Return the facts found in documents; an unknown document is reported."""
    triples = []
    for record in read_records(file, log, id_key="doc_id"):
        if record.values is None or not _is_known(record, "document", document_ids, file, log):
            continue
        parts = [text_field(record, key, file, log) for key in ("subject", "relation", "object")]
        if not (parts[0].strip() and parts[2].strip()):
            log.add("empty", "a triple needs a subject and an object", file, record.line)
        triples.append(Triple(record.id, *parts))
    return triples


def read_entities(
    file: Path, log: ProblemLog, document_ids: Collection[str] | None
) -> dict[str, tuple[str, ...]]:
    """Return the names found in each document; an unknown document is reported."""
    entities: dict[str, tuple[str, ...]] = {}
    lines: dict[str, int] = {}
    for record in read_records(file, log, id_key="doc_id"):
        note_id(record, "doc_id", lines, file, log)
        if record.values is not None and _is_known(record, "document", document_ids, file, log):
            entities[record.id] = texts_field(record, "entities", file, log)
    return entities


def read_evidences(
    file: Path, log: ProblemLog, query_ids: Collection[str] | None
) -> dict[str, Evidence]:
    """Return the labelled evidence of queries; an unknown query is reported."""
    evidences: dict[str, Evidence] = {}
    lines: dict[str, int] = {}
    for record in read_records(file, log, id_key="query_id"):
        note_id(record, "query_id", lines, file, log)
        if record.values is None or not _is_known(record, "query", query_ids, file, log):
            continue
        entities = texts_field(record, "entities", file, log)
        evidences[record.id] = Evidence(entities, _paths(record, file, log))
    return evidences


def _paths(record: Record, file: Path, log: ProblemLog) -> tuple[tuple[Step, ...], ...]:
    paths = parse_paths((record.values or {}).get("paths"))
    if paths is None:
        log.add("paths", f"'paths' must be {PATHS_SHAPE}", file, record.line)
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
