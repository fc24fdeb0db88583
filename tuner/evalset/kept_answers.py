"""What a line of the file of a judge's answers holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tuner.core.kept_lines import read_kept
from tuner.evalset.judges import Answer


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
    return read_kept(
        path, KeptAnswer, what="answer of a judge", way_out="name another --answers FILE"
    )
