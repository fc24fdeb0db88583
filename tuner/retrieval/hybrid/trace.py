"""Traces: which names and paths of the graph led to the passages that were returned.

Worked out on request from the passages, not kept during retrieval: a trial that no metric asks for
names or paths does not pay for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tuner.core.corpus import Corpus, Query
from tuner.core.rankings import NO_DOCUMENT, FloatArray, IntArray, Step
from tuner.core.words import name_words
from tuner.retrieval.hybrid.graph import Graph
from tuner.retrieval.hybrid.index import Index
from tuner.retrieval.hybrid.knobs import Settings

MOST_NAMES = 50
"""Names that a query reports at most."""
MOST_ROUTES = 50
"""Paths of each length that a query follows at most: the most likely ones."""

Relations = Mapping[tuple[str, str], str]
"""What the corpus calls the relation from one name to another; of several, the first."""

_FILE = "relations.json"


def write_relations(directory: Path, corpus: Corpus) -> None:
    """Keep the names of the corpus's relations beside its index."""
    found: dict[tuple[str, str], str] = {}
    for triple in corpus.triples:
        pair = (" ".join(name_words(triple.subject)), " ".join(name_words(triple.object)))
        found.setdefault(pair, triple.relation)
    rows = [[subject, relation, object_] for (subject, object_), relation in found.items()]
    (directory / _FILE).write_text(json.dumps(rows), encoding="utf-8")


@lru_cache(maxsize=4)
def read_relations(directory: Path) -> Relations:
    """Read what ``write_relations`` wrote, once a process; nothing where there is no such file."""
    path = directory / _FILE
    rows = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    return {(subject, object_): relation for subject, relation, object_ in rows}


def trace(
    index: Index,
    relations: Relations,
    queries: Sequence[Query],
    documents: IntArray,
    *,
    settings: Settings,
) -> Iterator[tuple[list[str], list[tuple[Step, ...]]]]:
    """Yield for each query its names and its paths, best first.

    Only walks through the returned passages count: from a seed, or a name of the best passage by
    text where walks start there too, to a passage that mentions it and on to another name there,
    up to ``max_hops`` times. Names are ranked by the walks' weight that
    reaches them, discounted by hop as passages are; paths by the weight that follows them. A step
    has the corpus's relation between the two names, or "" where it names none.

    ``documents`` has shape (queries, depth), positions in the index.
    """
    passages = None
    if settings.passage_weight > 0:
        passages = index.best_passages(*index.text_parts(list(queries)))
    starts = index.starts([query.text for query in queries], settings, passages)
    starts.sort_indices()
    max_hops = settings.max_hops
    for row, returned in enumerate(documents):
        span = slice(starts.indptr[row], starts.indptr[row + 1])
        is_seed = starts.data[span] > 0
        members, start, steps = _neighbourhood(
            index.graph,
            index.passages_of(returned[returned != NO_DOCUMENT]),
            starts.indices[span][is_seed],
            starts.data[span][is_seed],
        )
        names = [index.graph.names[entity] for entity in members.tolist()]
        reached = [names[place] for place in _reached(start, steps, max_hops, settings.hop_decay)]
        routes = _routes(start, steps, max_hops)
        yield reached, [_path(route, names, relations) for route in routes]


def _neighbourhood(
    graph: Graph,
    documents: IntArray,
    seeds: npt.NDArray[np.signedinteger],
    weights: npt.NDArray[np.floating],
) -> tuple[IntArray, FloatArray, npt.NDArray[np.float32]]:
    """Return the names at hand, each one's weight as a seed, and the steps between them."""
    mentioned = graph.to_entities[documents]
    members = np.union1d(seeds, mentioned.indices).astype(np.int64)
    start = np.zeros(len(members))
    start[np.searchsorted(members, seeds)] = weights
    to_passages = graph.to_passages[members][:, documents].toarray()
    steps = to_passages @ mentioned[:, members].toarray()
    np.fill_diagonal(steps, 0.0)
    return members, start, steps


def _reached(
    start: FloatArray, steps: npt.NDArray[np.float32], max_hops: int, decay: float
) -> IntArray:
    mass, total = start, start.copy()
    for _ in range(max_hops):
        mass = decay * (mass @ steps)
        total += mass
    # Rounded, because equal sums that were added up in another order differ in the last digit.
    best = np.argsort(-np.round(total, 12), kind="stable")[:MOST_NAMES]
    return best[total[best] > 0]


def _routes(
    start: FloatArray, steps: npt.NDArray[np.float32], max_hops: int
) -> list[tuple[int, ...]]:
    """Return the most likely routes of 1 to ``max_hops`` steps that meet no name twice."""
    routes = np.flatnonzero(start)[:, None]
    weights = start[routes[:, 0]]
    found: list[tuple[float, tuple[int, ...]]] = []
    for _ in range(max_hops):
        grown = weights[:, None] * steps[routes[:, -1]]
        np.put_along_axis(grown, routes, 0.0, axis=1)
        flat = np.round(grown.ravel(), 15)
        best = np.argsort(-flat, kind="stable")[:MOST_ROUTES]
        best = best[flat[best] > 0]
        origins, ends = np.divmod(best, max(len(start), 1))
        routes = np.concatenate([routes[origins], ends[:, None]], axis=1)
        weights = flat[best]
        found += zip(weights.tolist(), map(tuple, routes.tolist()), strict=True)
    found.sort(key=lambda pair: -pair[0])
    return [route for _, route in found]


def _path(route: tuple[int, ...], names: Sequence[str], relations: Relations) -> tuple[Step, ...]:
    pairs = ((names[a], names[b]) for a, b in pairwise(route))
    return tuple(
        (subject, relations.get((subject, object_), ""), object_) for subject, object_ in pairs
    )
