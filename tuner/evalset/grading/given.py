"""Who gave what to the passages of a sheet: as the journal tells it, and written there first."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

from filelock import FileLock, Timeout

from tuner.core.errors import InputError
from tuner.core.json_text import text_digest
from tuner.evalset.grading.journal import Event, Line, add_lines, read_lines
from tuner.evalset.grading.names import checked_name, same
from tuner.evalset.sheets import GRADES, GradedRow, Sheet, read_sheet
from tuner.stats.agreement import Agreement, cohen_kappa

Key = tuple[str, str]
Clock = Callable[[], str]


@dataclass(frozen=True, slots=True)
class Given:
    """What a passage was given; ``by`` is who settled it, empty where it was edited by hand."""

    grade: int | None = None
    comment: str = ""
    by: str = ""


NOTHING = Given()


@dataclass
class Kept:
    """What one person gave, or what was settled, which has no ``name``.

    Attributes:
        given: (query id, document id) -> what holds now.
        done: what can be taken back, the latest last: who, where, and what held before.
        written: what held when the sheet was written, and ``digest`` of that file.
        is_new: something was given since.
    """

    name: str
    given: dict[Key, Given] = field(default_factory=dict)
    done: list[tuple[str, Key, Given]] = field(default_factory=list)
    written: dict[Key, Given] = field(default_factory=dict)
    digest: str = ""
    is_new: bool = False

    def take(self, line: Line) -> None:
        """Let a line of the journal hold."""
        if line.event == "written":
            self.written, self.digest, self.is_new = dict(self.given), line.text, False
            return
        by = "" if self.name else line.by
        if line.event in ("graded", "settled"):
            self.done.append((line.by, line.key, self.given.get(line.key, NOTHING)))
        elif (last := self.last_of(line.by, line.key)) is not None:
            by = self.done.pop(last)[2].by
        self.given[line.key] = Given(line.grade, line.comment, by)
        self.is_new = True

    def last_of(self, by: str, key: Key | None = None) -> int | None:
        """Return the place in ``done`` of the last thing that somebody did, anywhere or there."""
        for number in range(len(self.done) - 1, -1, -1):
            who, where, _ = self.done[number]
            if who == by and key in (None, where):
                return number
        return None


@dataclass(frozen=True)
class Opinion:
    """What one person gave a passage that others graded too."""

    by: str
    grade: int
    comment: str


@dataclass(frozen=True)
class Disputed:
    """A passage with different grades, at a place of the page, and what it was settled as."""

    at: int
    opinions: tuple[Opinion, ...]
    settled: Given


@dataclass(frozen=True)
class Together:
    """How far two people agree on what both of them have graded."""

    first: str
    second: str
    agreement: Agreement


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class Grading:
    """A sheet, and all that was given to its passages. Threads may share it.

    ``rows`` have the passages of a query together, queries in the order of the sheet; ``starts``
    are the places at which each query begins. ``problem`` is why a sheet could not be written.
    """

    def __init__(self, sheet: Sheet, grades: Sequence[int], journal: Path, now: Clock) -> None:
        self.sheet, self.grades, self.journal, self._now = sheet, tuple(grades), journal, now
        by_query: dict[str, list[GradedRow]] = {}
        for row in sheet.rows.values():
            by_query.setdefault(row.row.query_id, []).append(row)
        self.rows = tuple(row for rows in by_query.values() for row in rows)
        self.starts = tuple(_starts(by_query.values()))
        self.place = {row.key: at for at, row in enumerate(self.rows)}
        self.settled = Kept("")
        self.torn = self.strange = self.changed = 0
        self.problem = ""
        self._people: dict[str, Kept] = {}
        self._lock = threading.RLock()

    @classmethod
    @contextmanager
    def open(
        cls, path: str | Path, *, grades: Sequence[int] = GRADES, now: Clock = _now
    ) -> Iterator[Grading]:
        """Read a sheet, and what its journal, the file beside it, says was given.

        Nobody else can open it within the block.

        Raises:
            InputError: one of them cannot be read, or another program has opened it.
        """
        file = Path(path)
        sheet, journal = read_sheet(file, needs=()), file.with_suffix(".grades.jsonl")
        with _alone(journal):
            yield cls._read(sheet, grades, journal, now)

    @classmethod
    def _read(cls, sheet: Sheet, grades: Sequence[int], journal: Path, now: Clock) -> Grading:
        found = cls(sheet, grades, journal, now)
        texts: dict[Key, str] = {}
        lines = list(read_lines(found.journal))
        is_sheet = [line is not None and line.event == "written" and not line.by for line in lines]
        last = len(lines) - 1 - is_sheet[::-1].index(True) if any(is_sheet) else None
        for number, line in enumerate(lines):
            if line is None:
                found.torn += 1
                continue
            found._of(line).take(line)
            if line.event == "graded":
                texts[line.key] = line.text
            if number == last:
                found.settled.written = found.holding()
        found.strange = sum(key not in found.place for key in texts)
        found.changed = sum(
            bool(text) and key in found.place and text != _digest(found.rows[found.place[key]])
            for key, text in texts.items()
        )
        return found

    def people(self) -> list[Kept]:
        """Return who has given anything, the first first."""
        with self._lock:
            return [one for one in self._people.values() if one.given]

    def name_of(self, written: object) -> str:
        """Return a name as it is known here, whatever its letter case.

        Raises:
            InputError: nobody can be called so.
        """
        name = checked_name(written)
        with self._lock:
            known = self._people.get(same(name))
        return name if known is None else known.name

    def person(self, name: str) -> Kept:
        """Return what somebody gave."""
        with self._lock:
            return self._people.setdefault(same(name), Kept(name))

    def give(self, name: str, at: int, grade: int | None, comment: str = "") -> None:
        """Give a passage a grade, or none again, and a comment; on the disk on return.

        Raises:
            InputError: no such passage or grade.
            OSError: the disk refuses; nothing has changed.
        """
        self._check(at, grade)
        with self._lock:
            self._add("graded", self.person(name), name, self.rows[at], Given(grade, comment))

    def settle(self, name: str, at: int, grade: int | None) -> None:
        """Say which grade holds of a passage that was graded differently; see ``give``."""
        self._check(at, grade)
        with self._lock:
            self._add("settled", self.settled, name, self.rows[at], Given(grade))

    def undo(self, name: str) -> int | None:
        """Take back what somebody gave last; return its place, or None where there is nothing.

        Raises:
            OSError: the disk refuses; nothing has changed.
        """
        return self._undo("undone", self.person(name), name)

    def unsettle(self, name: str) -> int | None:
        """Take back what somebody settled last; see ``undo``."""
        return self._undo("unsettled", self.settled, name)

    def take_over(self, kept: Kept, edits: dict[Key, Given]) -> None:
        """Take over what was edited in the file of a person, or of settled grades.

        Raises:
            OSError: the disk refuses; nothing has changed.
        """
        event: Event = "graded" if kept.name else "settled"
        lines = [
            self._line(event, kept.name or given.by, self.rows[self.place[key]], given)
            for key, given in edits.items()
        ]
        with self._lock:
            add_lines(self.journal, lines)
            for line in lines:
                kept.take(line)

    def note_written(self, kept: Kept, digest: str) -> None:
        """Note that the file of a person, or of settled grades, holds all that was given.

        Raises:
            OSError: the disk refuses.
        """
        line = Line("written", kept.name, self._now(), text=digest)
        add_lines(self.journal, [line])
        kept.take(line)
        if not kept.name:
            kept.written = self.holding()

    def held(self) -> threading.RLock:
        """Return the lock under which nothing is given."""
        return self._lock

    def together(self) -> list[Together]:
        """Return how far each two people agree, who have graded at least one passage both."""
        with self._lock:
            grades = [
                (one.name, {key: given.grade for key, given in self._on_sheet(one)})
                for one in self.people()
            ]
        found = []
        for (first, left), (second, right) in combinations(grades, 2):
            pairs = [
                (a, b)
                for key, a in left.items()
                if a is not None and (b := right.get(key)) is not None
            ]
            if pairs:
                agreement = cohen_kappa([a for a, _ in pairs], [b for _, b in pairs])
                found.append(Together(first, second, agreement))
        return found

    def holding(self) -> dict[Key, Given]:
        """Return what holds: what was settled, else what two or more gave, and nobody otherwise."""
        with self._lock:
            grades: dict[Key, list[int]] = {}
            for one in self.people():
                for key, given in self._on_sheet(one):
                    if given.grade is not None:
                        grades.setdefault(key, []).append(given.grade)
            agreed = {
                key: Given(given[0])
                for key, given in grades.items()
                if len(given) > 1 and len(set(given)) == 1
            }
            settled = self._on_sheet(self.settled)
            return agreed | {key: given for key, given in settled if given.grade is not None}

    def disputed(self) -> list[Disputed]:
        """Return what was graded differently, or settled: the widest apart first."""
        with self._lock:
            opinions: dict[int, list[Opinion]] = {}
            for one in self.people():
                for key, given in self._on_sheet(one):
                    if given.grade is not None:
                        opinion = Opinion(one.name, given.grade, given.comment)
                        opinions.setdefault(self.place[key], []).append(opinion)
            settled = {self.place[key]: given for key, given in self._on_sheet(self.settled)}
        found = [
            Disputed(at, tuple(given), settled.get(at, NOTHING))
            for at, given in opinions.items()
            if len({one.grade for one in given}) > 1 or settled.get(at, NOTHING).grade is not None
        ]
        return sorted(found, key=lambda one: (-_width(one), one.at))

    def _check(self, at: int, grade: int | None) -> None:
        if not 0 <= at < len(self.rows):
            raise InputError(f"there is no passage {at}; the sheet has {len(self.rows)}")
        if grade is not None and grade not in self.grades:
            known = ", ".join(map(str, self.grades))
            raise InputError(f"{grade!r} is no grade; give one of {known}")

    def _add(self, event: Event, kept: Kept, by: str, row: GradedRow, given: Given) -> None:
        line = self._line(event, by, row, given)
        add_lines(self.journal, [line])
        kept.take(line)

    def _undo(self, event: Event, kept: Kept, by: str) -> int | None:
        with self._lock:
            while (last := kept.last_of(by)) is not None:
                _, key, before = kept.done[last]
                at = self.place.get(key)
                if at is not None:
                    self._add(event, kept, by, self.rows[at], before)
                    return at
                del kept.done[last]  # its passage is on the sheet no more
        return None

    def _line(self, event: Event, by: str, row: GradedRow, given: Given) -> Line:
        return Line(event, by, self._now(), *row.key, given.grade, given.comment, _digest(row))

    def _of(self, line: Line) -> Kept:
        is_settled = line.event in ("settled", "unsettled") or not line.by
        return self.settled if is_settled else self.person(line.by)

    def _on_sheet(self, kept: Kept) -> Iterator[tuple[Key, Given]]:
        return ((key, given) for key, given in kept.given.items() if key in self.place)


@contextmanager
def _alone(journal: Path) -> Iterator[None]:
    lock = FileLock(f"{journal}.lock")
    try:
        lock.acquire(blocking=False)
    except Timeout:
        message = (
            "is written by another `tuner dataset grade`; go on at the address that it printed, "
            "where several people can grade, or end it"
        )
        raise InputError(message, file=str(journal)) from None
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=str(journal)) from error
    try:
        yield
    finally:
        lock.release()


def _starts(queries: Iterable[Sequence[GradedRow]]) -> Iterator[int]:
    at = 0
    for rows in queries:
        yield at
        at += len(rows)


def _width(one: Disputed) -> int:
    grades = [opinion.grade for opinion in one.opinions]
    return max(grades) - min(grades)


def _digest(row: GradedRow) -> str:
    return text_digest(f"{row.row.query}\n{row.row.title}\n{row.row.passage}")
