"""Reads a study's journal back, also while it is written or after it was cut off."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tuner.core.errors import InputError
from tuner.core.rankings import FloatArray
from tuner.core.study_record import StudyHeader
from tuner.core.trial import Trial, TrialState

FORMAT = 1


@dataclass(frozen=True)
class JournalContent:
    """What a journal holds.

    Attributes:
        header: what identifies the study.
        trials: by number, in the order of asking; those without a told line are still running.
        notes: the other events, oldest first, such as ``{"kind": "interrupted", "time": …}``.
        torn_bytes: the length of an unfinished last line, which is not part of the study.
    """

    header: StudyHeader
    trials: Mapping[int, Trial]
    notes: tuple[Mapping[str, Any], ...] = ()
    torn_bytes: int = 0


def read_journal(path: Path) -> JournalContent:
    """Read a journal, also one that is being written or whose last line is torn.

    Raises:
        InputError: no such file, no header, or a line that cannot be right, with file and line.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the journal: {error.strerror}", file=str(path)) from error
    *lines, torn = raw.split(b"\n")
    reading = _Reading(str(path))
    for number, line in enumerate(lines, start=1):
        reading.add(number, line)
    if reading.header is None:
        raise InputError("holds no study: it ends before its first line", file=str(path))
    return JournalContent(reading.header, reading.trials, tuple(reading.notes), len(torn))


def read_per_query(path: Path, number: int) -> dict[str, FloatArray]:
    """Read the per-query values of a trial, by metric; ``{}`` where none were kept.

    A shared trial has those of the trial that it shares with.
    """
    try:
        with np.load(per_query_path(path, number), allow_pickle=False) as values:
            return {name: values[name] for name in values.files}
    except FileNotFoundError:
        return {}


def per_query_path(path: Path, number: int) -> Path:
    """Return the file, beside the journal at ``path``, for a trial's per-query values."""
    return path.parent / "trials" / f"{number}.npz"


@dataclass
class _Reading:
    """A journal as far as it was read."""

    file: str
    header: StudyHeader | None = None
    trials: dict[int, Trial] = field(default_factory=dict)
    notes: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, number: int, line: bytes) -> None:
        try:
            record = json.loads(line, parse_constant=_refuse_constant)
            event = record["event"]
            if (self.header is None) != (event == "header"):
                raise ValueError("a journal has one header, in its first line")
            match event:
                case "header":
                    self.header = _header(record)
                case "asked":
                    self._asked(record)
                case "told":
                    self._told(record)
                case _:  # also the events of later versions
                    self.notes.append(record)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            what = (
                f"{error}" if isinstance(error, ValueError) else f"{type(error).__name__} {error}"
            )
            message = (
                f"this line cannot be right ({what}); only a last line may be unfinished: "
                "restore the file from a copy, or cut it off before this line"
            )
            raise InputError(message, file=self.file, line=number) from error

    def _asked(self, record: Mapping[str, Any]) -> None:
        trial = Trial.from_record({**record, "state": TrialState.RUNNING})
        if trial.number != len(self.trials):
            raise ValueError(f"trial {trial.number} where {len(self.trials)} is next")
        self.trials[trial.number] = trial

    def _told(self, record: Mapping[str, Any]) -> None:
        metrics = {
            name: float("nan") if value is None else value
            for name, value in record["metrics"].items()
        }
        trial = Trial.from_record({**record, "metrics": metrics})
        asked = self.trials.get(trial.number)
        if asked is None or asked.is_told or not trial.is_told:
            raise ValueError(f"trial {trial.number} was not asked, or has been told already")
        if asked.params != trial.params or asked.arm != trial.arm:
            raise ValueError(f"trial {trial.number} was asked with other params or arm")
        self.trials[trial.number] = trial


def _header(record: Mapping[str, Any]) -> StudyHeader:
    if record["format"] > FORMAT:
        raise ValueError(f"format {record['format']}, written by a later version; update")
    return StudyHeader.from_record(record)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")
