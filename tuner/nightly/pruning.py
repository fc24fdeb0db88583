"""Old run directories go, by ``nightly.keep``; only those that the nights themselves made."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path

from filelock import FileLock, Timeout

from tuner.config.nightly import KeepSection
from tuner.core.errors import InputError, TunerError
from tuner.core.journal import read_journal
from tuner.core.run_files import JOURNAL_FILE
from tuner.core.steps import Say
from tuner.nightly.records import Night, Records

EXIT_LOCKED = 3


class Locked(TunerError):
    """Another job is at work on the same nights."""

    exit_code = EXIT_LOCKED


@contextmanager
def only_one(runs_dir: Path, study: str) -> Iterator[None]:
    """Keep every other job off the nights of a study.

    Raises:
        Locked: another one has them.
        InputError: the folder cannot be written to.
    """
    try:
        runs_dir.mkdir(parents=True, exist_ok=True)
        lock = FileLock(runs_dir / f".nights-{study}.lock")
        lock.acquire(blocking=False)
    except Timeout:
        raise Locked(
            f"another nightly job is at work on {study!r} in {runs_dir}; this one has done nothing"
        ) from None
    except OSError as error:
        raise InputError(
            f"cannot write to {str(runs_dir)!r}: {error.strerror}", key=("study", "runs_dir")
        ) from error
    try:
        yield
    finally:
        lock.release()


def prune(
    records: Records,
    keep: KeepSection,
    *,
    today: date,
    never: Collection[str | None],
    say: Say,
) -> list[str]:
    """Delete the run directories of nights beyond ``keep``, and return their names.

    ``never`` names the studies (by id) whose directories stay, as the champion's does.
    """
    runs_dir = records.runs_dir
    there = [night for night in records.nights if _is_theirs(runs_dir, night)]
    gone = []
    for place, night in enumerate(reversed(there)):
        is_beyond = (keep.studies is not None and place >= keep.studies) or (
            keep.days is not None and night.night <= today - timedelta(days=keep.days)
        )
        if is_beyond and night.study_id not in never and _delete(runs_dir / night.run_dir, say):
            gone.append(night.run_dir)
    if gone:
        records.write("pruned", run_dirs=gone)
    return gone


def _is_theirs(runs_dir: Path, night: Night) -> bool:
    """Say whether the directory is still the one that the night made, and nothing else."""
    run_dir = runs_dir / night.run_dir
    if Path(night.run_dir).name != night.run_dir or run_dir.is_symlink() or not run_dir.is_dir():
        return False
    try:
        return read_journal(run_dir / JOURNAL_FILE).header.study_id == night.study_id
    except InputError:
        return False


def _delete(run_dir: Path, say: Say) -> bool:
    lock = FileLock(f"{run_dir / JOURNAL_FILE}.lock")
    try:
        with lock.acquire(blocking=False):
            shutil.rmtree(run_dir)
    except Timeout:  # somebody resumes it just now
        return False
    except OSError as error:
        say(f"{run_dir} could not be deleted: {error.strerror or error}")
        return False
    return True
