"""At which ranks an answer has relevant documents, as one number a query: small enough to keep."""

from __future__ import annotations

import numpy as np

from tuner.core.rankings import BoolArray, FloatArray

FOUND = "found/relevant"
"""What it is called among the per-query values of a trial; no metric has a slash in its name."""
DEEPEST = 50
"""Ranks beyond are not told: a float64 holds whole numbers up to 2^53 exactly."""


def found_at(hits: BoolArray) -> FloatArray:
    """Return the ranks at which there are hits, shape (queries, depth), as one number a query.

    It is the sum of ``2^(rank - 1)`` over the hits, and of ``2^depth``, which tells how far was
    looked.

    >>> found_at(np.array([[True, False, True], [False, False, False]])).tolist()
    [13.0, 8.0]
    """
    seen = hits[:, :DEEPEST]
    values: FloatArray = seen @ np.exp2(np.arange(seen.shape[1])) + 2.0 ** seen.shape[1]
    return values


def ranks_of(value: float) -> tuple[tuple[int, ...], int] | None:
    """Return the ranks, from 1, and how far was looked; None where a query was not asked.

    >>> ranks_of(13.0), ranks_of(8.0)
    (((1, 3), 3), ((), 3))
    """
    if not 1.0 <= value < 2.0 ** (DEEPEST + 1):
        return None
    bits = int(value)
    depth = bits.bit_length() - 1
    return tuple(rank + 1 for rank in range(depth) if bits >> rank & 1), depth
