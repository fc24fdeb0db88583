"""A file of answers that were paid for: a line each, added as it comes, read by the next run."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol, TypeVar

from tuner.core.errors import InputError
from tuner.core.files import append_lines
from tuner.core.json_text import json_text, read_as


class Kept(Protocol):
    """What a line holds: a dataclass that knows what its answer cost."""

    @property
    def money(self) -> float | None:
        """Return what it cost; None where nobody knows."""
        ...


Line = TypeVar("Line", bound=Kept)


def read_kept(path: Path, kind: type[Line], *, what: str, way_out: str) -> Iterator[Line | None]:
    """Read what a file holds, nothing where there is none; None is a line that a crash has torn.

    Lines begin with the first field of ``kind``: by that a torn one is told from a line of another
    file. ``what`` a line is to be, and the ``way_out``, are for messages.

    Raises:
        InputError: it is no file, cannot be read, or has a line of another kind.
    """
    if path.exists() and not path.is_file():
        raise InputError("is no file: answers cannot be kept in it", file=str(path))
    try:
        lines = path.read_bytes().split(b"\n") if path.exists() else []
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from error
    first: str = next(iter(kind.__dataclass_fields__))  # type: ignore[attr-defined]  # one is wanted
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            kept: Line = read_as(kind, json.loads(line))
            if kept.money is not None and not 0 <= kept.money < math.inf:
                raise ValueError(f"money is {kept.money}")
        except (ValueError, RecursionError) as error:
            if _is_torn(line, f'{{"{first}":'.encode()):
                yield None
                continue
            message = f"this line holds no {what} ({error}); {way_out}"
            raise InputError(message, file=str(path), line=number) from error
        yield kept


def make_ready(path: Path) -> None:
    """See that answers can be kept in a file, before one is paid for; its folder is made.

    Raises:
        InputError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=str(path)) from error


def add_kept(path: Path, kept: Any) -> None:
    """Bring an answer to the disk.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        append_lines(path, json_text(asdict(kept)))
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=str(path)) from error


def _is_torn(line: bytes, begin: bytes) -> bool:
    """Say whether a line is the beginning of an answer, or has zeros of a file that was growing."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return b"\0" in line or line.startswith(begin) or begin.startswith(line)
    return False
