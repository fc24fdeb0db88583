"""Folders that an evaluate function reads, brought once to each machine that does not have them.

An engine's index lies in a folder of the cache, and an evaluate function that travels only says
where. Folders of the cache are complete, never change, and list their files with checksums in a
manifest; so a machine has the right one where the manifest is the same. Where it has not (it shares
no file system with this one), the folder is unpacked in the machine's temporary folder, is found
there by all workers, and stays for the next study.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from tuner.core.errors import InputError, one_line
from tuner.execution.base import Evaluate

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Package:
    """A pickled evaluate function, and the folders that it reads: where they are, by name."""

    payload: bytes
    folders: Mapping[str, str] = field(default_factory=dict)


def pack(evaluate: Evaluate) -> Package:
    """Pickle an evaluate function; unpickled, it reads its folders where they are there.

    Raises:
        InputError: it cannot be pickled.
    """
    # joblib's own pickler takes lambdas and functions of a notebook too.
    from joblib.externals.loky.backend.reduction import dumps

    folders: dict[str, str] = {}

    def reduce_path(path: Path) -> Any:
        name = _name(path)
        if name is None:
            return path.__reduce__()
        folders[name] = str(path)
        return here, (name, str(path))

    try:
        payload = bytes(dumps(evaluate, reducers={type(Path()): reduce_path}))
    except Exception as error:  # anything that the user's objects raise
        message = f"the evaluate function cannot be pickled for a cluster: {one_line(error)}"
        raise InputError(f"{message}; use threads", key=("execution", "kind")) from error
    return Package(payload, folders)


def here(name: str, original: str) -> Path:
    """Return where a folder lies on this machine.

    Raises:
        FileNotFoundError: it has not been brought here.
    """
    for path in (Path(original), _brought() / name):
        if _digest(path) == name.rpartition("-")[2]:
            return path
    raise FileNotFoundError(f"the folder {original} is not on this machine")


def missing(folders: Mapping[str, str]) -> list[str]:
    """Return the names of the folders that this machine does not have."""
    names = []
    for name, original in folders.items():
        try:
            here(name, original)
        except FileNotFoundError:
            names.append(name)
    return names


def archive(path: str) -> bytes:
    """Return a folder's content as one tar file."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        tar.add(path, arcname=".")
    return content.getvalue()


def unpack(name: str, content: bytes) -> None:
    """Write a folder's content to this machine, unless another process just did."""
    _brought().mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=_brought()))
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            tar.extractall(unfinished, filter="data")
        with contextlib.suppress(OSError):  # it is there already
            os.replace(unfinished, _brought() / name)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _brought() -> Path:
    # The temporary folder is the machine's own; home folders of clusters are often slow and shared.
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return Path(tempfile.gettempdir()) / f"graphrag-tuner-{user}"


def _name(path: Path) -> str | None:
    """Return a name that tells a folder's content; None where it is no folder of a cache."""
    digest = _digest(path)
    return None if digest is None else f"{path.parent.name}-{path.name}-{digest}"


def _digest(path: Path) -> str | None:
    try:
        return sha256((path / MANIFEST).read_bytes()).hexdigest()[:24]
    except OSError:
        return None
