"""An account of the engine's answer: each leg's part in it, the names, and the walks from them.

Worked out from the index for one query, when somebody asks why; a trial pays nothing for it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tuner.core.account import Account, LegGiven, Start, Walk
from tuner.core.corpus import Query
from tuner.core.rankings import Float32Array, FloatArray, IntArray, Rankings, Step
from tuner.retrieval.hybrid.fusion import fuse, normalise_graph, normalise_text
from tuner.retrieval.hybrid.index import Index
from tuner.retrieval.hybrid.knobs import Settings
from tuner.retrieval.hybrid.mixture import mixed, passage_weights
from tuner.retrieval.hybrid.rerank import NONE
from tuner.retrieval.hybrid.seeds import softmax
from tuner.retrieval.hybrid.trace import Relations
from tuner.retrieval.hybrid.walks import Way, Ways

MOST_WALKS = 3
"""Walks that are told of each passage."""


def account(
    index: Index, relations: Relations, query: Query, rankings: Rankings, settings: Settings
) -> Account:
    """Return how the engine's answer to ``query``, the first of ``rankings``, came about."""
    lexical, dense = index.text_parts([query])
    text = lexical
    if dense is not None:
        text = normalise_text(mixed(lexical, dense, settings.dense_weight))
    starts, sources = _starts(index, query, settings, lexical, dense)
    raw = None
    if settings.graph_weight > 0:
        best = index.best_passages(lexical, dense) if settings.passage_weight > 0 else None
        raw = index.graph_scores([query.text], settings, best)
    graph = text if raw is None else normalise_graph(raw)
    is_silent = raw is None or not bool(raw.any())
    fused = fuse(graph, text, settings.graph_weight)[0]
    passages = _passages(index, rankings, fused)
    weight = 0.0 if is_silent else settings.graph_weight
    of_text = (1.0 - weight) * text[0, passages].astype(np.float64)
    legs = _text_legs(lexical, dense, of_text, passages, settings)
    if raw is not None:
        scores = graph[0, passages].astype(np.float64)
        legs["graph"] = LegGiven(scores, weight * scores)
    remarks = []
    if is_silent and raw is not None:
        remarks.append("no name of the graph was recognised, so the text alone counts")
    if settings.rerank != NONE:
        remarks.append(f"the passages were ordered anew by the reranker {settings.rerank!r}")
    return Account(
        legs,
        mixed=None if settings.rerank == NONE else fused[passages].astype(np.float64),
        starts=None if raw is None else starts,
        walks=None
        if raw is None
        else _walks(index, relations, settings, (starts, sources), raw[0], passages),
        remarks=tuple(remarks),
    )


def _text_legs(
    lexical: Float32Array,
    dense: Float32Array | None,
    of_text: FloatArray,
    passages: IntArray,
    settings: Settings,
) -> dict[str, LegGiven]:
    """Return what words gave, and what vectors did: each by its share in the mixture of both."""
    words = lexical[0, passages].astype(np.float64)
    if dense is None:
        return {"text": LegGiven(words, of_text)}
    vectors = dense[0, passages].astype(np.float64)
    by_words = (1.0 - settings.dense_weight) * words
    both = by_words + settings.dense_weight * vectors
    share = np.divide(by_words, both, out=np.zeros_like(both), where=both > 0)
    return {
        "text": LegGiven(words, of_text * share),
        "dense": LegGiven(vectors, of_text * (1.0 - share)),
    }


def _passages(index: Index, rankings: Rankings, fused: Float32Array) -> IntArray:
    """Return the passage that stands for each document of the answer."""
    ids = index.document_ids
    found = []
    for column, id_ in enumerate(rankings.ids(0)):
        own = index.passages_of(np.array([bisect_left(ids, id_)], dtype=np.int64))
        if index.spans is not None and rankings.spans is not None:
            is_it = (index.spans[own] == rankings.spans[0, column]).all(axis=1)
            own = own[is_it] if is_it.any() else own
        found.append(int(own[np.argmax(fused[own])]))
    return np.array(found, dtype=np.int64)


def _starts(
    index: Index,
    query: Query,
    settings: Settings,
    lexical: Float32Array,
    dense: Float32Array | None,
) -> tuple[tuple[Start, ...], list[FloatArray]]:
    """Return where walks start, and for each start what they count at each entity."""
    entities, scores = index.candidates([query.text], count=settings.seeds)
    weights = softmax(scores, settings.temperature)[0]
    found: list[tuple[Start, FloatArray]] = []
    for entity, counted in zip(entities[0].tolist(), weights.tolist(), strict=True):
        if np.float32(counted) > 0:  # the engine adds up in 32 bits
            at = np.zeros(len(index.graph.names))
            at[entity] = counted
            found.append((Start(index.graph.names[entity], "", counted), at))
    if settings.passage_weight > 0:
        best = index.best_passages(lexical, dense)[0]
        weights = passage_weights(settings, len(best))
        for passage in dict.fromkeys(best.tolist()):  # words and vectors may agree
            counted = float(weights[best == passage].sum())
            if passage >= 0 and counted > 0:
                row = index.graph.to_entities[[passage]].toarray()[0].astype(np.float64)
                found.append((Start("", _document(index, passage), counted), counted * row))
    found.sort(key=lambda pair: -pair[0].weight)
    return tuple(start for start, _ in found), [at for _, at in found]


def _walks(
    index: Index,
    relations: Relations,
    settings: Settings,
    begun: tuple[tuple[Start, ...], list[FloatArray]],
    raw: Float32Array,
    passages: IntArray,
) -> tuple[tuple[Walk, ...], ...]:
    starts, sources = begun
    if not starts:
        return tuple(() for _ in passages)
    ways = Ways(index.graph, sources, settings.max_hops, settings.hop_decay)
    return tuple(
        tuple(
            _walk(index, relations, starts[way.start], way, float(raw[passage]))
            for way in (ways.best(passage, MOST_WALKS) if raw[passage] > 0 else ())
        )
        for passage in passages.tolist()
    )


def _walk(index: Index, relations: Relations, start: Start, way: Way, total: float) -> Walk:
    names = tuple(index.graph.names[entity] for entity in way.names)
    return Walk(
        names,
        tuple(_document(index, passage) for passage in way.passages),
        tuple(_relation(relations, *pair) for pair in pairwise(names)),
        start.passage,
        min(way.weight / total, 1.0),
    )


def _relation(relations: Relations, first: str, second: str) -> Step | None:
    for subject, object_ in ((first, second), (second, first)):
        if (subject, object_) in relations:
            return subject, relations[subject, object_], object_
    return None


def _document(index: Index, passage: int) -> str:
    owners: Sequence[int] | IntArray | None = index.owners
    return index.document_ids[passage if owners is None else int(owners[passage])]
