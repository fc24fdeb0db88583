"""Propagation: from seed entities, hop by hop, to scores of passages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuner.core.rankings import Float32Array, IntArray
from tuner.retrieval.hybrid.graph import Graph

DECAY = 0.7
# Where walks have reached fewer rows, those are picked out ahead of a product.
MOST_PICKED = 0.3
# Names that most passages hold: their rows stay in a processor's cache.
HUBS = 10_000
# Walks that are added up at once, so that both sides stay in the cache.
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class Roads:
    """The graph's matrices as products with dense walks take them.

    Whichever way they are made, the numbers that come out are the same to the last digit.

    Attributes:
        from_passages: shape (entities, passages).
        from_entities: shape (passages, entities).
        entities: the graph's entity of each row of the one and column of the other; None where
            they are in the graph's own order.
    """

    from_passages: Any
    from_entities: Any
    entities: IntArray | None

    @classmethod
    def of(cls, graph: Graph) -> Roads:
        """Take the graph's matrices as they are, which is quick where walks stay in the cache."""
        return cls(graph.to_entities.T, graph.to_passages.T, None)

    @classmethod
    def ordered(cls, graph: Graph) -> Roads:
        """Make matrices for walks that no cache holds: they jump about in memory less.

        Names that many passages hold stand together, the others in the order of the first passages
        that hold them. A passage's names stay in the graph's order, in which sums are added up.
        """
        to_entities = graph.to_entities
        passages, count = to_entities.shape
        first = np.full(count, passages, dtype=np.int64)
        rows = np.repeat(np.arange(passages), np.diff(to_entities.indptr))
        # Backwards, as of several values the last one is kept.
        first[to_entities.indices[::-1]] = rows[::-1]
        del rows
        hubs = np.argsort(-graph.degrees, kind="stable")[:HUBS]
        first[hubs] = np.arange(-len(hubs), 0)
        entities = np.argsort(first, kind="stable")
        place = np.empty(count, dtype=to_entities.indices.dtype)
        place[entities] = np.arange(count)
        from_entities = graph.to_passages.T.tocsr()
        return cls(
            _renamed(to_entities, place).T,
            _renamed(from_entities, place),
            entities,
        )


def _renamed(matrix: Any, place: npt.NDArray[np.integer]) -> sparse.csr_array:
    """Return the matrix with other numbers for its columns; the order within rows is kept."""
    arrays = (matrix.data, place[matrix.indices], matrix.indptr)
    return sparse.csr_array(arrays, shape=matrix.shape)


def walks(
    graph: Graph, seeds: sparse.csr_array, *, hops: int, roads: Roads | None = None
) -> Iterator[Float32Array]:
    """Yield where walks are after h = 1 to ``hops`` hops, each of shape (passages, walks).

    ``seeds`` has shape (walks, entities). The first hop goes from the seeds to their passages; each
    further one goes from passages to their entities and on to those entities' passages.
    """
    roads = Roads.of(graph) if roads is None else roads
    at = np.unique(seeds.indices)
    # Sparse times dense is quick one way only, so walks run down the columns.
    passages: Float32Array = graph.to_passages[at].T @ seeds[:, at].T.toarray(order="C")
    yield passages
    # Who has reached many goes on to as many: each passage leads back to itself.
    is_few = True
    for _ in range(1, hops):
        few = _reached(passages) if is_few else None
        if few is None:
            entities = roads.from_passages @ passages
        else:
            entities = roads.from_passages.T[few].T @ passages[few]
            few = _reached(entities)
        is_few = few is not None
        if few is None:
            passages = roads.from_entities @ entities
        else:
            passages = _from_few(graph, roads, entities, few)
        yield passages


def _reached(places: Float32Array) -> IntArray | None:
    """Return the rows that any walk has reached, or None where they are many."""
    found = np.flatnonzero(places.any(axis=1))
    return found if len(found) < MOST_PICKED * len(places) else None


def _from_few(graph: Graph, roads: Roads, entities: Float32Array, few: IntArray) -> Float32Array:
    names = few
    if roads.entities is not None:
        # In the graph's order, so that sums are added up as elsewhere.
        names = roads.entities[few]
        order = np.argsort(names)
        names, few = names[order], few[order]
    passages: Float32Array = graph.to_passages[names].T @ entities[few]
    return passages


def cumulative_scores(
    graph: Graph,
    seeds: sparse.csr_array,
    *,
    hops: int,
    decay: float = DECAY,
    roads: Roads | None = None,
) -> Float32Array:
    """Return the sum of ``decay^h * p_h`` over h = 1 to ``hops``, shape (walks, passages).

    p_h is what ``walks`` yields.
    """
    reached = walks(graph, seeds, hops=hops, roads=roads)
    total = np.float32(decay) * next(reached)
    for hop, places in enumerate(reached, 2):
        add_scaled(total, places, np.float32(decay**hop))
    return total.T


def add_scaled(total: Float32Array, places: Float32Array, share: np.float32) -> None:
    """Add ``share * places`` to ``total``, in place."""
    for start in range(0, len(total), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        total[rows] += share * places[rows]


def hop_weights(decay: float, hops: int) -> list[tuple[int, float]]:
    """Return by which weights cumulative scores at ``DECAY`` add up to those at ``decay``.

    Pairs of a hop and its weight. With ``r = decay / DECAY`` and C_0 = 0 the sum over i of
    ``r^i * (C_i - C_(i-1))`` is that of ``(r^i - r^(i+1)) * C_i``, and ``r^hops * C_hops`` last.

    >>> hop_weights(DECAY, 3)
    [(3, 1.0)]
    """
    ratio = decay / DECAY
    inner = ((hop, ratio**hop - ratio ** (hop + 1)) for hop in range(1, hops))
    return [*((hop, weight) for hop, weight in inner if weight != 0.0), (hops, ratio**hops)]
