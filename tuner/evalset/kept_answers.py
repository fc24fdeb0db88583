"""The file of a judge's answers: a line each, added as it comes, read by the next build."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tuner.core.errors import InputError
from tuner.core.files import append_lines
from tuner.core.json_text import json_text, read_as
from tuner.evalset.judges import Answer

# How each line begins: by that a torn one is told from a line of another file.
_BEGIN = b'{"judge":'


@dataclass(frozen=True)
class KeptAnswer:
    """What a line holds.

    Attributes:
        judge: a digest of the judge that answered, and ``key`` of all that it was asked.
        size: of what was asked, in bytes; 0 where that is not known.
    """

    judge: str
    key: str
    round: int
    query_id: str
    documents: tuple[str, ...]
    values: tuple[float, ...] | None
    money: float | None
    tokens: tuple[int, int]
    problem: str
    size: int = 0

    @property
    def answer(self) -> Answer:
        """Return what the judge said."""
        values = None if self.values is None else tuple(map(float, self.values))
        return Answer(values, self.money, self.tokens, self.problem)


def read_answers(path: Path) -> Iterator[KeptAnswer | None]:
    """Read what a file holds, nothing where there is none; None is a line that a crash has torn.

    Raises:
        InputError: it is no file, cannot be read, or has a line of another kind.
    """
    if path.exists() and not path.is_file():
        raise InputError("is no file: answers cannot be kept in it", file=str(path))
    try:
        lines = path.read_bytes().split(b"\n") if path.exists() else []
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            kept: KeptAnswer = read_as(KeptAnswer, json.loads(line))
            if kept.money is not None and not 0 <= kept.money < math.inf:
                raise ValueError(f"money is {kept.money}")
        except (ValueError, RecursionError) as error:
            if _is_torn(line):
                yield None
                continue
            message = f"this line holds no answer of a judge ({error}); name another --answers FILE"
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


def add_answer(path: Path, kept: KeptAnswer) -> None:
    """Bring an answer to the disk.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        append_lines(path, json_text(asdict(kept)))
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=str(path)) from error


def _is_torn(line: bytes) -> bool:
    """Say whether a line is the beginning of an answer, or has zeros of a file that was growing."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return b"\0" in line or line.startswith(_BEGIN) or _BEGIN.startswith(line)
    return False
