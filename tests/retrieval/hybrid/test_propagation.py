"""Walks are the same numbers, to the last digit, whichever way their products are made."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from tuner.retrieval.hybrid import prepared, propagation
from tuner.retrieval.hybrid.columns import Texts
from tuner.retrieval.hybrid.graph import Graph
from tuner.retrieval.hybrid.propagation import Roads, walks


def rows_to_one(matrix):
    totals = np.repeat(matrix.sum(axis=1), np.diff(matrix.indptr))
    data = (matrix.data / totals).astype(np.float32)
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


@pytest.fixture
def graph():
    random = np.random.default_rng(3)
    links = sparse.csr_array(
        random.random((50, 60)) * (random.random((50, 60)) < 0.1) + np.eye(50, 60)
    )
    linked = np.flatnonzero(links.sum(axis=0))
    links = sparse.csr_array(links[:, linked])
    return Graph(
        Texts.of(map(str, linked)),
        np.bincount(links.indices),
        rows_to_one(sparse.csr_array(links.T)),
        rows_to_one(links),
    )


def seeds_of(graph, count):
    return sparse.csr_array(np.eye(count, len(graph.names), dtype=np.float32))


@pytest.mark.parametrize("hubs", [0, 5, 1000])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.8, 2.0])
def test_rows_picked_out_and_names_in_another_order_change_nothing(graph, monkeypatch, share, hubs):
    seeds = seeds_of(graph, 4)
    monkeypatch.setattr(propagation, "MOST_PICKED", 0.0)
    expected = list(walks(graph, seeds, hops=6))
    monkeypatch.setattr(propagation, "MOST_PICKED", share)
    monkeypatch.setattr(propagation, "HUBS", hubs)
    for roads in (None, Roads.ordered(graph)):
        found = list(walks(graph, seeds, hops=6, roads=roads))
        assert len(found) == 6
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_walks_go_where_the_matrices_say(graph):
    at = np.eye(4, len(graph.names))
    to_passages, to_entities = graph.to_passages.toarray(), graph.to_entities.toarray()
    expected = at @ to_passages
    for found in walks(graph, seeds_of(graph, 4), hops=4):
        np.testing.assert_allclose(found.T, expected, rtol=1e-4, atol=1e-7)
        expected = expected @ to_entities @ to_passages


def test_no_seed_leads_nowhere(graph):
    nobody = sparse.csr_array((2, len(graph.names)), dtype=np.float32)
    for found in walks(graph, nobody, hops=3):
        assert found.shape == (50, 2)
        assert not found.any()


def test_a_corpus_that_no_cache_holds_is_prepared_with_the_same_numbers(
    build, corpus, queries, monkeypatch, tmp_path
):
    index = build(corpus)._index()
    for name, limit in (("usual", 10**9), ("large", 0)):
        monkeypatch.setattr(prepared, "_BEYOND_CACHE", limit)
        (tmp_path / name).mkdir()
        prepared.write_prepared(tmp_path / name, index, queries)
    files = sorted(path.name for path in (tmp_path / "usual").iterdir())
    assert "graph.npy" in files
    for name in files:
        usual, large = (tmp_path / folder / name for folder in ("usual", "large"))
        assert usual.read_bytes() == large.read_bytes()
