"""``nights.jsonl``: what happened every night, append-only, and what is read back from it.

A line is one event of one study: ``queries`` (what a part's queries are), ``begun``, ``scored``,
``look``, ``ended``, ``failed``, ``told``, ``champion``, ``shown``, ``synced`` (MLflow has a study
that it had missed), ``pruned``.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from tuner.core.errors import TunerError
from tuner.core.files import append_lines
from tuner.core.json_text import json_text, read_as

NIGHTS_FILE = "nights.jsonl"
WAITING = "waiting for approval"
_BEGINNING = '{"event":'


@dataclass(frozen=True)
class Champion:
    """What runs today.

    Attributes:
        params: its parameters, or a policy's record.
        version: of the registered model; None where it has none.
        study_id: of the study that found it; None for the configuration's baseline.
        source: ``"config"``, ``"registry"``, or ``"nights"`` (the last known one).
    """

    params: dict[str, Any]
    version: int | None = None
    study_id: str | None = None
    source: str = "config"

    @property
    def called(self) -> str:
        """Return what people call it.

        >>> Champion({}, 4).called
        'version 4'
        """
        if self.version is not None:
            return f"version {self.version}"
        return "the baseline" if self.study_id is None else f"study {self.study_id[:8]}"


@dataclass(frozen=True)
class Promotion:
    """One move of the champion: to what, from what, and who did it and why."""

    to: Champion
    before: int | None
    at: float
    who: str
    why: str
    night: date | None = None
    is_shown: bool = False

    @property
    def when(self) -> str:
        """Return the time, for people."""
        return datetime.fromtimestamp(self.at, tz=UTC).strftime("%Y-%m-%d %H:%M UTC")


@dataclass(frozen=True)
class Score:
    """The champion's objective of one night: its mean, and by query where that is known."""

    night: date
    champion: str
    mean: float
    part: str | None = None
    by_query: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class Look:
    """One verdict on a part of the queries: which pair, and the level that it was given at.

    Attributes:
        number: of the looks at these queries, from 1.
        share: of the error rate that all looks have together.
        alpha: the level of the verdict; not under its share.
        champion: short name of its parameters; None in lines that do not have it.
        composite: by query of the part, the challenger's composite less the champion's; None where
            undefined. Empty where it is not known, or nothing is held out.
        objective: the same of the objective, where it has a price that is known by query.
    """

    night: date
    pair: str
    part: str
    number: int
    share: float
    alpha: float
    champion: str | None = None
    composite: tuple[float | None, ...] = ()
    objective: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class Part:
    """The queries of a part: what each is known by, and its type."""

    digests: tuple[str, ...]
    types: tuple[str, ...]


@dataclass(frozen=True)
class Night:
    """One night; ``summary`` is None where it was not finished."""

    night: date
    run_dir: str
    study_id: str
    champion: Champion
    data: Mapping[str, Any]
    at: float
    summary: Mapping[str, Any] | None = None

    @property
    def is_settled(self) -> bool:
        """Say whether the night came to its end, and did not fail."""
        return self.summary is not None and self.summary.get("outcome") != "failed"

    @property
    def is_in_mlflow(self) -> bool:
        """Say whether MLflow was shown all of its study when the night ended."""
        summary = self.summary or {}
        # Nights of an earlier version do not say so.
        return bool(summary.get("is_in_mlflow", summary.get("mlflow_run_id")))


@dataclass(frozen=True)
class Notice:
    """What somebody was told of a night, or why nobody was."""

    night: date
    outcome: str
    is_told: bool
    why: str | None = None


@dataclass(frozen=True)
class _Scored:
    """What the summary of a night holds of the champion and of the challenger."""

    version: int | None = None
    score: float | None = None
    holdout_score: float | None = None
    study_id: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Decided:
    """What the summary of a night holds of its verdict."""

    outcome: str
    sentence: str
    difference: float | None = None
    interval: tuple[float, float] | None = None
    alpha: float | None = None


@dataclass(frozen=True)
class _Data:
    """What is recorded of a night's data, and read by the next one."""

    documents: int
    queries: int
    judgements: int
    fingerprints: Mapping[str, str]


@dataclass(frozen=True)
class _Ended:
    """What the summary of a night that came to its end holds."""

    outcome: str
    champion: _Scored
    challenger: _Scored | None
    verdict: _Decided | None
    drift: Mapping[str, Any] | None
    error: str | None = None


@dataclass
class Records:
    """What is known of one study's nights, oldest first; ``write`` adds to it.

    ``failures`` says by night how its latest attempt came to no end: the outcome, and why.
    """

    runs_dir: Path
    study: str
    nights: list[Night] = field(default_factory=list)
    promotions: list[Promotion] = field(default_factory=list)
    scores: list[Score] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    parts: dict[str, Part] = field(default_factory=dict)
    pruned: set[str] = field(default_factory=set)
    synced: set[str] = field(default_factory=set)
    failures: dict[date, tuple[str, str]] = field(default_factory=dict)
    notices: list[Notice] = field(default_factory=list)
    unreadable: int = 0

    @property
    def champion(self) -> Champion | None:
        """Return the last known champion; None where none was ever promoted."""
        return self.promotions[-1].to if self.promotions else None

    @property
    def shown_version(self) -> int | None:
        """Return the version that the registry's champion is, as far as is known."""
        if not self.promotions:
            return None
        last = self.promotions[-1]
        return last.to.version if last.is_shown else last.before

    def write(self, event: str, **detail: Any) -> None:
        """Write one event down, and know it from now on; it is on the disk on return.

        Raises:
            TunerError: the disk refuses; the file is as it was before.
        """
        line = json_text({"event": event, "at": time.time(), "study": self.study, **detail})
        path = self.runs_dir / NIGHTS_FILE
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            append_lines(path, line)
        except OSError as error:
            raise TunerError(f"{path}: cannot be written: {error.strerror or error}") from error
        _take(self, json.loads(line))

    def of(self, night: date) -> Night | None:
        """Return the latest attempt at a night."""
        return next((one for one in reversed(self.nights) if one.night == night), None)

    def notice(self, night: date) -> Notice | None:
        """Return the latest that was told, or not, of a night."""
        return next((one for one in reversed(self.notices) if one.night == night), None)

    def has_promoted(self, night: Night) -> bool:
        """Say whether a night made what it found the champion, and nobody has moved it since."""
        last = self.promotions[-1] if self.promotions else None
        return last is not None and (last.night, last.to.study_id) == (night.night, night.study_id)

    def approval_of(self, night: Night) -> Promotion | None:
        """Return how what a night left to be approved was made the champion; None if it was not."""
        if (night.summary or {}).get("outcome") != WAITING:
            return None
        moves = (one for one in self.promotions if one.to.study_id == night.study_id)
        return next(moves, None)


def studies_in(runs_dir: Path) -> list[str]:
    """Return the names of the studies that have nights here, in the order of their first."""
    names = (record.get("study") for record, _ in _events(runs_dir) if record is not None)
    return list(dict.fromkeys(name for name in names if isinstance(name, str)))


def dates_of_studies(runs_dir: Path) -> dict[str, date]:
    """Return by study which night it was of, whatever the clock said; none for other studies."""
    found = {}
    for record, _ in _events(runs_dir):
        if record is not None and record.get("event") == "begun":
            with suppress(KeyError, TypeError, ValueError):
                found[str(record["study_id"])] = date.fromisoformat(record["night"])
    return found


def read_records(runs_dir: Path, study: str) -> Records:
    """Read the nights of one study; lines that cannot be read are counted and left out.

    A line that a crash cut off in the writing does not count: what it says never happened.
    """
    records = Records(runs_dir, study)
    for record, line in _events(runs_dir):
        if record is None:
            is_torn = line.startswith(_BEGINNING) and not line.endswith("}")
            records.unreadable += not is_torn
        elif record.get("study") == study:
            _take(records, record)
    return records


def _events(runs_dir: Path) -> Iterator[tuple[dict[str, Any] | None, str]]:
    path = runs_dir / NIGHTS_FILE
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    for line in filter(str.strip, text.split("\n")):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        yield (record if isinstance(record, dict) else None), line


def _take(records: Records, record: dict[str, Any]) -> None:
    try:
        _add(records, record)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        records.unreadable += 1


def _add(records: Records, record: dict[str, Any]) -> None:
    match record["event"]:
        case "queries":
            part = read_as(Part, record)
            if len(part.digests) != len(part.types):
                raise ValueError("a query without its type")
            records.parts[str(record["part"])] = part
        case "begun":
            read_as(_Data, record["data"])
            begun = read_as(Night, record)
            records.failures.pop(begun.night, None)
            records.nights.append(begun)
        case "scored":
            by_query = record.get("by_query") or []
            records.scores.append(read_as(Score, {**record, "by_query": by_query}))
        case "look":
            found = {"share": record["alpha"], **record}
            found |= {name: found.get(name) or [] for name in ("composite", "objective")}
            records.looks.append(_finite(read_as(Look, found)))
        case "ended":
            for place, begun in reversed([*enumerate(records.nights)]):
                if begun.study_id == record["study_id"]:
                    records.failures.pop(begun.night, None)
                    read_as(_Ended, record["summary"])  # what is read of it later is there
                    records.nights[place] = replace(begun, summary=record["summary"])
                    break
        case "failed":
            failure = (str(record["outcome"]), str(record["error"]))
            records.failures[date.fromisoformat(record["night"])] = failure
        case "told":
            records.notices.append(read_as(Notice, {**record, "is_told": record["told"]}))
        case "champion":
            records.promotions.append(read_as(Promotion, record))
        case "shown":
            version = read_as(int | None, record["version"])
            if records.promotions:
                last = records.promotions[-1]
                to = replace(last.to, version=version)
                records.promotions[-1] = replace(last, to=to, is_shown=True)
        case "synced":
            records.synced.add(str(record["study_id"]))
        case "pruned":
            records.pruned.update(record["run_dirs"])


def _finite(look: Look) -> Look:
    if not all(value is None or math.isfinite(value) for value in look.composite + look.objective):
        raise ValueError("a value that is not finite")
    return look
