"""Folders that were brought to this machine from another one, which shares no disk with it.

Folders of the cache are complete, never change, and list their files in a manifest; so a machine
has the right one where the manifest is the same. What is brought lies in the machine's temporary
folder: it is found there by all workers, and stays for the next study.
"""

from __future__ import annotations

import os
import tempfile
from hashlib import sha256
from pathlib import Path

MANIFEST = "manifest.json"


def brought() -> Path:
    """Return where brought folders lie on this machine."""
    # The temporary folder is the machine's own; home folders of clusters are often slow and shared.
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return Path(tempfile.gettempdir()) / f"graphrag-tuner-{user}"


def name_of(path: Path) -> str | None:
    """Return a name that tells a folder's content; None where it is no folder of a cache."""
    digest = _digest(path)
    return None if digest is None else f"{path.parent.name}-{path.name}-{digest}"


def here(name: str, original: str) -> Path:
    """Return where a folder lies on this machine.

    Raises:
        FileNotFoundError: it has not been brought here.
    """
    for path in (Path(original), brought() / name):
        if _digest(path) == name.rpartition("-")[2]:
            return path
    raise FileNotFoundError(f"the folder {original} is not on this machine")


def candidates(original: Path) -> list[Path]:
    """Return where a folder may lie on this machine, whatever its content: there, or brought."""
    pattern = f"{original.parent.name}-{original.name}-*"
    return [original, *sorted(path for path in brought().glob(pattern) if path.is_dir())]


def _digest(path: Path) -> str | None:
    try:
        return sha256((path / MANIFEST).read_bytes()).hexdigest()[:24]
    except OSError:
        return None
