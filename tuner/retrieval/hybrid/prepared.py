"""Prepared queries: whatever does not depend on the parameters, worked out once and kept on disk.

Propagation is linear in the seeds. So for each query and candidate seed the passage scores after
each hop are kept, for a pool of documents that either leg ranks high; a trial then weighs the
seeds, adds up, fuses and ranks.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuner.core.corpus import Query
from tuner.core.rankings import Float32Array, FloatArray, IntArray
from tuner.core.steps import Advance, unheard
from tuner.retrieval.hybrid.cache import new_array, read_array, write_array
from tuner.retrieval.hybrid.fusion import best, normalise_graph
from tuner.retrieval.hybrid.index import Index
from tuner.retrieval.hybrid.propagation import MOST_HOPS, cumulative_scores
from tuner.retrieval.hybrid.seeds import softmax

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_BLOCK_BYTES = 192 * 1024 * 1024


class Recent(Generic[Key, Value]):
    """Remember the last few computed values; threads may share it."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key, compute: Callable[[], Value]) -> Value:
        """Return the value of ``key``, computed now if it is not remembered."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = compute()
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._size:
                self._values.popitem(last=False)
        return value


@dataclass(frozen=True)
class Batch:
    """Some prepared queries, in the order in which they are asked.

    Attributes:
        pool: shape (queries, pool), ascending document positions; -1 fills.
        text: same shape, the text leg's scores in [0, 1]; 0 in the fill.
        seed_scores: shape (queries, seeds), -inf fills.
        graph: shape (hops, queries, seeds, pool), cumulative scores after each hop.
    """

    pool: npt.NDArray[np.int32]
    text: Float32Array
    seed_scores: FloatArray
    graph: tuple[Float32Array, ...]
    _recent: Recent[tuple[float, int], Float32Array] = field(
        default_factory=lambda: Recent(8), repr=False
    )

    def graph_scores(self, *, temperature: float, max_hops: int) -> Float32Array:
        """Return normalised graph scores, shape (queries, pool); the last few are remembered."""

        def compute() -> Float32Array:
            weights = softmax(self.seed_scores, temperature).astype(np.float32)
            scores = np.matmul(weights[:, None, :], self.graph[max_hops - 1])[:, 0, :]
            return normalise_graph(scores)

        return self._recent.get((temperature, max_hops), compute)


@dataclass(frozen=True)
class PreparedQueries:
    """Prepared queries in one directory of the cache; ``rows`` finds them by their text."""

    rows: dict[str, int]
    everything: Batch
    _recent: Recent[tuple[str, ...], Batch] = field(default_factory=lambda: Recent(4), repr=False)

    def batch(self, queries: Sequence[Query]) -> Batch | None:
        """Return the batch of exactly these queries, or None where one of them is not prepared."""
        texts = tuple([query.text for query in queries])
        if not all(text in self.rows for text in texts):
            return None
        return self._recent.get(texts, lambda: self._select(texts))

    def _select(self, texts: tuple[str, ...]) -> Batch:
        whole = self.everything
        rows = [self.rows[text] for text in texts]
        if rows == list(range(len(self.rows))):
            return whole
        return Batch(
            whole.pool[rows],
            whole.text[rows],
            whole.seed_scores[rows],
            tuple(hop[rows] for hop in whole.graph),
        )


def write_prepared(
    directory: Path, index: Index, queries: Sequence[Query], advance: Advance = unheard
) -> None:
    """Work out prepared queries, block by block, and write them into an empty directory."""
    documents, options = len(index.document_ids), index.options
    width = min(documents, options.text_pool + options.graph_pool)
    shape = (len(queries), width)
    pool = np.full(shape, -1, dtype=np.int32)
    text = np.zeros(shape, dtype=np.float32)
    entities, seed_scores = index.candidates([query.text for query in queries])
    walks_shape = (MOST_HOPS, len(queries), options.seeds, width)
    graph = new_array(directory, "graph", shape=walks_shape, dtype=np.float32)
    walk_bytes = 4 * (documents * (MOST_HOPS + 3) + len(index.graph.names))
    size = max(1, _BLOCK_BYTES // (walk_bytes * options.seeds))
    for start in range(0, len(queries), size):
        advance(start, len(queries))
        block = slice(start, start + size)
        hops = _walks(index, entities[block])
        text_scores = index.text_scores(list(queries[block]))
        for row, scores in enumerate(text_scores):
            reached = hops[-1][row].max(axis=0)
            members = _pool(scores, options.text_pool, reached, options.graph_pool)
            span = slice(0, len(members))
            pool[start + row, span] = members
            text[start + row, span] = scores[members]
            for hop, values in enumerate(hops):
                graph[hop, start + row, :, span] = values[row][:, members]
    graph.flush()
    write_array(directory, "pool", pool)
    write_array(directory, "text", text)
    write_array(directory, "seed_scores", seed_scores)
    texts = json.dumps([query.text for query in queries])
    (directory / "texts.json").write_text(texts, encoding="utf-8")


def _walks(index: Index, entities: IntArray) -> list[Float32Array]:
    """Return cumulative scores by hop, each of shape (queries, seeds, documents)."""
    queries, seeds = entities.shape
    walks = np.flatnonzero(entities.ravel() >= 0)
    starts = sparse.csr_array(
        (np.ones(len(walks), dtype=np.float32), (walks, entities.ravel()[walks])),
        shape=(queries * seeds, len(index.graph.names)),
    )
    return [
        scores.reshape(queries, seeds, -1)
        for scores in cumulative_scores(index.graph, starts, hops=MOST_HOPS)
    ]


def _pool(text: Float32Array, text_count: int, graph: Float32Array, graph_count: int) -> IntArray:
    """Return the positions, ascending, of the best documents of either leg."""
    by_text, _ = best(text[None, :], text_count)
    by_graph, _ = best(normalise_graph(graph[None, :]), graph_count)
    members = np.union1d(by_text, by_graph)
    return members[members >= 0]


@lru_cache(maxsize=8)
def open_prepared(directory: Path) -> PreparedQueries:
    """Map prepared queries into memory, once a process."""
    texts = json.loads((directory / "texts.json").read_text(encoding="utf-8"))
    everything = Batch(
        read_array(directory, "pool"),
        read_array(directory, "text"),
        read_array(directory, "seed_scores"),
        tuple(read_array(directory, "graph")),
    )
    return PreparedQueries({text: row for row, text in enumerate(texts)}, everything)
