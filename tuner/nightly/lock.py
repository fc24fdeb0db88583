"""One job at a time: the second leaves at once, with an exit code of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from tuner.core.errors import InputError, TunerError

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
