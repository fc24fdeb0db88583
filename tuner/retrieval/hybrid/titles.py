"""Titles of passages that stand in the texts of others."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.core.rankings import BoolArray, IntArray
from tuner.core.steps import Advance, unheard
from tuner.retrieval.hybrid.words import Numbers, Vocabulary, Words, distinct

NONE = -1


def known_titles(
    words: Words, titles: Vocabulary, advance: Advance = unheard
) -> tuple[IntArray, IntArray]:
    """Return the titles in the passages' texts, by number, and the passage of each.

    ``titles`` are joined by spaces. A text is read from the left, long titles come first, and a
    word belongs to one title at most.
    """
    beginnings = _Beginnings.of(titles, words.vocabulary)
    spelled = list(words.vocabulary)
    found, passages = array("q"), array("q")
    for first, last in words.blocks():
        advance(first, len(words.title_ends))
        numbers, counts = words.as_names(first, last, with_titles=False)
        ends = np.repeat(np.cumsum(counts), counts)
        rows = np.repeat(np.arange(first, last), counts)
        lengths = beginnings.lengths(numbers, ends)
        alone = beginnings.alone[numbers]
        places = np.flatnonzero((lengths > 0) | (alone != NONE))
        columns = (places, ends[places], rows[places], lengths[places], alone[places])
        flat, free = numbers.tolist(), 0
        for place, end, row, possible, title in zip(*(c.tolist() for c in columns), strict=True):
            if place < free:
                continue
            span = [spelled[n] for n in flat[place : min(place + possible.bit_length(), end)]]
            length, number = _longest(span, possible, titles)
            if length == 0 and title == NONE:
                continue
            found.append(number if length else title)
            passages.append(row)
            free = place + max(length, 1)
    return np.array(found, dtype=np.int64), np.array(passages, dtype=np.int64)


def _longest(span: Sequence[str], possible: int, titles: Vocabulary) -> tuple[int, int]:
    """Return the length and the number of the longest title of two words or more, or 0."""
    for length in range(len(span), 1, -1):
        if possible >> (length - 1) & 1:
            number = titles.get(" ".join(span[:length]))
            if number is not None:
                return length, number
    return 0, NONE


@dataclass(frozen=True, eq=False)
class _Beginnings:
    """With which words titles begin.

    Attributes:
        alone: by word, the title that is this word alone, or -1.
        is_first: by word, whether a longer title begins with it.
        pairs: the first two words of longer titles as ``first * words + second``, ascending.
        bits: for each pair a bit for each length: of a title of n words, bit n - 1.
    """

    alone: IntArray
    is_first: BoolArray
    pairs: IntArray
    bits: npt.NDArray[np.int64]

    @classmethod
    def of(cls, titles: Vocabulary, vocabulary: Vocabulary) -> _Beginnings:
        size = len(vocabulary)
        alone, is_first = np.full(size, NONE, dtype=np.int64), np.zeros(size, dtype=bool)
        keys, lengths = array("q"), array("q")
        for title, number in titles.items():
            numbers = [vocabulary.get(word, NONE) for word in title.split(" ")]
            if NONE in numbers:  # no text has that word
                continue
            if len(numbers) == 1:
                alone[numbers[0]] = number
            else:
                is_first[numbers[0]] = True
                keys.append(numbers[0] * size + numbers[1])
                lengths.append(len(numbers))
        every = np.array(keys, dtype=np.int64)
        pairs = distinct(every)
        bits = np.zeros(len(pairs), dtype=np.int64)
        at = np.searchsorted(pairs, every)
        np.bitwise_or.at(bits, at, 1 << (np.array(lengths, dtype=np.int64) - 1))
        return cls(alone, is_first, pairs, bits)

    def lengths(self, numbers: Numbers, ends: IntArray) -> IntArray:
        """Return for each word of some texts the bits of titles that may begin there.

        ``ends`` says for each word where its text ends.
        """
        found = np.zeros(len(numbers), dtype=np.int64)
        places = np.flatnonzero(self.is_first[numbers])
        places = places[places + 1 < ends[places]]
        if len(places) and len(self.pairs):
            keys = numbers[places].astype(np.int64) * len(self.alone) + numbers[places + 1]
            at = np.minimum(np.searchsorted(self.pairs, keys), len(self.pairs) - 1)
            found[places] = np.where(self.pairs[at] == keys, self.bits[at], 0)
        return found
