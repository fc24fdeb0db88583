"""The cache on disk: directories that appear whole or not at all, checked when they are opened."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from filelock import FileLock

from tuner.core.errors import TunerError

_MANIFEST = "manifest.json"


def ensure(directory: Path, write: Callable[[Path], None]) -> bool:
    """Make sure that ``directory`` is whole: have ``write`` fill it if it is absent or damaged.

    Returns whether it was written. Two processes may call this at once: one writes and the other
    waits. A process that dies half-way leaves nothing that would be taken for a result.

    Raises:
        TunerError: the folder cannot be made or written, or the disk is full.
    """
    if is_whole(directory):
        return False
    try:
        return _write_once(directory, write)
    except OSError as error:
        reason = " ".join((error.strerror or str(error)).split())
        raise TunerError(
            f"the cache folder {directory.parent} cannot be written: {reason}; give access and "
            "room there, or name another folder in TUNER_CACHE_DIR"
        ) from error


def _write_once(directory: Path, write: Callable[[Path], None]) -> bool:
    directory.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{directory}.lock"):
        if is_whole(directory):
            return False
        unfinished = Path(tempfile.mkdtemp(prefix=f"{directory.name}.", dir=directory.parent))
        try:
            write(unfinished)
            files = {path.name: _checksum(path) for path in sorted(unfinished.iterdir())}
            (unfinished / _MANIFEST).write_text(json.dumps(files), encoding="utf-8")
            _remove(directory)
            os.replace(unfinished, directory)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return True


def _remove(path: Path) -> None:
    """Remove whatever stands where a directory belongs: a damaged one, or a plain file."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def is_whole(directory: Path) -> bool:
    """Say whether every file is there with the content that was written."""
    try:
        files = json.loads((directory / _MANIFEST).read_text(encoding="utf-8"))
        return all(_checksum(directory / name) == checksum for name, checksum in files.items())
    except (OSError, ValueError, AttributeError, TypeError):
        return False


def _checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            checksum = zlib.crc32(block, checksum)
    return checksum


def write_array(directory: Path, name: str, array: npt.NDArray[Any]) -> None:
    """Write one array as ``name.npy``."""
    np.save(directory / f"{name}.npy", array, allow_pickle=False)


def new_array(
    directory: Path, name: str, *, shape: tuple[int, ...], dtype: npt.DTypeLike
) -> np.memmap[Any, Any]:
    """Make ``name.npy``, full of zeros and mapped into memory, to be filled part by part."""
    path = directory / f"{name}.npy"
    array: np.memmap[Any, Any] = np.lib.format.open_memmap(
        path, mode="w+", dtype=dtype, shape=shape
    )
    # A new mapped file takes no room until it is filled; on a full disk filling it would then
    # kill the process. Where the system can, take the room now, while it is still an error.
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as file:
            try:
                os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                    raise
    return array


def read_array(directory: Path, name: str) -> npt.NDArray[Any]:
    """Map ``name.npy`` into memory, read-only, so that processes share its pages."""
    path = directory / f"{name}.npy"
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError:  # an empty array cannot be mapped
        mapped = np.load(path, allow_pickle=False)
    # A plain view: np.memmap looks after itself at every slice, which costs more than the slice.
    return np.asarray(mapped)
