"""Synonyms: names that are written alike, such as ``bombay dyeing`` and ``bombay dying``.

Where the index has an embedder, names that mean alike are synonyms too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from tuner.core.rankings import Float32Array

MOST = 10
"""Synonyms that a name has at most: the most alike."""
_BLOCK_PAIRS = 1 << 24  # pairs of names that are looked at together


def synonyms(
    names: Sequence[str], threshold: float, vectors: Float32Array | None = None
) -> sparse.csr_array:
    """Return how alike names are, shape (names, names): 0 for a name and itself.

    It is the cosine of the names' groups of three characters within words, a group counting by
    its rarity among the names (tf-idf), or that of their ``vectors`` where it is greater. Below
    the ``threshold``, which is above 0, it is 0; so it is beyond the ``MOST`` names that are most
    alike, of which the first in order are kept.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3), lowercase=False)
    weights = sparse.csr_array(vectorizer.fit_transform(names))
    others = sparse.csr_array(weights.T)
    size = max(1, _BLOCK_PAIRS // len(names))
    blocks = []
    for start in range(0, len(names), size):
        rows = slice(start, start + size)
        product = sparse.csr_array(weights[rows] @ others)
        if vectors is not None:
            cosines = vectors[rows] @ vectors.T
            # A little below, so that rounding decides once, for both.
            cosines[cosines < threshold - 1e-5] = 0.0
            product = sparse.csr_array(product.maximum(sparse.csr_array(cosines)))
        blocks.append(_best(product, start, threshold))
    return sparse.csr_array(sparse.vstack(blocks, format="csr"))


def _best(product: sparse.csr_array, start: int, threshold: float) -> sparse.csr_array:
    found = sparse.coo_array(product)
    # Rounded, because equal cosines that were summed in another order differ in the last digit.
    cosines = np.round(found.data, 6)
    is_alike = (cosines >= threshold) & (found.row + start != found.col)
    rows, columns, cosines = found.row[is_alike], found.col[is_alike], cosines[is_alike]
    order = np.lexsort((columns, -cosines, rows))
    rows, columns, cosines = rows[order], columns[order], cosines[order]
    place = np.arange(len(rows)) - np.searchsorted(rows, rows)
    kept = place < MOST
    return sparse.csr_array((cosines[kept], (rows[kept], columns[kept])), shape=product.shape)
