"""Prepared queries: whatever does not depend on the parameters, worked out once and kept on disk.

Propagation is linear in the seeds. So for each query and candidate seed the passage scores after
each hop are kept, for a pool of documents that either leg ranks high; a trial then weighs the
seeds, adds up, fuses and ranks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy import sparse

from tuner.core.corpus import Query
from tuner.core.rankings import Float32Array, IntArray
from tuner.core.steps import Advance, unheard
from tuner.retrieval.hybrid.batch import Batch, PreparedQueries
from tuner.retrieval.hybrid.cache import new_array, read_array, write_array
from tuner.retrieval.hybrid.fusion import Groups, best, normalise_graph, normalise_text
from tuner.retrieval.hybrid.index import Index
from tuner.retrieval.hybrid.mixture import corners, mixed
from tuner.retrieval.hybrid.propagation import (
    DECAY,
    Roads,
    add_scaled,
    walks,
)
from tuner.retrieval.hybrid.rerank import Questions

# Measured: products are quickest where a matrix of walks and documents stays in the cache, and 16
# walks fill one of its lines; beyond it, the more walks, the fewer jumps in memory for each.
_BLOCK_BYTES = 6 * 1024 * 1024
_LEAST_WALKS = 16
_LEAST_WALKS_BEYOND = 32
# Passages from which on a matrix of that many walks leaves the cache.
_BEYOND_CACHE = 50_000
# Of all blocks that are worked on at once, however many cores there are.
_MOST_BYTES = 5 * 1024**3 // 2


def write_prepared(
    directory: Path, index: Index, queries: Sequence[Query], advance: Advance = unheard
) -> None:
    """Work out prepared queries, block by block, and write them into an empty directory.

    Blocks are worked on in threads: products of matrices let others run meanwhile.
    """
    from joblib import Parallel, cpu_count, delayed

    documents, options = index.passage_count, index.options
    width = min(documents, options.text_pool + options.graph_pool)
    shape = (len(queries), width)
    pool = np.full(shape, -1, dtype=np.int32)
    text = np.zeros(shape, dtype=np.float32)
    vectors = np.zeros(shape, dtype=np.float32)
    is_further = np.zeros(shape, dtype=bool)
    seeds = options.seed_room
    entities, seed_scores = index.candidates([query.text for query in queries], count=seeds)
    starts = seeds + index.passage_starts
    walks_shape = (options.most_hops, len(queries), starts, width)
    graph = new_array(directory, "graph", shape=walks_shape, dtype=np.float32)

    roads_of = Roads.ordered if documents > _BEYOND_CACHE else Roads.of
    roads = roads_of(index.graph)

    def work(block: slice) -> Float32Array | None:
        lexical, dense = index.text_parts(list(queries[block]))
        found = _walks(index, entities[block], index.best_passages(lexical, dense), roads)
        for row, scores in enumerate(lexical):
            reached = found.total(row)
            if dense is None:
                by_text, _ = best(scores[None, :], options.text_pool)
            else:
                by_text = _by_any(scores, dense[row], options.dense_weight, options.text_pool)
            usual = _pool(by_text, reached[:seeds].max(axis=0), options.graph_pool)
            members = _with_further(usual, reached[seeds:].max(axis=0), width)
            at, span = block.start + row, slice(0, len(members))
            pool[at, span] = members
            text[at, span] = scores[members]
            is_further[at, span] = ~np.isin(members, usual)
            if dense is not None:
                vectors[at, span] = dense[row, members]
            for hop, values in enumerate(found.by_hop(row, members)):
                graph[hop, at, :, span] = values
            graph[:, at, :seeds, span] *= ~is_further[at, span]
        return None if dense is None else corners(lexical, dense)

    blocks, at_once = _blocks(index, len(queries))
    ends: list[Float32Array] = []
    threads = min(cpu_count(), at_once)
    work_of = Parallel(n_jobs=threads, prefer="threads", return_as="generator")
    advance(0, len(blocks))
    for number, done in enumerate(work_of(delayed(work)(block) for block in blocks), 1):
        advance(number, len(blocks))
        if done is not None:
            ends.append(done)
    graph.flush()
    write_array(directory, "pool", pool)
    if index.owners is not None:
        write_array(directory, "owners", np.where(pool >= 0, index.owners[pool], -1))
    write_array(directory, "text", text)
    write_array(directory, "is_further", is_further)
    questions = Questions.of(index.bm25, [query.text for query in queries], pool)
    write_array(directory, "term_weights", questions.weights)
    write_array(directory, "covered", questions.covered)
    if ends:
        write_array(directory, "dense", vectors)
        write_array(directory, "corners", _side_by_side(ends))
    write_array(directory, "seed_scores", seed_scores)
    texts = json.dumps([query.text for query in queries])
    (directory / "texts.json").write_text(texts, encoding="utf-8")


def _blocks(index: Index, queries: int) -> tuple[list[slice], int]:
    """Cut queries into blocks; returns them, and how many of them memory has room for at once."""
    documents, options = index.passage_count, index.options
    starts = options.seed_room + index.passage_starts
    # Hops are kept until the passages of the pool are known.
    bytes_each = 4 * starts * (documents * (options.most_hops + 1) + len(index.graph.names))
    if documents > _BEYOND_CACHE:
        size = min(-(-_LEAST_WALKS_BEYOND // starts), _MOST_BYTES // bytes_each)
    else:
        size = max(-(-_LEAST_WALKS // starts), _BLOCK_BYTES // (4 * documents * starts))
    size = max(1, size)
    blocks = [slice(start, start + size) for start in range(0, queries, size)]
    return blocks, max(1, _MOST_BYTES // (bytes_each * size))


@dataclass(frozen=True)
class _Walks:
    """Where the walks of some queries have been, ``starts`` of each.

    Attributes:
        hops: where they are after each hop but the last, each of shape (passages, walks).
        totals: cumulative scores after the last hop, same shape.
    """

    hops: list[Float32Array]
    totals: Float32Array
    starts: int

    def total(self, row: int) -> Float32Array:
        """Return a query's cumulative scores after the last hop, shape (starts, passages)."""
        return np.ascontiguousarray(self.totals[:, self._columns(row)].T)

    def by_hop(self, row: int, members: IntArray) -> Iterator[Float32Array]:
        """Yield cumulative scores of some passages after each hop, shape (starts, members)."""
        columns = self._columns(row)
        so_far = np.zeros((len(members), self.starts), dtype=np.float32)
        for hop, places in enumerate(self.hops, 1):
            add_scaled(so_far, places[members, columns], np.float32(DECAY**hop))
            yield so_far.T
        yield self.totals[members, columns].T

    def _columns(self, row: int) -> slice:
        return slice(row * self.starts, (row + 1) * self.starts)


def _walks(index: Index, entities: IntArray, passages: IntArray, roads: Roads) -> _Walks:
    """Walk from each query's seeds, and then from its best passages."""
    names = np.pad(entities, [(0, 0), (0, passages.shape[1])], constant_values=-1)
    queries, width = names.shape
    numbers = np.flatnonzero(names.ravel() >= 0)
    starts = sparse.csr_array(
        (np.ones(len(numbers), dtype=np.float32), (numbers, names.ravel()[numbers])),
        shape=(queries * width, len(index.graph.names)),
    )
    rows, places = np.nonzero(passages >= 0)
    numbers = rows * width + entities.shape[1] + places
    starts = starts + index.names_of(passages[rows, places], numbers, queries * width)
    most = index.options.most_hops
    hops: list[Float32Array] = []
    totals = np.zeros((index.passage_count, queries * width), dtype=np.float32)
    for hop, reached in enumerate(walks(index.graph, starts, hops=most, roads=roads), 1):
        add_scaled(totals, reached, np.float32(DECAY**hop))
        if hop < most:
            hops.append(reached)
    return _Walks(hops, totals, width)


def _side_by_side(blocks: Sequence[Float32Array]) -> Float32Array:
    """Return corners of all queries; blocks with fewer repeat their last."""
    width = max(block.shape[2] for block in blocks)
    widths = [(0, 0), (0, 0)]
    return np.concatenate(
        [np.pad(block, [*widths, (0, width - block.shape[2])], mode="edge") for block in blocks],
        axis=1,
    )


def _by_any(lexical: Float32Array, dense: Float32Array, weight: float, count: int) -> IntArray:
    """Return the documents that words, vectors or the usual mixture of both rank highest."""
    orders = [
        best(scores[None, :], count)[0][0]
        for scores in (normalise_text(mixed(lexical, dense, weight)[None, :])[0], lexical, dense)
    ]
    by_rank = np.stack(orders, axis=1).ravel()
    found = dict.fromkeys(by_rank[by_rank >= 0].tolist())
    return np.array(list(found)[:count], dtype=np.int64)


def _pool(by_text: IntArray, graph: Float32Array, graph_count: int) -> IntArray:
    """Return the positions, ascending, of the documents by text and the graph's best."""
    by_graph, _ = best(normalise_graph(graph[None, :]), graph_count)
    members = np.union1d(by_text, by_graph)
    return members[members >= 0]


def _with_further(members: IntArray, reached: Float32Array, width: int) -> IntArray:
    """Add the best of what walks from passages reach, as far as there is room."""
    further = reached.copy()
    further[members] = 0.0
    added, _ = best(normalise_graph(further[None, :]), width - len(members))
    return np.union1d(members, added[added >= 0])


@lru_cache(maxsize=8)
def open_prepared(directory: Path) -> PreparedQueries:
    """Map prepared queries into memory, once a process."""
    texts = json.loads((directory / "texts.json").read_text(encoding="utf-8"))
    has_chunks = (directory / "owners.npy").is_file()
    has_vectors = (directory / "dense.npy").is_file()
    everything = Batch(
        read_array(directory, "pool"),
        Groups.of(read_array(directory, "owners")) if has_chunks else None,
        read_array(directory, "text"),
        read_array(directory, "dense") if has_vectors else None,
        read_array(directory, "corners") if has_vectors else None,
        read_array(directory, "is_further"),
        Questions(read_array(directory, "term_weights"), read_array(directory, "covered")),
        read_array(directory, "seed_scores"),
        tuple(read_array(directory, "graph")),
    )
    return PreparedQueries({text: row for row, text in enumerate(texts)}, everything)
