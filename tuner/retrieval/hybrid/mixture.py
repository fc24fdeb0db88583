"""The search by text where it has two parts, words and vectors, kept apart to be mixed anew."""

from __future__ import annotations

import numpy as np

from tuner.core.rankings import BoolArray, Float32Array
from tuner.retrieval.hybrid.fusion import TRACE, spread
from tuner.retrieval.hybrid.knobs import Settings

FLAT = 1e-6


def lexical_share(scores: Float32Array) -> Float32Array:
    """Return BM25 scores spread over [0, 1] in each row; what matches no word has none."""
    return np.asarray(spread(scores) * (scores > 0), dtype=np.float32)


def dense_share(scores: Float32Array) -> Float32Array:
    """Return scores of vectors spread over [0, 1] in each row; a silent row, all 0, stays 0.

    Where all are equal but for rounding, all are 1.
    """
    is_flat = np.ptp(scores, axis=1, keepdims=True) < FLAT
    shares = np.where(is_flat, 1.0, spread(scores)) * scores.any(axis=1, keepdims=True)
    return np.asarray(shares, dtype=np.float32)


def mixed(lexical: Float32Array, dense: Float32Array, weight: float) -> Float32Array:
    """Return ``(1 - w) * lexical + w * dense``."""
    share = np.float32(weight)
    mixture: Float32Array = (1 - share) * lexical
    mixture += share * dense
    return mixture


def scaled(mixture: Float32Array, ends: Float32Array) -> Float32Array:
    """Return mixed scores as ``normalise_text`` would over all documents.

    Args:
        mixture: shape (queries, any), scores of some documents.
        ends: shape (queries, any), scores among which are the least and the greatest of all.
    """
    low = ends.min(axis=1, keepdims=True)
    span = ends.max(axis=1, keepdims=True) - low
    is_flat = span <= 0
    shares: Float32Array = mixture - low
    shares /= np.where(is_flat, np.float32(1), span)
    shares[is_flat[:, 0]] = 1
    np.maximum(shares, np.float32(TRACE), out=shares)
    shares *= mixture > 0
    return shares


def passage_weights(settings: Settings, starts: int) -> Float32Array:
    """Return what walks from the passages count that words and, if any, vectors rank first."""
    shares = [1.0] if starts == 1 else [1.0 - settings.dense_weight, settings.dense_weight]
    return np.array(shares, dtype=np.float32) * np.float32(settings.passage_weight)


def corners(lexical: Float32Array, dense: Float32Array) -> Float32Array:
    """Return the pairs of scores that can be the least or the greatest mixture of a query.

    They are corners of the convex hull of all documents' pairs, so that a mixture's ends are known
    for each weight without the documents. Shape (2, queries, corners); pairs are repeated to fill.
    """
    rows = []
    for pairs in zip(lexical, dense, strict=True):
        points = np.stack(pairs, axis=1).astype(np.float64)
        rows.append(np.concatenate([_least(points), -_least(-points)]))
    width = max(map(len, rows), default=0)
    filled = [np.concatenate([row, np.repeat(row[:1], width - len(row), axis=0)]) for row in rows]
    found = np.array(filled, dtype=np.float32).reshape(len(rows), width, 2)
    return np.ascontiguousarray(np.moveaxis(found, 2, 0))


def _least(points: np.ndarray) -> np.ndarray:
    """Return the points that are least in some direction between the two axes."""
    left = points[points[:, 0] == points[:, 0].min()]
    right = points[points[:, 1] == points[:, 1].min()]
    first, last = left[left[:, 1].argmin()], right[right[:, 0].argmin()]
    is_between: BoolArray = (points[:, 0] < last[0]) & (points[:, 1] < first[1])
    between = points[is_between]
    hull: list[np.ndarray] = [first]
    for point in [*between[np.lexsort((between[:, 1], between[:, 0]))], last]:
        while len(hull) > 1 and not _turns_left(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return np.array(hull)


def _turns_left(first: np.ndarray, second: np.ndarray, third: np.ndarray) -> bool:
    a, b = second - first, third - first
    return bool(a[0] * b[1] - a[1] * b[0] > 0)
