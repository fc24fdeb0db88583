"""The names and paths that the engine reports: those its walks took through returned passages."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuner.core.corpus import Corpus, Document, Query, Triple
from tuner.datasets import Evidence
from tuner.evaluation.evaluator import Evaluator
from tuner.retrieval.base import Explains
from tuner.retrieval.hybrid import Hybrid

DOCUMENTS = (
    Document("1", "Marie Curie", "Marie Curie was born in Warsaw."),
    Document("2", "Warsaw", "Warsaw lies on the river Vistula."),
    Document("3", "Vistula", "The Vistula flows into the Baltic Sea."),
    Document("4", "Lima", "Lima is the capital of Peru."),
)
TRIPLES = (
    Triple("1", "Marie Curie", "born in", "Warsaw"),
    Triple("2", "Warsaw", "lies on", "Vistula"),
    Triple("3", "Vistula", "flows into", "Baltic Sea"),
    Triple("4", "Lima", "capital of", "Peru"),
)
QUERIES = (Query("q", "Into which sea flows the river of Marie Curie's city of birth?"),)
BORN = ("marie curie", "born in", "warsaw")
LIES = ("warsaw", "lies on", "vistula")
FLOWS = ("vistula", "flows into", "baltic sea")


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    return Hybrid.build(Corpus(DOCUMENTS, TRIPLES), cache_dir=tmp_path_factory.mktemp("cache"))


def explained(engine, queries=QUERIES, **params):
    return engine.explain(queries, params, engine.retrieve(queries, params))


def test_paths_carry_the_relations_of_the_corpus(engine):
    assert isinstance(engine, Explains)
    paths = explained(engine, graph_weight=1.0, max_hops=3, top_k=3).paths[0]
    assert (BORN,) in paths
    assert (BORN, LIES) in paths
    assert (BORN, LIES, FLOWS) in paths


def test_no_path_is_longer_than_the_hops_allowed(engine):
    for max_hops in (1, 2, 3):
        paths = explained(engine, graph_weight=1.0, max_hops=max_hops, top_k=3).paths[0]
        assert max(map(len, paths)) == max_hops


def test_only_returned_passages_are_walked_through(engine):
    few = explained(engine, graph_weight=1.0, max_hops=3, top_k=1)
    assert few.ids(0) == ["1"]
    assert set(few.paths[0]) == {(BORN,)}
    # Baltic Sea is a name that the query itself shares a word with.
    assert few.entities[0] == ["marie curie", "warsaw", "baltic sea"]


def test_without_the_graph_there_are_no_names_and_no_paths(engine):
    result = explained(engine, graph_weight=0.0, top_k=3)
    assert (result.entities, result.paths) == ([[]], [[]])


def test_a_query_without_a_known_name_has_none(engine):
    result = explained(engine, (Query("x", "zzz qqq"),), graph_weight=0.5)
    assert (result.entities, result.paths) == ([[]], [[]])


def test_retrieval_itself_reports_nothing(engine):
    rankings = engine.retrieve(QUERIES, {"graph_weight": 0.5})
    assert rankings.entities is None
    assert rankings.paths is None


def test_without_facts_relations_are_unnamed(tmp_path):
    engine = Hybrid.build(Corpus(DOCUMENTS), cache_dir=tmp_path)
    paths = explained(engine, graph_weight=1.0, max_hops=1, top_k=3).paths[0]
    assert (("marie curie", "", "warsaw"),) in paths
    assert {relation for path in paths for _, relation, _ in path} == {""}


def test_other_relations_are_another_index(tmp_path):
    other = tuple(Triple(t.document_id, t.subject, "?", t.object) for t in TRIPLES)
    first = Hybrid.build(Corpus(DOCUMENTS, TRIPLES), cache_dir=tmp_path)
    second = Hybrid.build(Corpus(DOCUMENTS, other), cache_dir=tmp_path)
    assert first.fingerprint != second.fingerprint


def test_graph_metrics_of_the_engine_are_figures(engine):
    path = tuple(tuple(step) for step in json.loads(json.dumps([BORN, LIES, FLOWS])))
    evaluator = Evaluator.build(
        engine,
        QUERIES,
        {"q": {"1": 1, "2": 1, "3": 1}},
        ["entity_recall@3", "path_recall", "graphrag_recall"],
        documents=DOCUMENTS,
        evidences={"q": Evidence(("Warsaw", "Vistula"), (path,))},
    )
    deep = evaluator({"graph_weight": 1.0, "max_hops": 3, "top_k": 3}).metrics
    assert deep["path_recall"] == 1.0
    assert deep["graphrag_recall"] == 1.0
    shallow = evaluator({"graph_weight": 1.0, "max_hops": 1, "top_k": 3}).metrics
    assert shallow["path_recall"] == 0.0
    # a document, no path, and names that one step reaches
    assert 0.0 < shallow["graphrag_recall"] < 1.0


@settings(max_examples=25)
@given(
    words=st.lists(
        st.sampled_from(["Marie Curie", "Warsaw", "Vistula", "Lima", "Peru", "river"]), min_size=1
    ),
    max_hops=st.integers(1, 5),
    top_k=st.integers(1, 4),
)
def test_paths_start_at_a_reported_name_and_meet_none_twice(engine, words, max_hops, top_k):
    queries = (Query("q", " and ".join(words)),)
    result = explained(engine, queries, graph_weight=0.5, max_hops=max_hops, top_k=top_k)
    names = result.entities[0]
    assert len(set(names)) == len(names)
    for path in result.paths[0]:
        met = [path[0][0], *(object_ for _, _, object_ in path)]
        assert len(set(met)) == len(met) <= max_hops + 1
        assert [subject for subject, _, _ in path] == met[:-1]
        assert set(met) <= set(names)
