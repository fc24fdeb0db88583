"""Which indexes stay on the disk: whoever needs one says so, and the others make room."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from tuner.core.files import write_whole
from tuner.core.json_text import digest_of
from tuner.retrieval.indexes.limits import IndexLimits
from tuner.retrieval.indexes.record import RECORD, read_record

if sys.platform != "win32":
    import fcntl

_PINS = "pins"


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep an index from being deleted by any process of this machine while the block runs.

    It ends with the process, however that ends.
    """
    if sys.platform == "win32":  # what is open there cannot be deleted anyway
        yield
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _held_file(folder).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


def pin(root: Path, name: str, *, holder: Path, why: str) -> None:
    """Keep the index called ``name`` for as long as the file or folder ``holder`` exists.

    What the same holder kept before for the same reason is let go.

    Raises:
        OSError: the disk refuses.
    """
    place = root / _PINS / f"{digest_of([str(holder), why])}.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    write_whole(place, json.dumps({"index": name, "holder": str(holder), "why": why}))


def touch(folder: Path) -> None:
    """Take down that an index was asked now."""
    with suppress(OSError):
        os.utime(folder / RECORD)


def discard(folder: Path) -> None:
    """Delete what a failed builder left, unless another one is at it."""
    with suppress(OSError, Timeout), FileLock(f"{folder}.lock", timeout=0):
        if read_record(folder) is None:
            shutil.rmtree(folder, ignore_errors=True)


def make_room(root: Path, limits: IndexLimits, *, spare: Path) -> None:
    """Delete what was asked longest ago, until the limits hold or the rest is needed.

    Needed are ``spare``, what is held by an evaluation, and what is pinned.
    """
    if limits.keep_gb is None and limits.keep_count is None:
        return
    sizes = {folder: size for folder in root.iterdir() if (size := _size(folder)) is not None}
    pinned = _pinned(root)
    for folder in sorted(sizes, key=_asked_at):
        if _fits(list(sizes.values()), limits):
            return
        if folder != spare and folder.name not in pinned and _delete(folder):
            del sizes[folder]


def _fits(sizes: list[int], limits: IndexLimits) -> bool:
    is_room = limits.keep_gb is None or sum(sizes) <= limits.keep_gb * 1e9
    return is_room and (limits.keep_count is None or len(sizes) <= limits.keep_count)


def _size(folder: Path) -> int | None:
    record = read_record(folder)
    return None if record is None else record.size


def _asked_at(folder: Path) -> float:
    try:
        return (folder / RECORD).stat().st_mtime
    except OSError:
        return 0.0


def _pinned(root: Path) -> set[str]:
    """Return the names of indexes whose holder exists; pins of others are deleted."""
    names = set()
    for place in (root / _PINS).glob("*.json"):
        try:
            told = json.loads(place.read_text(encoding="utf-8"))
            is_needed = Path(told["holder"]).exists()
            names |= {str(told["index"])} if is_needed else set()
        except (OSError, ValueError, KeyError, TypeError):
            is_needed = False
        if not is_needed:
            with suppress(OSError):
                place.unlink()
    return names


def _delete(folder: Path) -> bool:
    """Delete an index that nobody holds or builds; say whether it is gone."""
    try:
        with FileLock(f"{folder}.lock", timeout=0), _held_file(folder).open("a") as file:
            if sys.platform != "win32":
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (folder / RECORD).unlink()  # from now on it is no index, whatever else goes wrong
            shutil.rmtree(folder, ignore_errors=True)
            return True
    except (OSError, Timeout):
        return False


def _held_file(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.held")
