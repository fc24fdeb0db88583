"""Identify the code that shapes an index, so that no other version of it takes up an old one."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files

# Libraries that decide which terms a text has and what they weigh.
_LIBRARIES = ("PyStemmer",)


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Hash the engine's source, the splitting into words, and the versions of what they rest on.

    A number raised by hand at each change would be forgotten once, and that index served silently.
    """
    sources = [path for path in files(__package__).iterdir() if path.name.endswith(".py")]
    digest = sha256(unicodedata.unidata_version.encode())
    for path in (*sorted(sources, key=lambda path: path.name), files("tuner.core") / "words.py"):
        digest.update(f"\n{path.name}\n".encode() + path.read_bytes())
    for library in _LIBRARIES:
        digest.update(f"\n{library} {_version(library)}".encode())
    return digest.hexdigest()


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:  # on the path, but not installed
        return ""
