"""How many hops the built-in engine's graph takes from a query's names to a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tuner.datasets import Dataset

_AT_ONCE = 256  # bounds the memory: so many queries times all documents


def graph_hops(dataset: Dataset, pairs: Sequence[tuple[str, str]]) -> list[int | None]:
    """Return for each pair of query and document id the least ``max_hops`` that reaches it.

    The graph and the names that walks start from are those that the built-in engine would build
    and choose by default; none of its settings reaches a document for which this is None.
    """
    from tuner.retrieval.hybrid.graph import build_graph
    from tuner.retrieval.hybrid.seeds import build_lookup

    documents = sorted(dataset.corpus.documents, key=lambda document: document.id)
    column = {document.id: position for position, document in enumerate(documents)}
    graph = build_graph(dataset.corpus, documents)
    lookup = build_lookup(graph, documents)
    texts = {query.id: query.text for query in dataset.queries}
    wanted: dict[str, list[str]] = {}
    for query, id_ in pairs:
        if id_ in column:
            wanted.setdefault(query, []).append(id_)
    queries = list(wanted)
    found: dict[tuple[str, str], int] = {}
    for start in range(0, len(queries), _AT_ONCE):
        batch = queries[start : start + _AT_ONCE]
        for hops, reached in enumerate(_reached(graph, lookup, [texts[q] for q in batch]), 1):
            for row, query in enumerate(batch):
                for id_ in wanted[query]:
                    if reached[row, column[id_]]:
                        found.setdefault((query, id_), hops)
    return [found.get(pair) for pair in pairs]


def _reached(graph: Any, lookup: Any, texts: Sequence[str]) -> list[Any]:
    """Return, for 1 hop and more, which passages walks from each text reach."""
    import numpy as np
    from scipy import sparse

    from tuner.retrieval.hybrid.options import HybridOptions
    from tuner.retrieval.hybrid.propagation import MOST_HOPS

    seeds = HybridOptions().seeds
    to_passages, to_entities = (
        (matrix != 0).astype(np.int32) for matrix in (graph.to_passages, graph.to_entities)
    )
    places = [(row, e) for row, t in enumerate(texts) for e in lookup.candidates(t, count=seeds)[0]]
    rows, entities = np.array(places, dtype=np.int64).reshape(-1, 2).T
    starts = sparse.csr_array(
        (np.ones(len(places), dtype=np.int32), (rows, entities)),
        shape=(len(texts), len(graph.names)),
    )
    steps = []
    for _ in range(MOST_HOPS):
        passages = ((starts @ to_passages) > 0).astype(np.int32)
        steps.append(passages.toarray())
        starts = ((passages @ to_entities) > 0).astype(np.int32)
    return steps
