"""The journal: one study as append-only JSON lines, from which everything else can be rebuilt.

Every line is one event: ``header`` (the first line), ``asked``, ``told``, ``note``. A line is
handed to the operating system in one write, so a killed process loses nothing that it wrote. A told
line, with every line before it, is on the disk when ``told`` returns; asked lines reach the disk
with the next told line. So a killed run loses no told trial, and neither does a power cut.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from filelock import FileLock, Timeout

from tuner.core.errors import InputError, Problem, TunerError
from tuner.core.files import append_bytes, sync_folder
from tuner.core.journal import (
    AMENDED,
    FORMAT,
    OPENINGS,
    JournalContent,
    read_journal,
    write_per_query,
)
from tuner.core.json_text import without_undefined
from tuner.core.rankings import FloatArray
from tuner.core.shown import counted, shortened
from tuner.core.study_record import ArmRecord, StudyHeader
from tuner.core.trial import Trial

# What must be equal. A fingerprint says more than the mapping it was made of, so both are compared.
_SUBJECTS = ("seed", "ahead", "space", "objective", "baseline", "index", "fingerprints")
_LONGEST_VALUE = 120
# A line tells for so long how long a run has gone on, should it be killed.
TOLD_FOR_S = 1.0
# What of a configuration says how many trials the arms have.
_OF_ARMS = ("backends",)


class Journal:
    """Writes a study's events, as the only one who does so; made by ``create`` or ``resume``."""

    def __init__(self, path: Path, lock: FileLock) -> None:
        self.path = path
        self._lock = lock
        self._process_id = os.getpid()
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._is_closed = False
        self._began = self._written = time.monotonic()

    @classmethod
    def create(cls, path: Path, header: StudyHeader) -> Self:
        """Begin the journal of a new study; folders are made as needed.

        Raises:
            InputError: the file holds a study already, or another run writes it.
            TunerError: the disk refuses.
        """
        with _in_words(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            journal = cls._begin(path, header)
            sync_folder(path.parent)
            return journal

    @classmethod
    def _begin(cls, path: Path, header: StudyHeader) -> Self:
        lock = _locked(path)
        try:
            if path.exists() and b"\n" in path.read_bytes():
                message = "holds a study already; resume that one, or choose another folder"
                raise InputError(message, file=str(path))
            if path.exists():
                os.truncate(path, 0)  # a run that was killed within its first line
            journal = cls(path, lock)
        except BaseException:
            lock.release()
            raise
        with journal._closed_on_error():
            journal._append({"event": "header", "format": FORMAT, **header.to_record()})
            journal.note("started", pid=os.getpid(), host=socket.gethostname())
            journal._sync()
        return journal

    @classmethod
    def resume(cls, path: Path, current: StudyHeader | None = None) -> tuple[Self, JournalContent]:
        """Continue a journal; an unfinished last line is cut off, as the content then says.

        Nothing is written where it is of another study than ``current``. Where that has other
        versions, it is noted; where it has more trials for an arm, or further arms, the study goes
        on with these, and the content and its header tell of them.

        Raises:
            InputError: there is none, it is broken, another run writes it, or it is of another
                study: one problem for every difference.
            TunerError: the disk refuses.
        """
        if not path.exists():
            raise InputError("there is no journal to resume", file=str(path))
        with _in_words(path):
            return cls._continue(path, current)

    @classmethod
    def _continue(cls, path: Path, current: StudyHeader | None) -> tuple[Self, JournalContent]:
        lock = _locked(path)
        try:
            content = read_journal(path)
            other_versions = {}
            if current is not None:
                other_versions = _checked_same(content.header, current, file=str(path))
            if content.torn_bytes:
                os.truncate(path, path.stat().st_size - content.torn_bytes)
            journal = cls(path, lock)
        except BaseException:
            lock.release()
            raise
        detail = {"cut_off_bytes": content.torn_bytes} if content.torn_bytes else {}
        with journal._closed_on_error():
            journal.note("resumed", pid=os.getpid(), host=socket.gethostname(), **detail)
            if other_versions:
                journal.note("other_versions", versions=other_versions)
            if current is not None and current.arms != content.header.arms:
                config = {name: current.config[name] for name in _OF_ARMS if name in current.config}
                journal.note(AMENDED, arms=[asdict(arm) for arm in current.arms], config=config)
                journal._sync()
                content = content.amended(current.arms, config)
        return journal, content

    def asked(self, trial: Trial) -> None:
        """Write that a trial was asked for.

        Raises:
            TunerError: the disk refuses; the journal is as it was before.
        """
        record = {
            "event": "asked",
            "trial": trial.number,
            "arm": trial.arm,
            "params": trial.params,
            "asked_at": trial.asked_at,
            **self._clock(),
        }
        with _in_words(self.path):
            self._append(record)

    def told(self, trial: Trial, per_query: Mapping[str, FloatArray]) -> None:
        """Write how a trial ended; it is on the disk, per-query values included, on return.

        Raises:
            TunerError: the disk refuses; the journal is as it was before.
        """
        record: dict[str, Any] = {"event": "told", **trial.to_record(), **self._clock()}
        with _in_words(self.path):
            if per_query:
                record["per_query"] = write_per_query(self.path, trial.number, per_query)
            self._append(record)
            self._sync()

    def note(self, kind: str, **detail: Any) -> None:
        """Write any other event, such as a summary; ``detail`` is JSON-ready.

        Raises:
            TunerError: the disk refuses; the journal is as it was before.
        """
        with _in_words(self.path):
            times = {"time": time.time(), **self._clock()}
            self._append({"event": "note", "kind": kind, **times, **detail})

    def keep_time(self) -> None:
        """Write how long the run has gone on, where its last line does not tell that any more.

        Raises:
            TunerError: the disk refuses; the journal is as it was before.
        """
        if time.monotonic() - self._written > TOLD_FOR_S:
            self.note("going on")

    def close(self) -> None:
        """Bring everything to the disk and let others write; a second call does nothing.

        Raises:
            TunerError: the disk refuses; others may write all the same.
        """
        if self._is_closed:
            return
        self._leave_forked_child()
        self._is_closed = True
        try:
            with _in_words(self.path):
                self._sync()
        finally:
            os.close(self._file)
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            with suppress(TunerError):  # the first error says what is wrong
                self.close()
            raise

    def _leave_forked_child(self) -> None:
        """End a process that was forked from the one that opened the journal.

        It shares the file and its lock: it must neither write nor release the lock, and its parent
        goes on with the study.
        """
        if os.getpid() != self._process_id:
            os._exit(1)

    def _check_lock(self) -> None:
        """Refuse to write where the lock is no longer this one: another run may be writing too.

        Raises:
            TunerError: the lock file was deleted or replaced.
        """
        if not _is_held(self._lock):
            raise TunerError(
                f"{self.path}: the lock {self._lock.lock_file} was deleted or replaced while this "
                "run held it, so another may be writing the journal; this one stops. What it was "
                "told so far is kept: once no run is at work, go on with tuner resume"
            )

    def _clock(self) -> dict[str, float]:
        """Return how long this run has gone on: unlike the time of day, that does not jump."""
        return {"session_s": round(time.monotonic() - self._began, 3)}

    def _append(self, event: Mapping[str, Any]) -> None:
        self._leave_forked_child()
        self._check_lock()
        # JSON has no NaN: what is undefined is null in the journal, and NaN again when read.
        line = json.dumps(without_undefined(event), separators=(",", ":")).encode() + b"\n"
        append_bytes(self._file, line)
        self._written = time.monotonic()

    def _sync(self) -> None:
        os.fsync(self._file)


@contextmanager
def _in_words(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        what = f"{path}: cannot write the journal: {error.strerror or error}"
        raise TunerError(f"{what}; the study can be resumed once that is solved") from error


def _locked(path: Path) -> FileLock:
    taken = f"another run is writing this journal{_writer_of(path)}; wait for it or stop it"
    lock = FileLock(f"{path}.lock", thread_local=False)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise InputError(taken, file=str(path)) from None
    return lock


def _is_held(lock: FileLock) -> bool:
    """Say whether the file that was locked is still the one that others would lock."""
    descriptor = lock._context.lock_file_fd  # filelock has no public name for it
    try:
        return descriptor is not None and os.path.samestat(
            os.fstat(descriptor), os.stat(lock.lock_file)
        )
    except OSError:
        return False


def _writer_of(path: Path) -> str:
    try:
        notes = read_journal(path).notes
    except InputError:
        return ""
    openings = [note for note in notes if note.get("kind") in OPENINGS]
    if not openings:
        return ""
    try:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(openings[-1]["time"]))
        return f" (process {openings[-1]['pid']} on {openings[-1]['host']}, since {since})"
    except (KeyError, TypeError, ValueError, OverflowError, OSError):  # not as this file writes it
        return ""


def _checked_same(stored: StudyHeader, current: StudyHeader, *, file: str) -> dict[str, Any]:
    """Compare two headers; return the versions that differ, as ``{package: [then, now]}``.

    Raises:
        InputError: they are different studies; one problem for every difference.
    """
    # Both through JSON: a tuple that was configured comes back from the journal as a list.
    then, now = (json.loads(json.dumps(header.to_record())) for header in (stored, current))
    # A journal of old does not say all of it.
    now["index"] = {name: now["index"].get(name) for name in then["index"]}
    differences = [
        f"{subject} was {_short(before)} and is {_short(after)} now"
        for name in _SUBJECTS
        for subject, before, after in _differences(name, then[name], now[name])
    ]
    differences += _lost(stored.arms, current.arms)
    if differences:
        advice = "run it as a new study, or restore what it was started with"
        first = f"this is another study; {advice}"
        problems = [Problem(text, file=file) for text in (first, *differences)]
        raise InputError(problems=problems)
    return {
        package: [before, after]
        for package, before, after in _differences("", then["versions"], now["versions"])
    }


def _lost(then: Sequence[ArmRecord], now: Sequence[ArmRecord]) -> list[str]:
    """Say what of its arms a study would lose; with more trials, or further arms, it goes on."""
    found = []
    kept = {arm.name: arm for arm in now}
    for arm in then:
        after = kept.get(arm.name)
        if after is None:
            has = counted(arm.budget, "trial")
            found.append(f"the arm {arm.name!r}, a {arm.kind} search of {has}, is not there now")
        elif after.kind != arm.kind:
            found.append(f"the arm {arm.name!r} was a {arm.kind} search and is a {after.kind} now")
        elif after.budget < arm.budget:
            found.append(
                f"the arm {arm.name!r} had {counted(arm.budget, 'trial')} and has {after.budget} "
                "now; it can be given more, not fewer"
            )
    names = [arm.name for arm in then]
    if not found and [arm.name for arm in now if arm.name in names] != names:
        found.append("the arms stand in another order, in which they would take turns")
    return found


def _differences(name: str, then: Any, now: Any) -> list[tuple[str, Any, Any]]:
    """Name each differing leaf of two JSON values by its path."""
    if then == now:
        return []
    if not (isinstance(then, Mapping) and isinstance(now, Mapping)):
        return [(name, then, now)]
    found = []
    for key in dict.fromkeys((*then, *now)):
        path = f"{name}.{key}" if name else str(key)
        found += _differences(path, then.get(key), now.get(key))
    return found


def _short(value: Any) -> str:
    return shortened(json.dumps(value, ensure_ascii=False), _LONGEST_VALUE)
