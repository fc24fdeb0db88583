"""The file of what people gave: a line each, on the disk before the page says that it is saved."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from tuner.core.errors import InputError
from tuner.core.files import append_lines
from tuner.core.json_text import json_text, read_as

Event = Literal["graded", "undone", "settled", "unsettled", "written"]

# How each line begins: by that a torn one is told from a line of another file.
_BEGIN = b'{"event":'


@dataclass(frozen=True)
class Line:
    """What happened.

    Attributes:
        event: ``graded`` and ``settled``; ``undone`` and ``unsettled``, which take the last one of
            the same person back; ``written``, where a sheet of all that stands above was written.
        by: the person; of ``written`` whose sheet, empty for the one of settled grades.
        time: when, as ISO 8601.
        query_id, document_id: what was graded.
        grade, comment: what holds of it from here on; None where it has no grade any more.
        text: a digest of what was read; of ``written`` that of the file.
    """

    event: Event
    by: str
    time: str
    query_id: str = ""
    document_id: str = ""
    grade: int | None = None
    comment: str = ""
    text: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Return what was graded: the ids of the query and of the document."""
        return self.query_id, self.document_id


def read_lines(path: Path) -> Iterator[Line | None]:
    """Read what a file holds, nothing where there is none; None is a line that a crash has torn.

    Raises:
        InputError: it is no file, cannot be read, or has a line of another kind.
    """
    if path.exists() and not path.is_file():
        raise InputError("is no file: grades cannot be kept in it", file=str(path))
    try:
        lines = path.read_bytes().split(b"\n") if path.exists() else []
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield read_as(Line, json.loads(line))
        except (ValueError, RecursionError) as error:
            if _is_torn(line):
                yield None
                continue
            message = f"this line holds no grade ({error}); move the file away to begin anew"
            raise InputError(message, file=str(path), line=number) from error


def add_lines(path: Path, lines: list[Line]) -> None:
    """Bring lines to the disk, all or none.

    Raises:
        OSError: the disk refuses; the file is as it was.
    """
    append_lines(path, "\n".join(json_text(asdict(line)) for line in lines))


def _is_torn(line: bytes) -> bool:
    """Say whether a line is the beginning of one, or has zeros of a file that was growing."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return b"\0" in line or line.startswith(_BEGIN) or _BEGIN.startswith(line)
    return False
