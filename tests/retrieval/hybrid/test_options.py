"""Which knobs and build options exist, and what is said about wrong ones."""

from __future__ import annotations

import numpy as np
import pytest

from tuner.core.corpus import Query
from tuner.core.errors import InputError


def test_the_knobs(build, corpus):
    knobs = {knob.name: (knob.low, knob.high, knob.default) for knob in build(corpus).knobs}
    assert knobs == {
        "graph_weight": (0.0, 1.0, 0.5),
        "max_hops": (1, 6, 2),
        "top_k": (1, 100, 10),
        "temperature": (0.001, 10.0, 0.1),
        "seeds": (1, 8, 8),
        "dense_weight": (0.0, 1.0, 0.5),
        "hop_decay": (0.05, 1.0, 0.7),
        "passage_weight": (0.0, 2.0, 0.0),
        "rerank": (None, None, "none"),
        "rerank_depth": (2, 100, 20),
        "bm25_k1": (0.01, 10.0, 1.5),
        "bm25_b": (0.0, 1.0, 0.75),
        "chunk_tokens": (0, 2000, 0),
        "chunk_overlap": (0, 1000, 0),
        "names": (None, None, "both"),
        "hub_cut": (0.001, 1.0, 0.02),
        "edge_weight": (0.1, 100.0, 10.0),
        "synonym_threshold": (0.0, 1.0, 0.0),
        "embedder": (None, None, "none"),
        "embedding_dim": (0, 4096, 0),
    }


def test_what_an_option_sets_is_the_default_of_its_knob(build, corpus, queries):
    engine = build(corpus, bm25_k1=20, seeds=3, most_seeds=12)
    knobs = {knob.name: (knob.low, knob.high, knob.default) for knob in engine.knobs}
    assert knobs["bm25_k1"] == (0.01, 20, 20)
    assert knobs["seeds"] == (1, 12, 3)
    usual = engine.retrieve(queries, {})
    np.testing.assert_array_equal(usual.scores, engine.retrieve(queries, {"seeds": 3}).scores)


def test_walks_are_prepared_as_far_as_they_can_be_tuned(build, corpus, queries):
    far, near = build(corpus), build(corpus, most_hops=2)
    assert {k.name: (k.low, k.high, k.default) for k in near.knobs}["max_hops"] == (1, 2, 2)
    for engine, hops in ((far, 6), (near, 2)):
        engine.prepare(queries)
        (prepared,) = engine.directory.parent.glob("queries-*/graph.npy")
        assert len(np.load(prepared)) == hops
    for hops in (1, 2):  # of so few passages all are kept
        ask = {"max_hops": hops, "graph_weight": 1.0}
        first, second = far.retrieve(queries, ask), near.retrieve(queries, ask)
        np.testing.assert_array_equal(first.scores, second.scores)
        alone = [near.serve(query, ask).ids(0) for query in queries]
        assert [second.ids(row) for row in range(len(queries))] == alone
    with pytest.raises(InputError, match=r"3 is outside what .max_hops. can be: 1 to 2"):
        near.retrieve(queries, {"max_hops": 3})
    (only,) = [k for k in build(corpus, most_hops=1).knobs if k.name == "max_hops"]
    assert (only.high, only.default) == (1, 1)


def test_a_knob_of_the_index_takes_the_value_of_the_index_alone(build, corpus, queries):
    engine = build(corpus, bm25_b=0.25)
    own = {"bm25_b": 0.25, "bm25_k1": np.float64(1.5)}
    usual, named = engine.retrieve(queries, {}), engine.retrieve(queries, own)
    np.testing.assert_array_equal(usual.documents, named.documents)
    assert engine.serve(queries[0], own).ids(0) == engine.serve(queries[0], {}).ids(0)
    message = "bm25_b=0.75 needs another index: this one has bm25_b=0.25"
    for ask in (
        lambda: engine.retrieve(queries, {"bm25_b": 0.75}),
        lambda: engine.serve(queries[0], {"bm25_b": 0.75}),
        lambda: engine.explain(queries, {"bm25_b": 0.75}, usual),
    ):
        with pytest.raises(InputError, match=message):
            ask()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"graph_wieght": 0.5}, "no parameter 'graph_wieght'; did you mean 'graph_weight'?"),
        ({"graph_weight": 1.5}, "graph_weight: 1.5 is outside what 'graph_weight' can be: 0 to 1"),
        ({"max_hops": 0}, "max_hops: 0 is outside what 'max_hops' can be: 1 to 6"),
        ({"max_hops": 1.5}, "max_hops: 1.5 is not a whole number"),
        ({"top_k": 101}, "top_k: 101 is outside what 'top_k' can be: 1 to 100"),
        ({"top_k": True}, "top_k: True is not a number"),
        (
            {"temperature": 0.0},
            "temperature: 0.0 is outside what 'temperature' can be: 0.001 to 10",
        ),
        ({"temperature": float("nan")}, "temperature: nan is not a finite number"),
        ({"temperature": "hot"}, "temperature: 'hot' is not a number"),
    ],
)
def test_wrong_parameters(build, corpus, queries, params, message):
    engine = build(corpus)
    with pytest.raises(InputError, match=message):
        engine.retrieve(queries, params)
    with pytest.raises(InputError, match=message):
        engine.serve(Query("q", "tea"), params)


def test_all_that_is_wrong_is_said_at_once(build, corpus, queries):
    with pytest.raises(InputError) as caught:
        build(corpus).retrieve(queries, {"top_k": 0, "max_hops": 9})
    assert len(caught.value.problems) == 2


def test_numbers_of_numpy_are_numbers(build, corpus, queries):
    engine = build(corpus)
    plain = engine.retrieve(queries, {"top_k": 3, "graph_weight": 0.25, "max_hops": 2.0})
    numpy = engine.retrieve(queries, {"top_k": np.int64(3), "graph_weight": np.float64(0.25)})
    np.testing.assert_array_equal(plain.documents, numpy.documents)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bm25_k": 1.2}, "bm25_k: unknown option of the hybrid retriever; did you mean 'bm25_k1'"),
        ({"bm25_k1": 0}, "bm25_k1=0 must be at least"),
        ({"bm25_b": 1.1}, r"bm25_b=1.1 is outside \[0, 1\]"),
        ({"seeds": 0}, r"seeds=0 is outside \[1, 64\]"),
        ({"seeds": "8"}, "seeds: '8' is text"),
        ({"seeds": 9, "most_seeds": 8}, "most_seeds: must be at least seeds=9, got 8"),
        ({"most_seeds": 65}, r"most_seeds=65 is outside \[1, 64\]"),
        ({"most_hops": 7}, r"most_hops=7 is outside \[1, 6\]"),
        ({"text_pool": 10}, "text_pool=10 must be at least 100"),
        ({"dense_weight": 0.5}, "dense_weight needs dense vectors"),
        ({"names": "title"}, "names: 'title' is not one of titles, triples, both"),
        ({"hub_cut": 2}, r"hub_cut=2 is outside \[0, 1\]"),
        ({"edge_weight": 0}, "edge_weight=0 must be at least"),
        ({"embedder": 3}, "embedder: must be a name, got 3"),
        ({"embedder": "nowhere_at_all:embed"}, "cannot import the embedder 'nowhere_at_all:embed'"),
        ({"embedding_dim": -1}, "embedding_dim=-1 must be at least 0"),
        ({"dense": "model"}, "dense: got 'model'; write {model: name}"),
        ({"dense": {}}, "dense: got nothing; write {model: name}"),
        ({"dense": {"matrix": "a.npy"}}, "dense: got matrix; write"),
        ({"dense": {"modle": "x"}}, "dense.modle: unknown option; did you mean 'model'"),
        ({"dense": {"model": 3}}, "dense.model: must be a name or path, got 3"),
    ],
)
def test_wrong_build_options(build, corpus, options, message):
    with pytest.raises(InputError, match=message):
        build(corpus, **options)


def test_options_change_the_fingerprint_and_the_answer(build, corpus, queries):
    usual, other = build(corpus), build(corpus, bm25_b=0.0)
    assert usual.fingerprint != other.fingerprint
    assert usual.fingerprint == build(corpus, bm25_b=0.75).fingerprint
    scores = [e.retrieve(queries, {"graph_weight": 0.0}).scores for e in (usual, other)]
    assert not np.array_equal(*scores)
