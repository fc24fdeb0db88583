"""Synonyms: names that are written alike, such as ``bombay dyeing`` and ``bombay dying``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

MOST = 10
"""Synonyms that a name has at most: the most alike."""
_BLOCK = 2048  # rows of a product that are looked at together


def synonyms(names: Sequence[str], threshold: float) -> sparse.csr_array:
    """Return how alike names are, shape (names, names): 0 for a name and itself.

    It is the cosine of the names' groups of three characters within words, a group counting by
    its rarity among the names (tf-idf). Below the ``threshold`` it is 0; so it is beyond the
    ``MOST`` names that are most alike, of which the first in order are kept.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3), lowercase=False)
    weights = sparse.csr_array(vectorizer.fit_transform(names))
    others = sparse.csr_array(weights.T)
    blocks = [_best(weights[start : start + _BLOCK] @ others, start, threshold)
              for start in range(0, len(names), _BLOCK)]  # fmt: skip
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
