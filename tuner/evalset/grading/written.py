"""The sheets that come of it: one for each person, which ``agree`` reads, and one of what holds.

They are views of the journal, written anew when something was given. A person may go on in such a
file: what was changed there is taken over, and nothing of it is written over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from tuner.core.errors import InputError, Problem
from tuner.core.files import write_whole
from tuner.datasets.lines import ProblemLog
from tuner.evalset.adjudication import SETTLED as SETTLED_COLUMN
from tuner.evalset.grading.given import NOTHING, Given, Grading, Kept, Key
from tuner.evalset.grading.names import SETTLED
from tuner.evalset.sheets import COLUMNS, grade_of, read_sheet, sheet_text

BY = "settled_by"


def path_of(grading: Grading, kept: Kept) -> Path:
    """Return the file of a person, or of the settled grades."""
    sheet = Path(grading.sheet.file)
    return sheet.with_suffix(f".{kept.name or SETTLED}.csv")


def write_sheets(grading: Grading) -> list[Path]:
    """Write the sheets in which something is new; return those that hold what was given by now.

    Raises:
        InputError: a sheet was edited beside, and cannot be read any more. The others are written.
        OSError: the disk refuses.
    """
    problems: list[Problem] = []
    paths: list[Path] = []
    for kept in [*grading.people(), grading.settled]:
        if not kept.name and len(grading.people()) < 2 and not kept.given:
            continue  # nothing can differ
        try:
            with grading.held():
                _take_over_edits(grading, kept)
                _write(grading, kept)
        except InputError as error:
            problems += error.problems
            continue
        paths.append(path_of(grading, kept))
    if problems:
        raise InputError(problems=problems)
    return paths


def _write(grading: Grading, kept: Kept) -> None:
    path = path_of(grading, kept)
    # Whether grades agree is of those whom it is about: what is settled has no time of its own.
    if kept.name and not kept.is_new and path.exists():
        return
    text = _sheet_of(grading, kept)
    digest = _digest(text.encode(errors="backslashreplace"))
    if digest == kept.digest and path.exists():
        return
    write_whole(path, text)
    grading.note_written(kept, digest)


def _take_over_edits(grading: Grading, kept: Kept) -> None:
    path = path_of(grading, kept)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return
    if _digest(content) == kept.digest:
        return
    column = "grade" if kept.name else SETTLED_COLUMN
    edits = dict(_edits(grading, kept, path, column))
    if edits:
        grading.take_over(kept, edits)
    kept.is_new = True


def _edits(grading: Grading, kept: Kept, path: Path, column: str) -> Iterator[tuple[Key, Given]]:
    """Yield what a file has, and had not when it was written."""
    sheet, log = read_sheet(path, needs=(column,)), ProblemLog()
    found = []
    for key, row in sheet.rows.items():
        if key not in grading.place:
            continue
        grade = None
        if row.cells.get(column):
            grade = grade_of(row, column, sheet.file, log, grades=grading.grades)
        comment = row.cells.get("comment", "") if kept.name else ""
        before = kept.written.get(key, NOTHING)
        if (grade, comment) != (before.grade, before.comment):
            found.append((key, Given(grade, comment, row.cells.get(BY, ""))))
    log.refuse()
    yield from found


def _sheet_of(grading: Grading, kept: Kept) -> str:
    rows = list(grading.sheet.rows.values())
    columns: tuple[str, ...] = ("grade", "comment")
    if kept.name:
        cells = [_cells_of(kept.given.get(row.key, NOTHING)) for row in rows]
    else:
        people = grading.people()
        holds = grading.holding()
        letters = [_letter(number) for number in range(len(people))]
        columns = (
            *(f"grade_{letter}" for letter in letters),
            SETTLED_COLUMN,
            BY,
            *(f"comment_{letter}" for letter in letters),
        )
        cells = []
        for row in rows:
            given = [person.given.get(row.key, NOTHING) for person in people]
            cells.append(
                {f"grade_{a}": _shown(one.grade) for a, one in zip(letters, given, strict=True)}
                | {f"comment_{a}": one.comment for a, one in zip(letters, given, strict=True)}
                | {
                    SETTLED_COLUMN: _shown(holds.get(row.key, NOTHING).grade),
                    BY: holds.get(row.key, NOTHING).by,
                }
            )
    ours = {*COLUMNS, *columns}
    others = [name for name in grading.sheet.columns if name and name not in ours]
    cells = [
        cell | {name: row.cells.get(name, "") for name in others}
        for cell, row in zip(cells, rows, strict=True)
    ]
    return sheet_text([row.row for row in rows], extra=(*columns, *others), cells=cells)


def _cells_of(given: Given) -> dict[str, str]:
    return {"grade": _shown(given.grade), "comment": given.comment}


def _shown(grade: int | None) -> str:
    return "" if grade is None else str(grade)


def _letter(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else str(number + 1)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
