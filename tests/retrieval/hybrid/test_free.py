"""What the engine declares free is so: an answer that is computed is the one that it gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tuner.core.corpus import Query
from tuner.retrieval.computed import answer_at
from tuner.retrieval.hybrid.prepared import open_prepared

NAMES = ("graph_weight", "top_k")
OPTIONS = {
    "plain": {},
    "vectors": {"embedder": "lsa"},
    "passages": {"chunk_tokens": 4},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@pytest.mark.parametrize("more", [{}, {"max_hops": 4, "passage_weight": 0.5, "temperature": 1.0}])
def test_an_answer_at_other_values_is_the_one_that_the_engine_gives(
    build, corpus, queries, options, more
):
    engine = build(corpus, **options).telling_legs()
    asked = [*queries, Query("n", "of the sea by the river")]  # no name, so the graph is silent
    engine.prepare(asked)
    free = engine.free_knobs({}, NAMES)
    answer = engine.retrieve(asked, {**more, "graph_weight": 0.5, "top_k": 20})
    assert more or not answer.legs.scores[0].any(axis=1).all()
    for weight in (0.0, 1e-9, 0.123, 0.5, 0.75, 1.0):
        for top_k in (1, 3, 20):
            params = {**more, "graph_weight": weight, "top_k": top_k}
            computed, given = answer_at(free, answer, params), engine.retrieve(asked, params)
            assert [computed.ids(row) for row in range(6)] == [given.ids(row) for row in range(6)]
            np.testing.assert_array_equal(computed.scores, given.scores)
            np.testing.assert_array_equal(computed.context_tokens, given.context_tokens)
            np.testing.assert_array_equal(computed.graph_used, given.graph_used)


def test_legs_are_told_where_they_are_wanted_alone(build, corpus, queries):
    engine = build(corpus)
    engine.prepare(queries)
    assert engine.retrieve(queries, {}).legs is None
    wanted = engine.telling_legs()
    assert wanted.fingerprint == engine.fingerprint
    assert wanted.retrieve(queries, {}).legs.names == ("graph", "text")
    assert wanted.retrieve(queries, {"rerank": "lexical"}).legs is None
    assert open_prepared.cache_info().hits  # prepared work is shared by both


def test_what_orders_passages_anew_leaves_the_weight_no_mere_weight(build, corpus):
    engine = build(corpus)
    assert engine.free_knobs({}, NAMES).names == ("top_k", "graph_weight")
    assert engine.free_knobs({"rerank": "lexical"}, NAMES).names == ("top_k",)
    assert engine.free_knobs({}, (*NAMES, "rerank")).names == ("top_k",)
    assert engine.free_knobs({}, NAMES).only(["graph_weight"]).names == ("graph_weight",)
    options = replace(engine.options, rerank="lexical")
    assert replace(engine, options=options).free_knobs({}, NAMES).names == ("top_k",)
