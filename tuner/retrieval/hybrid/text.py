"""The text leg: BM25 over title and text, for all documents at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import Stemmer
from scipy import sparse

from tuner.core.corpus import Document
from tuner.core.errors import InputError
from tuner.core.steps import Advance, followed, unheard
from tuner.core.words import is_unspaced, split_words

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
    """Score documents by BM25 (Lucene's variant, as in bm25s).

    ``weights`` has shape (terms, documents): what one occurrence of a term in a query adds.
    """

    weights: sparse.csr_array
    terms: dict[str, int]

    @classmethod
    def build(
        cls,
        documents: Sequence[Document],
        *,
        k1: float = 1.5,
        b: float = 0.75,
        advance: Advance = unheard,
    ) -> Bm25:
        """Index the documents; ``k1`` > 0 bounds term frequency, ``b`` in [0, 1] the length."""
        if not k1 > 0:
            raise InputError(f"bm25_k1={k1} must be above 0")
        if not 0 <= b <= 1:
            raise InputError(f"bm25_b={b} is outside [0, 1]")
        import bm25s  # numba comes with it; not needed once the index is built

        terms: dict[str, int] = {}
        rows = [
            [terms.setdefault(term, len(terms)) for term in row]
            for row in analyse(full_text(document) for document in followed(documents, advance))
        ]
        if not terms:
            nothing = sparse.csr_array(np.zeros((0, len(documents)), dtype=np.float32))
            return cls(nothing, terms)
        index = bm25s.BM25(k1=k1, b=b)
        index.index((rows, terms), create_empty_token=False, show_progress=False)
        arrays = (index.scores["data"], index.scores["indices"], index.scores["indptr"])
        return cls(sparse.csr_array(arrays, shape=(len(terms), len(documents))), terms)

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
