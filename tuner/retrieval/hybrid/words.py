"""The words of all passages as numbers: split once, for every part of the index."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.core.corpus import Document
from tuner.core.rankings import BoolArray, IntArray
from tuner.core.steps import Advance, followed, unheard
from tuner.core.words import POSSESSIVE, marked_words, name_words, split_words

# Passages that are worked on at once, where work is done on arrays.
AT_ONCE = 4_096

# Bits of a number that say where a word counts, beside its number in the vocabulary.
_NOT_IN_NAMES = 1 << 29
_NOT_IN_TEXT = 1 << 30
_NUMBER = _NOT_IN_NAMES - 1

Numbers = npt.NDArray[np.int32]


class Vocabulary(dict[str, int]):
    """Words with their numbers: one that is new gets the next number when it is looked up."""

    def __missing__(self, word: str) -> int:
        """Add a word."""
        number = self[word] = len(self)
        return number


class _ReadWords(Vocabulary):
    """The same, but a possessive ending has the number of "s", and a bit that says what it is."""

    def __missing__(self, word: str) -> int:
        """Add a word, or tell the number of an ending, which is never added."""
        if word == POSSESSIVE:
            return self["s"] | _NOT_IN_NAMES
        return super().__missing__(word)


@dataclass(frozen=True, eq=False)
class Words:
    """The passages' words, in two readings.

    As text, a passage is ``split_words`` of its title and text; as names, it is ``name_words`` of
    both, that is without possessive endings.

    Attributes:
        vocabulary: the number of each word; names' words may be added.
        starts: shape (passages + 1,), where each passage begins in the flat list of words.
        title_ends: shape (passages,), where its title ends there.
    """

    vocabulary: Vocabulary
    starts: IntArray
    title_ends: IntArray
    _flat: Numbers

    @classmethod
    def of(cls, documents: Sequence[Document], advance: Advance = unheard) -> Words:
        """Split the passages' titles and texts."""
        vocabulary = _ReadWords()
        number_of = vocabulary.__getitem__
        flat, starts, title_ends = array("i"), array("q", [0]), array("q")

        def add(text: str) -> None:
            words = marked_words(text)
            if words is None:
                flat.extend(number_of(word) | _NOT_IN_NAMES for word in split_words(text))
                flat.extend(number_of(word) | _NOT_IN_TEXT for word in name_words(text))
            else:
                flat.extend(map(number_of, words))

        for document in followed(documents, advance):
            add(document.title)
            title_ends.append(len(flat))
            add(document.text)
            starts.append(len(flat))
        return cls(
            vocabulary,
            np.frombuffer(starts, dtype=np.int64),
            np.frombuffer(title_ends, dtype=np.int64),
            np.frombuffer(flat, dtype=np.int32) if flat else np.zeros(0, dtype=np.int32),
        )

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Yield the first and the last passage, exclusive, of blocks to be worked on at once."""
        count = len(self.title_ends)
        yield from ((first, min(first + AT_ONCE, count)) for first in range(0, count, AT_ONCE))

    def as_text(
        self, first: int, last: int, *, with_titles: bool = True
    ) -> tuple[Numbers, IntArray]:
        """Return the numbers of the words of some passages, and how many each passage has."""
        return self._read(first, last, with_titles=with_titles, without=_NOT_IN_TEXT)

    def as_names(
        self, first: int, last: int, *, with_titles: bool = True
    ) -> tuple[Numbers, IntArray]:
        """Return the same in the reading of names."""
        return self._read(first, last, with_titles=with_titles, without=_NOT_IN_NAMES)

    def _read(
        self, first: int, last: int, *, with_titles: bool, without: int
    ) -> tuple[Numbers, IntArray]:
        ends = self.starts[first + 1 : last + 1]
        offset, end = int(self.starts[first]), int(self.starts[last])
        flat = self._flat[offset:end]
        is_read: BoolArray = (flat & without) == 0
        if not with_titles:
            lengths = np.diff(self.starts[first : last + 1])
            is_read &= np.arange(offset, end) >= np.repeat(self.title_ends[first:last], lengths)
        running = np.concatenate([[0], np.cumsum(is_read)])
        counts = running[ends - offset] - running[self.starts[first:last] - offset]
        return flat[is_read] & _NUMBER, counts

    def text_lengths(self) -> IntArray:
        """Return how many words each passage has as text."""
        running = np.concatenate([[0], np.cumsum((self._flat & _NOT_IN_TEXT) == 0)])
        return np.diff(running[self.starts])

    def occurrences(self, is_counted: BoolArray) -> IntArray:
        """Return how often each word stands in the texts, without titles, of some passages."""
        found = np.zeros(len(self.vocabulary), dtype=np.int64)
        for first, last in self.blocks():
            numbers, counts = self.as_text(first, last, with_titles=False)
            counted = numbers[np.repeat(is_counted[first:last], counts)]
            found += np.bincount(counted, minlength=len(found))
        return found

    def frequencies(self) -> IntArray:
        """Return in how many passages each word stands, in the reading of names."""
        size = len(self.vocabulary)
        found = np.zeros(size, dtype=np.int64)
        for first, last in self.blocks():
            numbers, counts = self.as_names(first, last)
            passages = np.repeat(np.arange(last - first), counts)
            present = distinct(passages * size + numbers) % size
            found += np.bincount(present, minlength=size)
        return found


def distinct(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return each key once, ascending."""
    ordered = np.sort(keys)
    is_new = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]


def flattened(rows: Iterable[Sequence[int]]) -> tuple[IntArray, IntArray]:
    """Return the numbers of all rows one after the other, and the row of each."""
    flat, lengths = array("q"), array("q")
    for row in rows:
        flat.extend(row)
        lengths.append(len(row))
    counts = np.array(lengths, dtype=np.int64)
    return np.frombuffer(flat or b"", dtype=np.int64), np.repeat(np.arange(len(counts)), counts)


def index_kind(size: int) -> type[np.int32 | np.int64]:
    """Return the numbers that a sparse matrix with so many entries needs: small ones, if it can."""
    return np.int32 if size <= np.iinfo(np.int32).max else np.int64
