"""The text leg: BM25 over title and text, for all documents at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import Stemmer
from scipy import sparse

from tuner.core.corpus import Document
from tuner.core.errors import InputError
from tuner.core.rankings import FloatArray
from tuner.core.steps import Advance, unheard
from tuner.core.words import is_unspaced, split_words
from tuner.retrieval.hybrid.columns import Places, Texts
from tuner.retrieval.hybrid.words import Numbers, Words, flattened, index_kind

STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then "
    "there these they this to was will with".split()
)


def analyse(texts: Iterable[str]) -> list[list[str]]:
    """Return the index terms of each text: English stems, or bigrams where there are no spaces.

    >>> analyse(["The running dogs", "北京大学"])
    [['run', 'dog'], ['北京', '京大', '大学']]
    """
    # A stemmer is cheap to make and not safe to share between threads.
    stem = Stemmer.Stemmer("english").stemWords
    return [stem(_terms(split_words(text))) for text in texts]


def _terms(words: list[str]) -> list[str]:
    terms: list[str] = []
    previous = ""
    is_pair_pending = False
    for word in words:
        if not is_unspaced(word):
            if is_pair_pending:
                terms.append(previous)
            if word not in STOP_WORDS:
                terms.append(word)
            previous, is_pair_pending = "", False
        elif previous:
            terms.append(previous + word)
            previous, is_pair_pending = word, False
        else:
            previous, is_pair_pending = word, True
    # A lone character has no neighbour to make a bigram with, and stands for itself.
    return [*terms, previous] if is_pair_pending else terms


def full_text(document: Document) -> str:
    """Return what is searched, and what a reader of the passage would be given."""
    return f"{document.title} {document.text}" if document.title else document.text


@dataclass(frozen=True)
class Bm25:
    """Score documents by BM25 (Lucene's variant; the same numbers as bm25s).

    ``weights`` has shape (terms, documents): what one occurrence of a term in a query adds.
    """

    weights: sparse.csr_array
    terms: Places

    @classmethod
    def build(
        cls, words: Words, *, k1: float = 1.5, b: float = 0.75, advance: Advance = unheard
    ) -> Bm25:
        """Index passages; ``k1`` > 0 bounds term frequency, ``b`` in [0, 1] the length."""
        if not k1 > 0:
            raise InputError(f"bm25_k1={k1} must be above 0")
        if not 0 <= b <= 1:
            raise InputError(f"bm25_b={b} is outside [0, 1]")
        terms, counts, lengths = _count_terms(words, advance)
        total, frequencies = counts.shape[0], np.bincount(counts.indices, minlength=len(terms))
        # One logarithm for each frequency: few of them differ.
        of_frequency = {
            number: math.log(1 + (total - number + 0.5) / (number + 0.5))
            for number in np.unique(frequencies).tolist()
        }
        rarity = np.array([of_frequency[n] for n in frequencies.tolist()], dtype=np.float32)
        damping = k1 * ((1 - b) + b * lengths / (lengths.mean() if terms else 1.0))
        for first, last in words.blocks():
            span = slice(counts.indptr[first], counts.indptr[last])
            found = counts.data[span].astype(np.float64)
            each = np.repeat(damping[first:last], np.diff(counts.indptr[first : last + 1]))
            counts.data[span] = rarity[counts.indices[span]] * (found / (each + found))
        return cls(counts.T.tocsr(), Places.of(Texts.of(terms)))

    def scores(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the scores of every document for each text, shape (texts, documents)."""
        indptr, indices, data = self.weights.indptr, self.weights.indices, self.weights.data
        scores = np.zeros((len(texts), self.weights.shape[1]), dtype=np.float32)
        for row, terms in zip(scores, analyse(texts), strict=True):
            for term in terms:
                number = self.terms.get(term)
                if number is not None:
                    # A term stands once a document, so no position repeats in the slice.
                    span = slice(indptr[number], indptr[number + 1])
                    row[indices[span]] += data[span]
        return scores


def _count_terms(
    words: Words, advance: Advance
) -> tuple[dict[str, int], sparse.csr_array, FloatArray]:
    """Return the terms, how often each stands in each passage, and each passage's length."""
    vocabulary, terms = list(words.vocabulary), dict[str, int]()
    # A stemmer is cheap to make and not safe to share between threads.
    stem = Stemmer.Stemmer("english").stemWord
    is_alone = np.fromiter(map(is_unspaced, vocabulary), np.bool_, len(vocabulary))
    term_of = np.array(
        [
            -1 if word in STOP_WORDS or alone else terms.setdefault(stem(word), len(terms))
            for word, alone in zip(vocabulary, is_alone.tolist(), strict=True)
        ],
        dtype=np.int32,
    )

    def with_pairs(numbers: Numbers) -> list[int]:
        found = _terms([vocabulary[number] for number in numbers.tolist()])
        return [terms.setdefault(stem(term), len(terms)) for term in found]

    passages = len(words.title_ends)
    # Memory is taken as it is filled.
    most = int(words.starts[-1])
    indices, data = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.float32)
    indptr = np.zeros(passages + 1, dtype=index_kind(most))
    lengths, end = np.zeros(passages), 0
    for first, last in words.blocks():
        advance(first, passages)
        numbers, counts = words.as_text(first, last)
        rows, found = np.repeat(np.arange(last - first), counts), term_of[numbers]
        if is_alone[numbers].any():
            special = np.unique(rows[is_alone[numbers]])
            pairs, places = flattened([with_pairs(numbers[rows == row]) for row in special])
            is_other = np.isin(rows, special, invert=True)
            rows = np.concatenate([rows[is_other], special[places]])
            found = np.concatenate([found[is_other], pairs])
        rows, found = rows[found >= 0], found[found >= 0]
        lengths[first:last] = np.bincount(rows, minlength=last - first)
        ones = np.ones(len(rows), dtype=np.float32)
        block = sparse.csr_array((ones, (rows, found)), shape=(last - first, len(terms)))
        begin, end = end, end + block.nnz
        indices[begin:end], data[begin:end] = block.indices, block.data
        indptr[first + 1 : last + 1] = begin + block.indptr[1:]
    arrays = (data[:end], indices[:end], indptr)
    return terms, sparse.csr_array(arrays, shape=(passages, len(terms))), lengths
