"""Fusion: one score a document from all legs, and the best documents of each query."""

from __future__ import annotations

import numpy as np

from tuner.core.rankings import NO_DOCUMENT, BoolArray, FloatArray, IntArray
from tuner.retrieval.adapters.runs.knobs import Settings
from tuner.retrieval.adapters.runs.legs import Batch, Leg
from tuner.retrieval.adapters.runs.normalisation import missing, normalise

# Documents of all queries together; beyond, computing them again costs less than the memory.
_MOST_REMEMBERED = 500_000


def fuse(batch: Batch, settings: Settings) -> FloatArray:
    """Return the fused scores of each query's pool, shape (queries, pool).

    Each leg is cut to its depth first. Then, summed over the legs in the order of their names:

    - score: weight * normalised score; a document that the leg lacks counts as ``missing`` says
      (the weighted CombSUM of Fox & Shaw 1994).
    - rrf: weight / (k + rank), ranks from 1; a document that the leg lacks counts 0 (Cormack,
      Clarke & Büttcher 2009, "Reciprocal rank fusion", there with k = 60 and without weights).

    A leg of weight 0 is left out: its documents do not count as found. What no leg has found is
    -inf.
    """
    total = np.zeros(batch.pool.shape)
    is_found = np.zeros(batch.pool.shape, dtype=np.bool_)
    for leg, weight, depth in zip(batch.legs, settings.weights, settings.depths, strict=True):
        if weight > 0:
            values, is_there = _values(leg, depth, settings)
            total += weight * values
            is_found |= is_there
    return np.where(is_found, total, -np.inf)


def best(fused: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
    """Return columns and scores of the ``count`` best of each row, best first; -1 and 0 fill.

    Of equal scores the lower column comes first; columns of -inf are never returned.
    """
    depth = min(count, fused.shape[1])
    last = np.partition(fused, fused.shape[1] - depth, axis=1)[:, -depth, None]
    is_kept = fused >= last
    if np.count_nonzero(is_kept) > len(fused) * depth:
        # Ties for the last place: the first columns of them go in.
        is_tied = fused == last
        room = depth - np.count_nonzero(fused > last, axis=1, keepdims=True)
        is_kept &= ~is_tied | (np.cumsum(is_tied, axis=1) <= room)
    places = np.flatnonzero(is_kept).reshape(len(fused), depth)
    order = np.argsort(-fused.ravel()[places], axis=1, kind="stable")
    places = np.take_along_axis(places, order, axis=1)
    scores = fused.ravel()[places]
    is_empty = scores == -np.inf
    columns = places % fused.shape[1]
    return np.where(is_empty, NO_DOCUMENT, columns), np.where(is_empty, 0.0, scores)


def _values(leg: Leg, depth: int, settings: Settings) -> tuple[FloatArray, BoolArray]:
    """Return the leg's values for each document of the pool, and which of these it has found.

    Remembered for the next trials, which often differ in the weights alone.
    """
    is_rrf, method, k = settings.is_rrf, settings.normalisation, settings.rrf_k

    def compute() -> tuple[FloatArray, BoolArray]:
        values = _reciprocal(leg, depth, k) if is_rrf else _normalised(leg, depth, method)
        return values, leg.ranks < min(depth, leg.scores.shape[1])

    if leg.ranks.size > _MOST_REMEMBERED:
        return compute()
    return leg.recent.get((depth, is_rrf, k if is_rrf else method), compute)


def _normalised(leg: Leg, depth: int, method: str) -> FloatArray:
    """Return the leg's normalised scores for each document of the pool."""
    lengths = np.minimum(leg.lengths, depth)
    scores = normalise(leg.scores[:, :depth], lengths, method)
    values = np.empty((len(scores), leg.scores.shape[1] + 1))
    values[:] = missing(scores, lengths)
    # The filling of short rows is in no pool, so nothing looks at it.
    values[:, : scores.shape[1]] = scores
    return values.ravel()[leg.places]


def _reciprocal(leg: Leg, depth: int, k: int) -> FloatArray:
    """Return 1 / (k + rank), ranks from 1, for each document of the pool; 0 where it is missing."""
    ranks = np.arange(1, leg.scores.shape[1] + 2)
    shares = 1.0 / (k + ranks)
    shares[depth:] = 0.0
    shares[-1] = 0.0
    return shares[leg.ranks]
