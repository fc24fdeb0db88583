"""Measure what share of the relevant documents a retriever could find, by words or by a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tuner.datasets.dataset import Dataset
from tuner.evalset.statistics import relevant_documents

Walk = Callable[[Dataset, Sequence[tuple[str, str]]], list[int | None]]
"""Takes pairs of query and document id; returns the fewest hops from one to the other, or None."""

_AT_ONCE = 256  # bounds the memory: so many queries times all documents


@dataclass(frozen=True)
class Reach:
    """Shares of a query's relevant documents, averaged over queries as recall is, in [0, 1].

    Each is the highest recall, at any depth, of what is named. None where no query has a relevant
    document.

    Attributes:
        in_corpus: of any retriever: the document is in the corpus.
        by_words: of matching words: query and document have an index term in common.
        by_graph: hops -> of walks of so many hops at most through a graph of names.
        by_either: hops -> of both together: a document that no such walk reaches may share a
            term, and the other way round. Only vectors may find the others.
    """

    in_corpus: float | None
    by_words: float | None
    by_graph: Mapping[int, float | None]
    by_either: Mapping[int, float | None]


def reach_of(dataset: Dataset) -> Reach | None:
    """Measure the reach of words and of the built-in engine's graph; None without a corpus."""
    if not dataset.corpus.documents:
        return None
    from tuner.retrieval.hybrid.options import MOST_HOPS
    from tuner.retrieval.hybrid.text import analyse

    return measure_reach(
        dataset,
        relevant_documents(dataset),
        terms_of=analyse,
        walk=graph_hops,
        most_hops=MOST_HOPS,
    )


def measure_reach(
    dataset: Dataset,
    gold: Mapping[str, Sequence[str]],
    *,
    terms_of: Callable[[Iterable[str]], list[list[str]]],
    walk: Walk,
    most_hops: int,
) -> Reach:
    """Measure reach; ``gold`` is query id -> relevant documents, ``terms_of`` gives index terms."""
    pairs = [(query, id_) for query, ids in gold.items() for id_ in ids]
    documents = {document.id: document for document in dataset.corpus.documents}
    wanted = sorted({id_ for _, id_ in pairs} & documents.keys())
    texts = [f"{documents[id_].title} {documents[id_].text}" for id_ in wanted]
    terms = dict(zip(wanted, map(set, terms_of(texts)), strict=True))
    asked = terms_of(query.text for query in dataset.queries)
    terms_asked = {
        query.id: set(found) for query, found in zip(dataset.queries, asked, strict=True)
    }
    shares = [not terms_asked[query].isdisjoint(terms.get(id_, ())) for query, id_ in pairs]
    hops = walk(dataset, pairs)
    within = {
        most: [found is not None and found <= most for found in hops]
        for most in range(1, most_hops + 1)
    }

    def mean(claims: Sequence[bool]) -> float | None:
        return _mean(gold, pairs, claims)

    return Reach(
        in_corpus=mean([id_ in documents for _, id_ in pairs]),
        by_words=mean(shares),
        by_graph={most: mean(walked) for most, walked in within.items()},
        by_either={
            most: mean([a or b for a, b in zip(shares, walked, strict=True)])
            for most, walked in within.items()
        },
    )


def _mean(
    gold: Mapping[str, Sequence[str]], pairs: Sequence[tuple[str, str]], claims: Sequence[bool]
) -> float | None:
    """Return the mean over queries of the share of their documents for which the claim holds."""
    found = dict.fromkeys(gold, 0)
    for (query, _), holds in zip(pairs, claims, strict=True):
        found[query] += holds
    each = [found[query] / len(ids) for query, ids in gold.items() if ids]
    return sum(each) / len(each) if each else None


def graph_hops(dataset: Dataset, pairs: Sequence[tuple[str, str]]) -> list[int | None]:
    """Return for each pair of query and document id the least ``max_hops`` that reaches it.

    The graph and the names that walks start from are those that the built-in engine would build
    and choose by default; none of its settings reaches a document for which this is None.
    """
    from tuner.retrieval.hybrid.graph import build_graph
    from tuner.retrieval.hybrid.options import HybridOptions
    from tuner.retrieval.hybrid.seeds import build_lookup
    from tuner.retrieval.hybrid.words import Words

    documents = sorted(dataset.corpus.documents, key=lambda document: document.id)
    column = {document.id: position for position, document in enumerate(documents)}
    words = Words.of(documents)
    graph = build_graph(dataset.corpus, documents, words, HybridOptions())
    lookup = build_lookup(graph, documents, words)
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

    from tuner.retrieval.hybrid.options import MOST_HOPS, HybridOptions

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
