"""Retrievers on the disk that find their files wherever their folder lies."""

from __future__ import annotations

import pickle
from pathlib import Path, PurePath
from typing import IO, Any

from joblib.externals.loky.backend.reduction import get_loky_pickler


# joblib's own pickler takes lambdas and functions of a notebook too.
class Pickler(get_loky_pickler()):  # type: ignore[misc]  # it has no types
    """Writes a path below ``folder`` as it is from there."""

    def __init__(self, file: IO[bytes], folder: Path) -> None:
        super().__init__(file)
        self._folder = folder

    def persistent_id(self, obj: Any) -> str | None:
        """Return how a path is written; None for all else, which is pickled as ever."""
        if isinstance(obj, PurePath) and obj.is_relative_to(self._folder):
            return obj.relative_to(self._folder).as_posix()
        return None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: IO[bytes], folder: Path) -> None:
        super().__init__(file)
        self._folder = folder

    def persistent_load(self, pid: str) -> Path:
        return self._folder / pid


def open_pickle(path: Path) -> Any:
    """Return what a ``Pickler`` wrote to a file of its folder.

    Raises:
        Exception: whatever reading it raises, the user's modules included.
    """
    with path.open("rb") as stream:
        return _Unpickler(stream, path.parent).load()
