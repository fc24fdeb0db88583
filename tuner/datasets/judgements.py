"""Read judgements: lines of query id, document id and grade, separated by tabs."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from pathlib import Path

from tuner.core.grades import GradeScale
from tuner.datasets.lines import ABSENT, ProblemLog
from tuner.datasets.tables import QUERY_COLUMNS, read_separated

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


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
    qrels: dict[str, dict[str, float]] = {}
    first_lines: dict[tuple[str, str], int] = {}
    known_queries = None if query_ids is None else set(query_ids)
    known_documents = None if document_ids is None else set(document_ids)
    for position, (number, _, fields) in enumerate(read_separated(file, log)):
        if position == 0 and _is_header(fields):
            continue
        if len(fields) != 3:
            message = (
                f"expected query id, document id and grade, separated by tabs; "
                f"got {len(fields)} field{'s' if len(fields) > 1 else ''}"
            )
            log.add("fields", message, file, number)
            continue
        query, document, written = fields
        if known_queries is not None and query not in known_queries:
            log.add("unknown query", f"unknown query {query!r}: not in the queries", file, number)
        if known_documents is not None and document not in known_documents:
            message = f"unknown document {document!r}: not in the corpus"
            log.add(ABSENT, message, file, number)
        grade = parse_grade(written)
        if grade is None:
            message = f"invalid grade {written!r}: must be a finite number such as 0, 1 or 2"
            log.add("grade", message, file, number)
            continue
        first = first_lines.setdefault((query, document), number)
        if first != number:
            log.add("repeat", _repeat(query, document, grade, qrels, first), file, number)
            continue
        qrels.setdefault(query, {})[document] = grade
    check_some_relevant(qrels, bool(first_lines), file, log, relevant_from)
    return qrels


def _is_header(fields: list[str]) -> bool:
    return fields[0].strip().lower() in QUERY_COLUMNS and parse_grade(fields[-1]) is None


def parse_grade(written: str) -> float | None:
    """Return a finite decimal number, or None for anything else."""
    # float() alone would take "nan", "1_000" and digits of other scripts.
    if not _NUMBER.fullmatch(written.strip()) or not written.isascii():
        return None
    grade = float(written)
    return grade if math.isfinite(grade) else None


def _repeat(
    query: str, document: str, grade: float, qrels: dict[str, dict[str, float]], first: int
) -> str:
    judged = f"of query {query!r} and document {document!r}"
    earlier = qrels[query][document]
    if grade == earlier:
        return f"duplicate judgement {judged}, first on line {first}"
    return f"grade {grade:g} {judged} conflicts with {earlier:g} on line {first}"


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
