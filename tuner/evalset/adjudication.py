"""From two annotators' sheets to one grade for each passage: compare, settle, and judge."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuner.core.corpus import Corpus, Query
from tuner.core.errors import InputError
from tuner.datasets.dataset import Dataset
from tuner.datasets.lines import ProblemLog
from tuner.evalset.sheets import (
    GRADES,
    Row,
    Sheet,
    grade_of,
    read_sheet,
    write_sheet,
)
from tuner.stats.agreement import Agreement, Weights, cohen_kappa

SETTLED = "adjudicated"
_EXTRA = ("grade_a", "grade_b", SETTLED, "comment_a", "comment_b")


@dataclass(frozen=True, slots=True)
class GradedTwice:
    """One passage with both annotators' grades and comments."""

    row: Row
    first: int
    second: int
    comments: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class Comparison:
    """Two annotators' work side by side.

    ``disagreements`` have the widest apart first, then the order of the first sheet.
    """

    pairs: tuple[GradedTwice, ...]
    agreement: Agreement

    @property
    def disagreements(self) -> tuple[GradedTwice, ...]:
        """Return the passages with two different grades."""
        differing = [pair for pair in self.pairs if pair.first != pair.second]
        return tuple(sorted(differing, key=lambda pair: -abs(pair.first - pair.second)))

    def to_record(self, gate: float) -> dict[str, Any]:
        """Return the agreement, whether it passes ``gate``, and the disagreements as plain data."""
        agreement = self.agreement
        return {
            "pairs": agreement.pairs,
            "same": agreement.same,
            "kappa": agreement.kappa,
            "weights": agreement.weights,
            "gate": gate,
            "passed": agreement.passes(gate),
            "verdict": verdict(agreement, gate),
            "disagreements": [
                {
                    "query_id": pair.row.query_id,
                    "document_id": pair.row.document_id,
                    "a": pair.first,
                    "b": pair.second,
                }
                for pair in self.disagreements
            ],
        }


def compare_sheets(
    first: str | Path,
    second: str | Path,
    *,
    weights: Weights = "quadratic",
    grades: Sequence[int] = GRADES,
) -> Comparison:
    """Read two annotators' sheets of the same passages and measure how far they agree.

    Raises:
        InputError: a missing or impossible grade, or a passage that only one of them has; all
            problems of both sheets at once, with file and row.
    """
    sheets = [_read(path, "grade") for path in (first, second)]
    if sheets[0].file == sheets[1].file:
        raise InputError(
            "the two sheets are the same file; give one of each annotator", file=str(first)
        )
    log = ProblemLog()
    given = [
        {
            key: grade_of(row, "grade", sheet.file, log, grades=grades)
            for key, row in sheet.rows.items()
        }
        for sheet in sheets
    ]
    for sheet, other in (sheets, reversed(sheets)):
        for key, row in sheet.rows.items():
            if key not in other.rows:
                message = (
                    f"query {key[0]!r}, document {key[1]!r} is not in {other.file}; "
                    "a spreadsheet may have changed an id or dropped a row"
                )
                log.add("unpaired", message, Path(sheet.file), row.number)
    log.refuse()
    pairs = []
    for key, row in sheets[0].rows.items():
        a, b = given[0][key], given[1][key]
        if a is None or b is None:  # reported above
            continue
        comments = (row.cells.get("comment", ""), sheets[1].rows[key].cells.get("comment", ""))
        pairs.append(GradedTwice(row.row, a, b, comments))
    agreement = cohen_kappa([p.first for p in pairs], [p.second for p in pairs], weights=weights)
    return Comparison(tuple(pairs), agreement)


def write_adjudication(path: str | Path, comparison: Comparison) -> None:
    """Write a sheet for the person who settles: disagreements first, with a blank to fill in.

    Where both gave the same grade, it is filled in.

    Raises:
        InputError: the file cannot be written.
    """
    same = [pair for pair in comparison.pairs if pair.first == pair.second]
    ordered = [*comparison.disagreements, *same]
    cells = [
        {
            "grade_a": str(pair.first),
            "grade_b": str(pair.second),
            SETTLED: str(pair.first) if pair.first == pair.second else "",
            "comment_a": pair.comments[0],
            "comment_b": pair.comments[1],
        }
        for pair in ordered
    ]
    write_sheet(path, [pair.row for pair in ordered], extra=_EXTRA, cells=cells)


def read_grades(
    path: str | Path, *, grades: Sequence[int] = GRADES
) -> tuple[dict[str, dict[str, float]], str]:
    """Read the final grades: query id -> document id -> grade, and the column they stand in.

    That is ``adjudicated`` where the sheet has it, else one annotator's ``grade``.

    Raises:
        InputError: a grade that is missing or impossible, with file and row, all at once.
    """
    sheet = read_sheet(path, needs=())
    column = SETTLED if SETTLED in sheet.columns else "grade"
    if column not in sheet.columns:
        message = f"no column {SETTLED!r} or 'grade'; the columns are: {', '.join(sheet.columns)}"
        raise InputError(message, file=str(path), line=1)
    log = ProblemLog()
    qrels: dict[str, dict[str, float]] = {}
    for (query_id, document_id), row in sheet.rows.items():
        grade = grade_of(row, column, sheet.file, log, grades=grades)
        if grade is not None:
            qrels.setdefault(query_id, {})[document_id] = float(grade)
    log.refuse()
    return qrels, column


def judged_dataset(
    path: str | Path,
    *,
    corpus: Corpus,
    queries: Sequence[Query],
    grades: Sequence[int] = GRADES,
    name: str = "judged",
    given: Mapping[str, Mapping[str, float]] | None = None,
) -> Dataset:
    """Make a data set of a corpus, queries and a sheet of final grades.

    Queries that the sheet does not have are left out. ``given`` takes the place of the sheet's
    grades: query id -> document id -> grade, as a judge gave them.

    Raises:
        InputError: a problem of the sheet, or an id in it that is not in the corpus or among the
            queries, with file and row; or no passage with a grade of at least 1.
    """
    qrels = read_grades(path, grades=grades)[0] if given is None else given
    file, log = Path(path), ProblemLog()
    documents = {document.id for document in corpus.documents}
    known = {query.id for query in queries}
    rows = read_sheet(path, needs=()).rows.values()
    _check_ids("query", "queries", [(row.number, row.key[0]) for row in rows], known, file, log)
    _check_ids(
        "document", "corpus", [(row.number, row.key[1]) for row in rows], documents, file, log
    )
    if not any(grade >= 1 for judged in qrels.values() for grade in judged.values()):
        log.add("none", "no passage is relevant: no grade reaches 1", file)
    log.refuse()
    return Dataset.create(
        name,
        str(path),
        documents=corpus.documents,
        queries=[query for query in queries if query.id in qrels],
        qrels=qrels,
        triples=corpus.triples,
        entities=corpus.entities,
    )


def _read(path: str | Path, column: str) -> Sheet:
    return read_sheet(path, needs=(column,))


def _check_ids(
    what: str,
    source: str,
    given: Sequence[tuple[int, str]],
    known: set[str],
    file: Path,
    log: ProblemLog,
) -> None:
    """Report ids, by row, that are not known; that none is known says that a file is wrong."""
    if known.isdisjoint(id_ for _, id_ in given):
        message = f"none of its {what} ids is in the {source}; was the sheet pooled from others?"
        log.add(what, message, file)
        return
    hint = "a spreadsheet may have changed it: import the id columns as text"
    for number, id_ in given:
        if id_ not in known:
            log.add(what, f"unknown {what} {id_!r}; {hint}", file, number)


def verdict(agreement: Agreement, gate: float) -> str:
    """Say in one sentence whether two annotators agree well enough; a gate of 0 asks for nothing.

    Raises:
        InputError: a gate outside [0, 1].
    """
    if not 0 <= gate <= 1:
        raise InputError(f"the gate is {gate:g}; a kappa to reach must be in [0, 1]")
    if agreement.kappa is None:
        said = f"kappa is undefined: {agreement.why_undefined}"
        return said if gate == 0 else f"{said}; the gate of {gate:g} is not passed"
    weighted = "" if agreement.weights == "none" else f" ({agreement.weights} weights)"
    # Rounded down, so that .7996 does not look like the .8 that it misses.
    shown = math.floor(agreement.kappa * 1000 + 1e-9) / 1000
    said = f"kappa {shown:.3f}{weighted} over {agreement.pairs} pairs"
    if gate == 0:
        return f"{said}; no gate"
    if agreement.passes(gate):
        return f"{said}: at least {gate:g}, the annotators agree well enough"
    return f"{said}: below {gate:g}; settle what the grades mean, then grade again"
