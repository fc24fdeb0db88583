"""The form of a study's journal, read back also while it is written or after it was cut off."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tuner.core.errors import InputError
from tuner.core.files import whole
from tuner.core.found import FOUND
from tuner.core.json_text import read_as
from tuner.core.rankings import FloatArray
from tuner.core.run_files import TRIALS_DIR
from tuner.core.study_record import ArmRecord, StudyHeader
from tuner.core.trial import Trial, TrialState

FORMAT = 1
# The kinds of the notes with which a run begins, and with which it ends in whatever state.
OPENINGS = ("started", "resumed")
ENDING = "ended"
# The kind of the note that failed trials are evaluated again: each is told once more.
RETRIED = "retried"
# The kind of the note that a study goes on with more trials: its arms from there on, and what of
# the configuration is another one.
AMENDED = "amended"
# With this begin the names of values of settings beside the one that a trial was told with.
_ALTERNATIVES = "alternatives/"


@dataclass(frozen=True)
class Stage:
    """The arms with the budgets that a study had from its trial number ``begin`` on."""

    begin: int
    arms: tuple[ArmRecord, ...]


@dataclass(frozen=True)
class JournalContent:
    """What a journal holds.

    Attributes:
        header: what identifies the study, with the arms and budgets that it has by now.
        trials: by number, in the order of asking; those without a told line are still running.
        notes: the other events, oldest first, such as ``{"kind": "interrupted", "time": …}``.
        torn_bytes: the length of an unfinished last line, which is not part of the study.
        file: where it was read.
        suspects: numbers of trials that are not told and were under way when a run ended without
            saying so: one of them may have crashed it. A run that still writes looks the same.
        superseded: what was told of trials that were evaluated again since, oldest first.
        stages: the arms that the study began with, and those of each time it was given more.
        session_seconds: how long each run had gone on when it wrote its last line.
    """

    header: StudyHeader
    trials: Mapping[int, Trial]
    notes: tuple[Mapping[str, Any], ...] = ()
    torn_bytes: int = 0
    suspects: frozenset[int] = frozenset()
    file: str = ""
    superseded: tuple[Trial, ...] = ()
    stages: tuple[Stage, ...] = ()
    session_seconds: tuple[float, ...] = ()

    def amended(self, arms: tuple[ArmRecord, ...], config: Mapping[str, Any]) -> JournalContent:
        """Return the content of a study that goes on with these arms from here on."""
        stage = Stage(len(self.trials), arms)
        header = amended_header(self.header, arms, config)
        return replace(self, header=header, stages=(*self.stages, stage))


def amended_header(
    header: StudyHeader, arms: tuple[ArmRecord, ...], config: Mapping[str, Any]
) -> StudyHeader:
    """Return a header with other arms, and with these parts of the configuration."""
    return replace(header, arms=arms, config={**header.config, **config})


def read_journal(path: Path) -> JournalContent:
    """Read a journal, also one that is being written or whose last line is torn.

    Raises:
        InputError: no such file, no header, or a line that cannot be right, with file and line.
    """
    reader = JournalReader(path)
    reader.read()
    return reader.content()


class JournalReader:
    """Reads a journal again and again, each time only what was written since.

    Attributes:
        touched: the number of the trial of each line so far that asked, told or reopened one.
        beginnings: how often it had to begin anew, as the file is another one than before.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.beginnings = 0
        self._reading = _Reading(str(path))
        self._lines = self._offset = self._torn_bytes = 0
        self._last = b""

    @property
    def touched(self) -> Sequence[int]:
        """Return the trials that lines were of, in the order of the lines."""
        return self._reading.touched

    def read(self) -> bool:
        """Read what was written since the last time; say whether there was anything.

        Raises:
            InputError: no such file, or a line that cannot be right, with file and line.
        """
        try:
            with self.path.open("rb") as stream:
                back = len(self._last)
                stream.seek(self._offset - back)
                raw = stream.read()
                if raw[:back] != self._last:  # cut shorter than was read, or another study's
                    self._begin_anew()
                    back = 0
                    stream.seek(0)
                    raw = stream.read()
        except OSError as error:
            message = f"cannot read the journal: {error.strerror}"
            raise InputError(message, file=str(self.path)) from error
        *lines, torn = raw[back:].split(b"\n")
        for line in lines:
            self._reading.add(self._lines + 1, line)
            self._lines += 1
            self._last = line + b"\n"
            self._offset += len(self._last)
        self._torn_bytes = len(torn)
        return bool(lines)

    def content(self) -> JournalContent:
        """Return what was read so far.

        Raises:
            InputError: no header was read.
        """
        reading = self._reading
        if reading.header is None:
            raise InputError("holds no study: it ends before its first line", file=str(self.path))
        return JournalContent(
            reading.header,
            dict(reading.trials),
            tuple(reading.notes),
            self._torn_bytes,
            reading.all_suspects(),
            str(self.path),
            tuple(reading.superseded),
            tuple(reading.stages),
            tuple(reading.session_seconds),
        )

    def _begin_anew(self) -> None:
        self.beginnings += 1
        self._reading = _Reading(str(self.path))
        self._lines = self._offset = self._torn_bytes = 0
        self._last = b""


def write_per_query(path: Path, number: int, values: Mapping[str, FloatArray]) -> str:
    """Write the per-query values of a trial, whole; return the file's name in the journal.

    Raises:
        OSError: the disk refuses.
    """
    file = per_query_path(path, number)
    file.parent.mkdir(exist_ok=True)
    # The form of np.savez, which takes names such as "file" for its own options.
    with whole(file) as stream, zipfile.ZipFile(stream, "w") as archive:
        for name, row in values.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(row), allow_pickle=False)
    return f"{file.parent.name}/{file.name}"


def of_alternative(place: int, name: str) -> str:
    """Return the name under which values of a trial's nth alternative are written, from 1 on.

    >>> of_alternative(2, "recall@10")
    'alternatives/2/recall@10'
    """
    return f"{_ALTERNATIVES}{place}/{name}"


def read_per_query(path: Path, number: int) -> dict[str, FloatArray]:
    """Read the per-query values of a trial, by metric; ``{}`` where none were kept.

    A shared trial has those of the trial that it shares with.

    Raises:
        InputError: the file is damaged, as a disk may leave it after a power cut.
    """
    values = _read_values(path, number)
    return {
        name: row
        for name, row in values.items()
        if name != FOUND and not name.startswith(_ALTERNATIVES)
    }


def found_if_whole(path: Path, number: int) -> FloatArray | None:
    """Read where a trial found what is relevant, shape (queries,), as ``core.found`` writes it.

    None where that was not kept, as of a system that measures itself, or is damaged.
    """
    try:
        return _read_values(path, number).get(FOUND)
    except InputError:
        return None


def alternative_if_whole(path: Path, number: int, place: int) -> dict[str, FloatArray]:
    """Read the values of a trial's nth alternative, from 1 on; ``{}`` where that cannot be."""
    begin = of_alternative(place, "")
    try:
        values = _read_values(path, number)
    except InputError:
        return {}
    return {n.removeprefix(begin): row for n, row in values.items() if n.startswith(begin)}


def _read_values(path: Path, number: int) -> dict[str, FloatArray]:
    file = per_query_path(path, number)
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as values:
            return {name: _row(values[name]) for name in values.files}
    except FileNotFoundError:
        return {}
    except Exception as error:  # anything can be in a file
        message = (
            f"this file of values by query is damaged ({type(error).__name__}); restore it from a "
            f"copy, or delete it: trial {number} then keeps its means only"
        )
        raise InputError(message, file=str(file)) from error


def per_query_if_whole(path: Path, number: int) -> dict[str, FloatArray]:
    """Read the per-query values of a trial; ``{}`` also where they are damaged, which others tell.

    For what comes after a search: its result must not be lost for them.
    """
    try:
        return read_per_query(path, number)
    except InputError:
        return {}


def _row(values: FloatArray) -> FloatArray:
    if values.ndim != 1 or not np.issubdtype(values.dtype, np.floating):
        raise ValueError(f"an array of {values.ndim} dimensions, of {values.dtype}")
    return values


def per_query_path(path: Path, number: int) -> Path:
    """Return the file, beside the journal at ``path``, for a trial's per-query values."""
    return path.parent / TRIALS_DIR / f"{number}.npz"


@dataclass
class _Reading:
    """A journal as far as it was read."""

    file: str
    header: StudyHeader | None = None
    trials: dict[int, Trial] = field(default_factory=dict)
    notes: list[Mapping[str, Any]] = field(default_factory=list)
    is_running: bool = False
    suspects: frozenset[int] = frozenset()
    superseded: list[Trial] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    session_seconds: list[float] = field(default_factory=list)
    touched: list[int] = field(default_factory=list)

    def all_suspects(self) -> frozenset[int]:
        """Return those of earlier runs and, unless it ended, of the last; none that was told."""
        unfinished = frozenset(n for n, trial in self.trials.items() if not trial.is_told)
        return unfinished if self.is_running else self.suspects & unfinished

    def add(self, number: int, line: bytes) -> None:
        try:
            record = json.loads(line, parse_constant=_refuse_constant)
            event = record["event"]
            if (self.header is None) != (event == "header"):
                raise ValueError("a journal has one header, in its first line")
            match event:
                case "header":
                    self.header = _header(record)
                    self.stages = [Stage(0, self.header.arms)]
                case "asked":
                    self._asked(record)
                case "told":
                    self._told(record)
                case _:  # also the events of later versions
                    self._noted(record)
            if self.session_seconds and "session_s" in record:
                self.session_seconds[-1] = float(record["session_s"])
        except Exception as error:  # anything can be in a file
            what = f"{error}"
            if not isinstance(error, ValueError | InputError):
                what = f"{type(error).__name__} {error}"
            message = (
                f"this line cannot be right ({what}); only a last line may be unfinished: "
                "restore the file from a copy, or cut it off before this line"
            )
            raise InputError(message, file=self.file, line=number) from error

    def _noted(self, record: Mapping[str, Any]) -> None:
        kind = record.get("kind")
        if kind in OPENINGS:
            self.suspects = self.all_suspects()
            self.is_running = True
            self.session_seconds.append(0.0)
        elif kind == ENDING:
            self.is_running = False
        elif kind == RETRIED:
            for number in record["trials"]:
                self.superseded.append(self.trials[number])
                self.trials[number] = self.trials[number].reopened()
                self.touched.append(number)
        elif kind == AMENDED and self.header is not None:
            arms = read_as(tuple[ArmRecord, ...], record["arms"], "arms")
            self.header = amended_header(self.header, arms, record.get("config", {}))
            self.stages.append(Stage(len(self.trials), arms))
        self.notes.append(record)

    def _asked(self, record: Mapping[str, Any]) -> None:
        trial = Trial.from_record({**record, "state": TrialState.RUNNING})
        if trial.number != len(self.trials):
            raise ValueError(f"trial {trial.number} where {len(self.trials)} is next")
        self.trials[trial.number] = trial
        self.touched.append(trial.number)

    def _told(self, record: Mapping[str, Any]) -> None:
        trial = Trial.from_record(record)
        asked = self.trials.get(trial.number)
        if asked is None or asked.is_told or not trial.is_told:
            raise ValueError(f"trial {trial.number} was not asked, or has been told already")
        if asked.params != trial.asked or asked.arm != trial.arm:
            raise ValueError(f"trial {trial.number} was asked with other params or arm")
        self.trials[trial.number] = trial
        self.touched.append(trial.number)


def _header(record: Mapping[str, Any]) -> StudyHeader:
    if record["format"] > FORMAT:
        raise ValueError(f"format {record['format']}, written by a later version; update")
    return StudyHeader.from_record(record)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")
