"""Propagation: from seed entities, hop by hop, to scores of passages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuner.retrieval.hybrid.graph import Graph

DECAY = 0.7
MOST_HOPS = 6
# Measured: at this share of all passages or names sparse and dense products take the same time.
THIN = 0.001


def cumulative_scores(
    graph: Graph,
    seeds: sparse.csr_array,
    *,
    hops: int,
    decay: float = DECAY,
    from_entities: Any = None,
) -> Iterator[npt.NDArray[np.float32]]:
    """Yield, for h = 1 to ``hops``, the sum of ``decay^i * p_i`` over i <= h.

    ``seeds`` has shape (walks, entities). p_1 is where the walk goes from its seeds; each further
    hop goes from passages to their entities and on to those entities' passages. Yielded arrays
    have shape (walks, passages) and are the caller's to keep. ``from_entities`` is
    ``graph.to_passages.T`` in whichever form is quick; the numbers are the same.
    """
    to_passages, to_entities = graph.to_passages, graph.to_entities
    # Sparse times dense is quick one way only, so walks run down the columns.
    from_passages = to_entities.T
    from_entities = to_passages.T if from_entities is None else from_entities
    at_passages = seeds @ to_passages
    passages = _down_columns(at_passages)
    thin: sparse.csr_array | None = at_passages
    total = decay * passages
    yield total.T
    for hop in range(2, hops + 1):
        if thin is not None and _is_thin(thin):
            # Sorted, so that sums are added up in one order, whichever way they are computed.
            thin.sort_indices()
            at_entities = thin @ to_entities
            thin = None
            if _is_thin(at_entities):
                at_entities.sort_indices()
                thin = at_entities @ to_passages
                passages = _down_columns(thin)
            else:
                passages = from_entities @ _down_columns(at_entities)
        else:
            passages = from_entities @ (from_passages @ passages)
        total = total + np.float32(decay**hop) * passages
        yield total.T


def _is_thin(walks: sparse.csr_array) -> bool:
    """Say whether walks have reached so little that sparse products are the quicker ones."""
    return walks.nnz < THIN * walks.shape[0] * walks.shape[1]


def _down_columns(walks: sparse.csr_array) -> npt.NDArray[np.float32]:
    return walks.T.toarray().astype(np.float32)


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
