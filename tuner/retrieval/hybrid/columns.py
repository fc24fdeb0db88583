"""Columns of texts as arrays: mapped from a file, they cost a process no memory of its own."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import overload
from zlib import crc32

import numpy as np
import numpy.typing as npt

from tuner.core.rankings import IntArray
from tuner.retrieval.hybrid.cache import read_array, write_array

_AT_ONCE = 65_536


@dataclass(frozen=True, eq=False)
class Texts(Sequence[str]):
    """Texts by their position.

    Attributes:
        content: all texts in UTF-8, one after the other.
        bounds: shape (texts + 1,), where each begins and ends.
    """

    content: npt.NDArray[np.uint8]
    bounds: IntArray

    @classmethod
    def of(cls, texts: Iterable[str]) -> Texts:
        """Take texts together."""
        encoded = [text.encode("utf-8", errors="surrogatepass") for text in texts]
        bounds = np.fromiter(accumulate(map(len, encoded), initial=0), np.int64, len(encoded) + 1)
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), bounds)

    def __len__(self) -> int:
        """Return how many texts there are."""
        return len(self.bounds) - 1

    @overload
    def __getitem__(self, position: int) -> str: ...
    @overload
    def __getitem__(self, position: slice) -> list[str]: ...
    def __getitem__(self, position: int | slice) -> str | list[str]:
        """Return one text, or a list of some."""
        if isinstance(position, slice):
            return [self[number] for number in range(*position.indices(len(self)))]
        number = position + len(self) if position < 0 else position
        if not 0 <= number < len(self):
            raise IndexError(f"position {position} of {len(self)} texts")
        return _decoded(self.content[self.bounds[number] : self.bounds[number + 1]].tobytes())

    def __iter__(self) -> Iterator[str]:
        """Yield every text."""
        for first in range(0, len(self), _AT_ONCE):
            bounds = self.bounds[first : first + _AT_ONCE + 1].tolist()
            block = self.content[bounds[0] : bounds[-1]].tobytes()
            start = bounds[0]
            for begin, end in pairwise(bounds):
                yield _decoded(block[begin - start : end - start])

    def save(self, directory: Path, name: str) -> None:
        """Write the texts into files of that name."""
        write_array(directory, f"{name}_content", self.content)
        write_array(directory, f"{name}_bounds", self.bounds)

    @classmethod
    def load(cls, directory: Path, name: str) -> Texts:
        """Map what ``save`` wrote into memory."""
        return cls(
            read_array(directory, f"{name}_content"), read_array(directory, f"{name}_bounds")
        )


@dataclass(frozen=True, eq=False)
class Places:
    """Where texts stand among others, each of which is there once.

    Attributes:
        texts: the texts.
        sums: their CRC-32 sums, ascending; ``positions``: where the text of each sum stands.
    """

    texts: Texts
    sums: npt.NDArray[np.uint32]
    positions: npt.NDArray[np.int32]

    @classmethod
    def of(cls, texts: Texts) -> Places:
        """Make texts easy to find."""
        sums = np.fromiter(map(_sum, texts), np.uint32, len(texts))
        order = np.argsort(sums, kind="stable").astype(np.int32)
        return cls(texts, sums[order], order)

    def get(self, text: str) -> int | None:
        """Return the position of a text, or None where it is not there."""
        wanted = _sum(text)
        place = bisect_left(self.sums.data, wanted)
        while place < len(self.sums) and self.sums[place] == wanted:
            position = int(self.positions[place])
            if self.texts[position] == text:
                return position
            place += 1
        return None

    def save(self, directory: Path, name: str) -> None:
        """Write the texts, and how to find them, into files of that name."""
        self.texts.save(directory, name)
        write_array(directory, f"{name}_sums", self.sums)
        write_array(directory, f"{name}_positions", self.positions)

    @classmethod
    def load(cls, directory: Path, name: str) -> Places:
        """Map what ``save`` wrote into memory."""
        return cls(
            Texts.load(directory, name),
            read_array(directory, f"{name}_sums"),
            read_array(directory, f"{name}_positions"),
        )


def _sum(text: str) -> int:
    return crc32(text.encode("utf-8", errors="surrogatepass"))


def _decoded(content: bytes) -> str:
    return content.decode("utf-8", errors="surrogatepass")
