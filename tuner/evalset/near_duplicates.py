"""Find questions that are worded nearly alike, with scikit-learn's TF-IDF over character runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

THRESHOLD = 0.9
"""The similarity from which two questions count as near duplicates."""

_ROWS_AT_ONCE = 512  # bounds the memory: this many rows of the similarity matrix at a time


class Pair(NamedTuple):
    """Two texts by their positions, ``first`` before ``second``, and how alike they are."""

    first: int
    second: int
    similarity: float


def near_duplicates(texts: Sequence[str], *, threshold: float = THRESHOLD) -> list[Pair]:
    """Return the pairs of texts with a similarity of at least ``threshold``, the closest first.

    The similarity is the cosine, in [0, 1], of TF-IDF vectors over runs of 2 to 4 characters
    within words, so that word order hardly counts, and scripts without spaces work. Letter case
    does not count. Two texts that differ in one number may well be alike in this sense: look at
    the pairs before dropping any.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    if len(texts) < 2:
        return []
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True)
    try:
        vectors = vectorizer.fit_transform(texts)
    except ValueError:  # no text holds a single character
        return []
    pairs = []
    for start in range(0, len(texts), _ROWS_AT_ONCE):
        # The later texts only: each pair is met once, and no text meets itself.
        block = (vectors[start : start + _ROWS_AT_ONCE] @ vectors[start:].T).tocoo()
        close = block.data >= threshold - 1e-9  # rounding must not separate equal texts
        for row, column, value in zip(
            block.row[close], block.col[close], block.data[close], strict=True
        ):
            if row < column:
                similarity = min(float(value), 1.0)
                pairs.append(Pair(start + int(row), start + int(column), similarity))
    return sorted(pairs, key=lambda pair: (-round(pair.similarity, 9), pair.first, pair.second))
