"""Files and folders that a configuration names as alternatives: choices of an index parameter."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from tuner.core.errors import InputError, Problem, did_you_mean, refuse
from tuner.retrieval.knobs import Knob

Key = tuple[str, ...]


def read_alternatives(given: Any, *, key: Key, example: str) -> dict[str, Path]:
    """Return the path of each alternative by its name, checked.

    Raises:
        InputError: no mapping of names to paths; everything that is wrong with it, at once.
    """
    if not isinstance(given, Mapping) or not given:
        raise InputError(f"must map names to paths, got {given!r}; write {example}", key=key)
    problems = []
    for name, path in given.items():
        if not isinstance(name, str) or not name:
            message = f"a name must be a text, got {name!r}; write it in quotes"
            problems.append(Problem(message, key=(*key, str(name))))
        elif not isinstance(path, str | Path) or not str(path):
            problems.append(Problem(f"must be a path, got {path!r}", key=(*key, name)))
    refuse(problems)
    return {name: Path(path).expanduser().absolute() for name, path in given.items()}


def chosen(named: object, alternatives: Collection[str], *, key: Key) -> str:
    """Return the alternative that an option names: by default the first.

    Raises:
        InputError: it is none of them.
    """
    if named is None:
        return next(iter(alternatives))
    if isinstance(named, str) and named in alternatives:
        return named
    hint = did_you_mean(str(named), alternatives)
    raise InputError(f"{named!r} is none of the alternatives{hint}", key=key)


def choice_knob(name: str, alternatives: Collection[str], today: str, description: str) -> Knob:
    """Return the index parameter that chooses among alternatives."""
    return Knob(
        name,
        "categorical",
        today,
        choices=tuple(alternatives),
        stage="index",
        description=description,
    )


def file_digest(path: Path) -> str:
    """Hash a file's content, read again only where its size or time changed; "" without a file."""
    try:
        status = path.stat()
        return _content_digest(path, status.st_size, status.st_mtime_ns)
    except OSError:
        return ""


@lru_cache(maxsize=256)
def _content_digest(path: Path, size: int, changed: int) -> str:  # noqa: ARG001  # they tell versions
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
