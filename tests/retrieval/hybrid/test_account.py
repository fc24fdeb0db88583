"""What the engine tells of an answer: each leg's part, the names, and the ways to each passage."""

from __future__ import annotations

import numpy as np
import pytest

from tuner.core.corpus import Corpus, Document, Query, Triple
from tuner.core.ledger import Ledger
from tuner.core.policy import Policy, WordRule
from tuner.retrieval.account import GivesAccount, account_of, answered_by
from tuner.retrieval.hybrid import Hybrid
from tuner.retrieval.wrapped.counted import counted
from tuner.retrieval.wrapped.policy import PolicyRetriever, WithPolicy

DOCUMENTS = (
    Document("1", "Marie Curie", "Marie Curie was born in Warsaw."),
    Document("2", "Warsaw", "Warsaw lies on the river Vistula."),
    Document("3", "Vistula", "The Vistula flows into the Baltic Sea."),
    Document("4", "Lima", "Lima is the capital of Peru."),
)
TRIPLES = (
    Triple("1", "Marie Curie", "born in", "Warsaw"),
    Triple("2", "Vistula", "flows through", "Warsaw"),
)
QUERY = Query("q", "On which river lies the city of Marie Curie?")


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    return Hybrid.build(Corpus(DOCUMENTS, TRIPLES), cache_dir=tmp_path_factory.mktemp("cache"))


def told(engine, query=QUERY, **params):
    rankings = engine.retrieve([query], params)
    return rankings.ids(0), rankings, engine.account(query, params, rankings)


def test_the_parts_of_the_legs_add_up_to_the_score(engine):
    assert isinstance(engine, GivesAccount)
    ids, rankings, account = told(engine, graph_weight=0.25, top_k=4)
    assert list(account.legs) == ["text", "graph"]
    parts = sum(leg.parts for leg in account.legs.values())
    np.testing.assert_allclose(parts, rankings.scores[0, : len(ids)], atol=1e-6)
    np.testing.assert_allclose(
        account.legs["graph"].parts, 0.25 * account.legs["graph"].scores, atol=1e-9
    )


def test_a_way_has_names_passages_and_relations_in_either_direction(engine):
    ids, _, account = told(engine, graph_weight=1.0, max_hops=3, temperature=0.01, top_k=4)
    assert account.starts[0].name == "marie curie"
    assert account.starts[0].weight == pytest.approx(1.0, abs=1e-3)
    ways = {id_: account.walks[place] for place, id_ in enumerate(ids)}
    (to_warsaw, *_) = ways["2"]
    assert to_warsaw.names == ("marie curie", "warsaw")
    assert to_warsaw.passages == ("1", "2")
    assert to_warsaw.relations == (("marie curie", "born in", "warsaw"),)
    (to_vistula, *_) = ways["3"]
    assert to_vistula.names == ("marie curie", "warsaw", "vistula")
    assert to_vistula.relations[1] == ("vistula", "flows through", "warsaw")
    assert "4" not in ids


def test_of_a_passage_one_hop_away_nothing_longer_is_told_with_one_hop(engine):
    ids, _, account = told(engine, graph_weight=1.0, max_hops=1, temperature=0.01, top_k=4)
    assert ids == ["1"]
    (walks,) = account.walks
    assert [len(walk.names) for walk in walks] == [1] * len(walks)
    # Without turning back, one hop is all there is.
    assert sum(walk.share for walk in walks) == pytest.approx(1.0, abs=1e-6)


def test_without_the_graph_it_has_no_leg_no_names_and_no_ways(engine):
    _, _, account = told(engine, graph_weight=0.0)
    assert list(account.legs) == ["text"]
    assert account.starts is None
    assert account.walks is None


def test_where_no_name_is_recognised_the_text_counts_in_full(engine):
    ids, rankings, account = told(engine, Query("x", "the river"), graph_weight=0.9)
    assert ids
    np.testing.assert_allclose(
        account.legs["text"].parts, rankings.scores[0, : len(ids)], atol=1e-6
    )
    assert not account.legs["graph"].parts.any()
    assert account.remarks == ("no name of the graph was recognised, so the text alone counts",)


def test_a_reranked_answer_tells_what_was_mixed_before(engine):
    ids, rankings, account = told(engine, graph_weight=0.5, rerank="lexical", top_k=3)
    parts = sum(leg.parts for leg in account.legs.values())
    np.testing.assert_allclose(account.mixed, parts, atol=1e-6)
    assert not np.allclose(account.mixed, rankings.scores[0, : len(ids)])
    assert "'lexical'" in account.remarks[0]


def test_of_a_document_in_pieces_the_piece_that_was_retrieved_is_told(tmp_path):
    long = "Lima is old. Peru is large. " * 4 + "Marie Curie went to Warsaw."
    corpus = Corpus((*DOCUMENTS, Document("5", "A journey", long)))
    engine = Hybrid.build(corpus, cache_dir=tmp_path, chunk_tokens=6)
    ids, rankings, account = told(engine, graph_weight=0.5, top_k=5)
    assert "5" in ids
    parts = sum(leg.parts for leg in account.legs.values())
    np.testing.assert_allclose(parts, rankings.scores[0, : len(ids)], atol=1e-6)
    assert {id_ for walks in account.walks for w in walks for id_ in w.passages} <= set("12345")


def test_what_stands_around_a_retriever_passes_it_on(engine):
    rule = WordRule({"a": 0.0, "b": 0.0}, {"marie": {"b": 1.0}})
    few = {"graph_weight": 1.0, "top_k": 1}
    policy = Policy({"graph_weight": 0.0}, {"a": {"graph_weight": 0.0}, "b": few}, rule)
    inside = counted(engine, "evaluation", Ledger())
    for around, params in (
        (PolicyRetriever(inside, policy), {}),
        (WithPolicy(inside, policy), {"policy": "by words"}),
        (PolicyRetriever(WithPolicy(inside, policy), policy), {}),
    ):
        assert answered_by(around, QUERY, params) == (engine, few)
        rankings = around.retrieve([QUERY], params)
        account = account_of(around, QUERY, params, rankings)
        assert list(account.legs) == ["text", "graph"]
        assert not account.legs["text"].parts.any()  # graph_weight is 1
