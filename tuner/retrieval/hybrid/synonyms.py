"""Synonyms: names that are written alike, such as ``bombay dyeing`` and ``bombay dying``.

Where the index has an embedder, names that mean alike are synonyms too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuner.core.rankings import Float32Array, FloatArray, IntArray

MOST = 10
"""Synonyms that a name has at most: the most alike."""
_BLOCK_PAIRS = 1 << 24  # pairs of names that are looked at together
# Names that are compared with each other in one product, where lists of names are short.
_TOGETHER = 512
# Measured: what a pair in such a product takes, where one in the product of all takes 1 for each
# group of characters that they share.
_PAIR_COST = 4.0
# Cosines are rounded to six digits.
_ROUNDING = 1e-6
_TILE = 2048  # names on either side of a product of vectors, which then has 17 MB
_MOST_FOUND = 1 << 23  # pairs in memory ahead of dropping those beyond ``MOST``


def synonyms(
    names: Sequence[str], threshold: float, vectors: Float32Array | None = None
) -> sparse.csr_array:
    """Return how alike names are, shape (names, names): 0 for a name and itself.

    It is the cosine of the names' groups of three characters within words, a group counting by
    its rarity among the names (tf-idf), or that of their ``vectors`` where it is greater. Below
    the ``threshold``, which is above 0, it is 0; so it is beyond the ``MOST`` names that are most
    alike, of which the first in order are kept.

    Of many names only those are compared that can be written alike. ``vectors`` are compared each
    with each, a tile of pairs at a time, which takes hours for a million names.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3), lowercase=False)
    weights = sparse.csr_array(vectorizer.fit_transform(names))
    lists = _lists(weights, threshold - _ROUNDING)
    written = _of_all(weights, threshold) if lists is None else _of_lists(weights, threshold, lists)
    meant = () if vectors is None else _of_vectors(vectors, threshold)
    parts, total = [_Found.none()], 0
    for pairs in chain(written, meant):
        parts.append(pairs)
        total += len(pairs.cosines)
        if total > _MOST_FOUND:
            parts = [_Found.joined(parts).best()]
            total = len(parts[0].cosines)
    found = _Found.joined(parts).best()
    count = len(names)
    return sparse.csr_array((found.cosines, (found.rows, found.columns)), shape=(count, count))


@dataclass(frozen=True)
class _Found:
    """Pairs of names and their cosines."""

    rows: IntArray
    columns: IntArray
    cosines: FloatArray

    @classmethod
    def none(cls) -> _Found:
        nothing = np.zeros(0, dtype=np.int64)
        return cls(nothing, nothing, np.zeros(0))

    @classmethod
    def joined(cls, parts: Sequence[_Found]) -> _Found:
        return cls(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.columns for part in parts]),
            np.concatenate([part.cosines for part in parts]),
        )

    def best(self) -> _Found:
        """Return each pair once, by its greatest cosine, and the ``MOST`` best of each row."""
        once = self._at(np.lexsort((-self.cosines, self.columns, self.rows)))
        is_new = np.ones(len(once.rows), dtype=bool)
        is_new[1:] = (once.rows[1:] != once.rows[:-1]) | (once.columns[1:] != once.columns[:-1])
        once = once._at(np.flatnonzero(is_new))
        ranked = once._at(np.lexsort((once.columns, -once.cosines, once.rows)))
        place = np.arange(len(ranked.rows)) - np.searchsorted(ranked.rows, ranked.rows)
        return ranked._at(np.flatnonzero(place < MOST))

    def _at(self, places: IntArray) -> _Found:
        return _Found(self.rows[places], self.columns[places], self.cosines[places])


def _of_all(weights: sparse.csr_array, threshold: float) -> Iterator[_Found]:
    """Compare each name with each."""
    others = sparse.csr_array(weights.T)
    count = weights.shape[0]
    size = max(1, _BLOCK_PAIRS // count)
    every = np.arange(count)
    for start in range(0, count, size):
        rows = slice(start, start + size)
        product = sparse.csr_array(weights[rows] @ others)
        yield _alike(product, every[rows], every, threshold)


def _of_vectors(vectors: Float32Array, threshold: float) -> Iterator[_Found]:
    """Compare each vector with each one after it, a tile of pairs at a time."""
    count = len(vectors)
    for start in range(0, count, _TILE):
        for other in range(start, count, _TILE):
            product = vectors[start : start + _TILE] @ vectors[other : other + _TILE].T
            rows, columns = np.nonzero(product >= threshold - _ROUNDING)
            cosines = np.asarray(product[rows, columns], dtype=np.float64).round(6)
            first, second = rows + start, columns + other
            is_alike = (cosines >= threshold) & (first < second)
            first, second, cosines = first[is_alike], second[is_alike], cosines[is_alike]
            yield _Found.joined([_Found(first, second, cosines), _Found(second, first, cosines)])


def _alike(
    product: sparse.csr_array, rows: IntArray, columns: IntArray, threshold: float
) -> _Found:
    found = sparse.coo_array(product)
    is_near = found.data >= threshold - _ROUNDING
    # Rounded, because equal cosines that were summed in another order differ in the last digit.
    cosines = np.round(found.data[is_near], 6)
    first, second = rows[found.row[is_near]], columns[found.col[is_near]]
    is_alike = (cosines >= threshold) & (first != second)
    return _Found(first[is_alike], second[is_alike], cosines[is_alike])


def _lists(weights: sparse.csr_array, threshold: float) -> list[IntArray] | None:
    """Return lists of names such that any two that are alike stand together in one of them.

    None where comparing all is less work. A name stands in the lists of its rarest groups of
    characters: as many that the others, the common ones, have together a length below the
    threshold. Two names that share none of these share common ones alone of one of both, and so
    have a cosine below the threshold (prefix filtering: Bayardo, Ma and Srikant, Scaling Up All
    Pairs Similarity Search, WWW 2007).
    """
    held = np.bincount(weights.indices, minlength=weights.shape[1])
    rank = np.empty(len(held), dtype=weights.indices.dtype)
    rank[np.argsort(held, kind="stable")] = np.arange(len(held))
    arrays = (weights.data, rank[weights.indices], weights.indptr)
    by_rarity = sparse.csr_array(arrays, shape=weights.shape, copy=True)
    by_rarity.sort_indices()
    so_far = np.concatenate([[0.0], np.cumsum(by_rarity.data**2)])
    rest = np.repeat(so_far[weights.indptr[1:]], np.diff(weights.indptr)) - so_far[:-1]
    by_rarity.data = (rest >= threshold**2).astype(np.float64)
    by_rarity.eliminate_zeros()
    columns = sparse.csc_array(by_rarity)
    lengths = np.diff(columns.indptr)
    # Short lists are taken together: a product of few names takes as long as one of some more.
    cuts, together = [0], 0
    for place, length in enumerate(lengths.tolist()):
        if together and together + length > _TOGETHER:
            cuts.append(place)
            together = 0
        together += length
    cuts.append(len(lengths))
    bounds = columns.indptr[cuts]
    work = _PAIR_COST * float((np.diff(bounds).astype(np.float64) ** 2).sum())
    if work > float((held.astype(np.float64) ** 2).sum()):
        return None
    places: list[npt.NDArray[np.int32]] = np.split(columns.indices, bounds[1:-1])
    return [np.unique(found) for found in places]


def _of_lists(
    weights: sparse.csr_array, threshold: float, lists: list[IntArray]
) -> Iterator[_Found]:
    """Compare the names of each list."""
    for names in lists:
        those = weights[names]
        others = sparse.csr_array(those.T)
        size = max(1, _BLOCK_PAIRS // max(len(names), 1))
        for start in range(0, len(names), size):
            rows = slice(start, start + size)
            product = sparse.csr_array(those[rows] @ others)
            yield _alike(product, names[rows], names, threshold)
