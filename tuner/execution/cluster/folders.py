"""Folders that an evaluate function reads, brought once to each machine that does not have them.

An engine's index lies in a folder of the cache, and an evaluate function that travels only says
where. Where a machine has not that folder (see ``core.brought``), it is unpacked there.
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
from pathlib import Path
from typing import Any

from tuner.core.brought import brought, here, name_of
from tuner.core.errors import InputError, one_line
from tuner.execution.base import Evaluate


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
        name = name_of(path)
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
    brought().mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=brought()))
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            tar.extractall(unfinished, filter="data")
        with contextlib.suppress(OSError):  # it is there already
            os.replace(unfinished, brought() / name)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
