"""Walks are the same numbers, to the last digit, by sparse and by dense products."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tuner.retrieval.hybrid import propagation
from tuner.retrieval.hybrid.columns import Texts
from tuner.retrieval.hybrid.graph import Graph


def rows_to_one(random, shape):
    matrix = sparse.csr_array(random.random(shape) * (random.random(shape) < 0.1) + np.eye(*shape))
    totals = np.repeat(matrix.sum(axis=1), np.diff(matrix.indptr))
    matrix.data = (matrix.data / totals).astype(np.float32)
    return matrix


def test_thin_walks_are_as_dense_ones(monkeypatch):
    random = np.random.default_rng(3)
    to_passages, to_entities = rows_to_one(random, (60, 50)), rows_to_one(random, (50, 60))
    names = Texts.of(map(str, range(60)))
    graph = Graph(names, np.ones(60, dtype=np.int64), to_passages, to_entities)
    seeds = sparse.csr_array(np.eye(4, 60, dtype=np.float32))
    monkeypatch.setattr(propagation, "THIN", 0.0)
    dense = list(propagation.cumulative_scores(graph, seeds, hops=6))
    for limit in (0.05, 0.3, 2.0):
        monkeypatch.setattr(propagation, "THIN", limit)
        thin = propagation.cumulative_scores(graph, seeds, hops=6)
        for one, other in zip(thin, dense, strict=True):
            np.testing.assert_array_equal(one, other)


def test_row_by_row_the_numbers_are_the_same():
    random = np.random.default_rng(4)
    graph = Graph(
        Texts.of(map(str, range(60))),
        np.ones(60, dtype=np.int64),
        rows_to_one(random, (60, 50)),
        rows_to_one(random, (50, 60)),
    )
    seeds = sparse.csr_array(np.eye(4, 60, dtype=np.float32))
    usual = propagation.cumulative_scores(graph, seeds, hops=6)
    by_rows = graph.to_passages.T.tocsr()
    other = propagation.cumulative_scores(graph, seeds, hops=6, from_entities=by_rows)
    for one, another in zip(usual, other, strict=True):
        np.testing.assert_array_equal(one, another)
