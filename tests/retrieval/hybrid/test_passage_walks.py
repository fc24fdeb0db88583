"""Walks that start from the passage which text ranks first."""

from __future__ import annotations

import numpy as np

from tuner.core.corpus import Document, Query

# The question's words lead to the first passage alone, and its name to no passage.
DOCUMENTS = [
    Document("1", "", "the old ferry was painted by Ada Holm"),
    Document("2", "Ada Holm", "born in the north"),
    Document("3", "Lissa", "a town with a mill"),
]
QUERIES = [Query("q", "where was the painter of that old ferry painted")]
GRAPH = {"graph_weight": 0.5, "max_hops": 2}


def test_the_best_passage_leads_to_what_it_names(build):
    engine = build(DOCUMENTS)
    assert engine.retrieve(QUERIES, GRAPH).ids(0) == ["1"]
    found = engine.retrieve(QUERIES, {**GRAPH, "passage_weight": 0.5})
    assert found.ids(0) == ["1", "2"]
    assert found.graph_used is not None
    assert found.graph_used.all()


def test_prepared_queries_say_the_same(build):
    engine = build(DOCUMENTS)
    settings = [{**GRAPH, "passage_weight": weight} for weight in (0.0, 0.5)]
    live = [engine.retrieve(QUERIES, each) for each in settings]
    engine.prepare(QUERIES)
    for each, expected in zip(settings, live, strict=True):
        found = engine.retrieve(QUERIES, each)
        assert found.ids(0) == expected.ids(0)
        np.testing.assert_array_equal(found.graph_used, expected.graph_used)


def test_what_walks_from_passages_bring_counts_for_them_alone(build):
    """Pools of 100 and 100 leave room for what neither names nor words find."""
    names = [f"Town{n:03}" for n in range(300)]
    documents = [
        Document(f"{n:03}", name, f"word{n % 150} and {names[(n * 7 + 1) % 300]}")
        for n, name in enumerate(names)
    ]
    engine = build(documents, text_pool=100, graph_pool=100)
    queries = [Query(str(n), f"word{n} Town{n:03}") for n in range(5)]
    few = {"graph_weight": 1.0, "max_hops": 2, "top_k": 100}
    live = [engine.retrieve(queries, {**few, "passage_weight": weight}) for weight in (0.0, 1.0)]
    engine.prepare(queries)
    for weight, expected in zip((0.0, 1.0), live, strict=True):
        found = engine.retrieve(queries, {**few, "passage_weight": weight})
        for row in range(len(queries)):
            assert found.ids(row) == expected.ids(row)


def test_walks_from_the_best_passage_are_told(build):
    engine = build(DOCUMENTS)
    engine.prepare(QUERIES)
    params = {**GRAPH, "passage_weight": 0.5}
    told = engine.explain(QUERIES, params, engine.retrieve(QUERIES, params))
    assert told.entities == [["ada holm"]]
    without = engine.explain(QUERIES, GRAPH, engine.retrieve(QUERIES, GRAPH))
    assert without.entities == [[]]


def test_what_walks_from_passages_weigh_decides_their_place(build):
    documents = [
        Document("1", "Holm", "the red ferry from Holm goes daily to Lissa"),
        Document("2", "Lissa", "a town with a mill"),
        Document("3", "Brenna", "the mill of Brenna"),
    ]
    engine = build(documents)
    queries = [Query("q", "Which red ferry goes daily to Brenna?")]

    def names(weight):
        params = {"graph_weight": 0.5, "top_k": 3, "passage_weight": weight}
        return engine.explain(queries, params, engine.retrieve(queries, params)).entities[0]

    assert names(0.0) == ["brenna"]
    assert names(0.1)[0] == "brenna"
    assert set(names(0.1)) == set(names(2.0)) > {"brenna"}
