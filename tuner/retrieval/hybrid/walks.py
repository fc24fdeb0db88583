"""Walks: which ways through the graph gave a passage its score, found exactly and best first.

A passage's score by walks is a sum over all ways that lead to it within ``max_hops``: what the
start counts, times the share of each step, times ``hop_decay ^ hops``. Of these the greatest are
found without listing the rest: what the best way from a start to each place is worth, hop by hop,
says how far a way that is followed backwards can still come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from typing import Any

import numpy as np
from scipy import sparse

from tuner.core.rankings import FloatArray
from tuner.retrieval.hybrid.graph import Graph

# Ways that are looked at for one passage at most: those that come back to a name are left out.
MOST_STEPS = 20_000


@dataclass(frozen=True)
class Way:
    """A way from a start to a passage, by positions.

    Attributes:
        start: which of the starts it begins from.
        names: entities on the way; ``passages``: where each leads to, the last one is the passage.
        weight: what it adds to the passage's score by walks.
    """

    start: int
    names: tuple[int, ...]
    passages: tuple[int, ...]
    weight: float


@dataclass(frozen=True, eq=False)
class Ways:
    """Finds ways through the graph from some starts.

    Attributes:
        starts: each of shape (entities,), what a walk counts that begins at the entity.
        decay: what each hop is worth, as a share of the hop before it.
    """

    graph: Graph
    starts: Sequence[FloatArray]
    max_hops: int
    decay: float

    def best(self, passage: int, count: int) -> list[Way]:
        """Return the ``count`` greatest ways to a passage that meet nothing twice, best first.

        Of ways that are worth the same, the shorter comes first, and then those of lower positions.
        """
        at_names, at_passages = self._bounds
        heap: list[tuple[float, int, tuple[int, ...], tuple[int, ...], int, float]] = []

        def push(
            bound: float,
            names: tuple[int, ...],
            passages: tuple[int, ...],
            start: int,
            weight: float,
        ) -> None:
            if bound > 0:
                # Rounded: equal products in another order differ in the last digit.
                key = -float(f"{bound:.12g}")
                heappush(heap, (key, len(passages), names, passages, start, weight))

        for hops in range(1, self.max_hops + 1):
            weight = self.decay**hops
            # A way that is not whole yet has as many hops to go as it has `start` below -1.
            push(weight * at_passages[hops - 1][passage], (), (passage,), -1 - hops, weight)
        found: list[Way] = []
        for _ in range(MOST_STEPS):
            if not heap or len(found) == count:
                break
            _, _, names, passages, start, weight = heappop(heap)
            if start >= 0:
                found.append(Way(start, names, passages, weight))
                continue
            hops = -1 - start
            if len(names) < len(passages):
                for name, share in _column(self._to_passages, passages[0]):
                    if name not in names:
                        bound = weight * share * at_names[hops - 1][name]
                        push(bound, (name, *names), passages, start, weight * share)
            elif hops == 1:
                for number, counted in enumerate(self.starts):
                    whole = weight * float(counted[names[0]])
                    push(whole, names, passages, number, whole)
            else:
                for place, share in _column(self._to_entities, names[0]):
                    if place not in passages:
                        bound = weight * share * at_passages[hops - 2][place]
                        push(bound, names, (place, *passages), start + 1, weight * share)
        return found

    @cached_property
    def _to_passages(self) -> Any:
        return sparse.csc_array(self.graph.to_passages)

    @cached_property
    def _to_entities(self) -> Any:
        return sparse.csc_array(self.graph.to_entities)

    @cached_property
    def _bounds(self) -> tuple[list[FloatArray], list[FloatArray]]:
        """What the best way is worth that is at each name, and at each passage, after 0, 1, … hops.

        Without the decay.
        """
        names = [np.max(np.stack(list(self.starts)), axis=0)]
        passages = [_best_in(self._to_passages, names[0])]
        for _ in range(1, self.max_hops):
            names.append(_best_in(self._to_entities, passages[-1]))
            passages.append(_best_in(self._to_passages, names[-1]))
        return names, passages


def _column(matrix: Any, place: int) -> list[tuple[int, float]]:
    span = slice(matrix.indptr[place], matrix.indptr[place + 1])
    return list(zip(matrix.indices[span].tolist(), matrix.data[span].tolist(), strict=True))


def _best_in(matrix: Any, at: FloatArray) -> FloatArray:
    """Return for each column the greatest product of one of its shares and where that comes from.

    ``at`` has shape (rows,), the result (columns,); 0 for a column without shares.
    """
    found = np.zeros(matrix.shape[1])
    products = matrix.data.astype(np.float64) * at[matrix.indices]
    is_some = np.diff(matrix.indptr) > 0
    if products.size:
        found[is_some] = np.maximum.reduceat(products, matrix.indptr[:-1][is_some])
    return found
