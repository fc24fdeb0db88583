"""Reranking: by words that passages before do not hold, or by a model."""

from __future__ import annotations

import math
import sys
from types import ModuleType

import numpy as np
import pytest

from tuner.core.corpus import Document, Query
from tuner.core.errors import InputError, TunerError
from tuner.core.space import Categorical, SearchSpace
from tuner.retrieval.hybrid.text import analyse, full_text
from tuner.retrieval.knobs import knob_problems

DOCUMENTS = [
    Document("1", "", "ferry harbour captain"),
    Document("2", "", "ferry harbour captain"),
    Document("3", "", "painter of the mill"),
    Document("4", "", "night train"),
]
QUERIES = [Query("q", "captain of the ferry in the harbour and painter")]
WORDS = {"graph_weight": 0.0, "top_k": 4}
LEXICAL = {**WORDS, "rerank": "lexical"}


def both_ways(engine, queries, params):
    live = engine.retrieve(queries, params)
    engine.prepare(queries)
    return live, engine.retrieve(queries, params)


def test_a_passage_with_new_words_comes_before_one_that_repeats(build):
    engine = build(DOCUMENTS)
    for found in both_ways(engine, QUERIES, WORDS):
        assert found.ids(0) == ["1", "2", "3"]
    for found in both_ways(engine, QUERIES, LEXICAL):
        assert found.ids(0)[0] == "1"
        assert found.scores is not None
        assert list(found.scores[0]) == sorted(found.scores[0], reverse=True)
    # Where the third says nearly as much of the question, what is new in it decides.
    many = [*DOCUMENTS[:2], Document("3", "", "ferry harbour painter"), DOCUMENTS[3]]
    twice = [Query("q", "captain ferry harbour captain painter")]
    engine = build(many)
    assert engine.retrieve(twice, WORDS).ids(0) == ["1", "2", "3"]
    assert engine.retrieve(twice, LEXICAL).ids(0) == ["1", "3", "2"]


def test_the_first_by_coverage_are_those_of_plain_python(build):
    random = np.random.default_rng(3)
    words = [f"word{n}" for n in range(12)]
    documents = [Document(f"{n:02}", "", " ".join(random.choice(words, 4))) for n in range(40)]
    queries = [Query(str(n), " ".join(random.choice(words, 5))) for n in range(12)]
    engine = build(documents)
    wide = engine.retrieve(queries, {"graph_weight": 0.0, "top_k": 15})
    terms = {document.id: set(analyse([full_text(document)])[0]) for document in documents}
    params = {"graph_weight": 0.0, "top_k": 10, "rerank": "lexical", "rerank_depth": 15}
    for found in both_ways(engine, queries, params):
        for row, query in enumerate(queries):
            asked = set(analyse([query.text])[0])
            df = {term: sum(term in held for held in terms.values()) for term in asked}
            weight = {t: math.log(1 + (40 - n + 0.5) / (n + 0.5)) for t, n in df.items() if n}
            total = sum(weight.values())
            left = dict(zip(wide.ids(row), wide.scores[row], strict=False))
            expected = []
            while left and len(expected) < 10:
                gains = {
                    id_: round(
                        score + 0.4 * sum(weight.get(t, 0) for t in asked & terms[id_]) / total, 9
                    )
                    for id_, score in left.items()
                }
                best = max(gains, key=lambda id_: gains[id_])
                expected.append(best)
                asked -= terms[best]
                del left[best]
            assert found.ids(row) == expected


def test_what_is_behind_the_depth_keeps_its_place(build):
    engine = build(DOCUMENTS)
    for found in both_ways(engine, QUERIES, {**LEXICAL, "rerank_depth": 2}):
        assert found.ids(0) == ["1", "2", "3"]


@pytest.fixture
def model():
    module = ModuleType("tests_own_reranker")
    module.asked = []

    def longest(query, passages):
        module.asked += passages
        return [len(passage) for passage in passages]

    module.longest = longest
    module.broken = lambda query, passages: [float("nan")] * len(passages)
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]


def test_a_model_orders_the_first_passages_and_is_asked_once_for_each(build, model):
    documents = [*DOCUMENTS, Document("5", "", "the captain of a ferry stays in the harbour")]
    engine = build(documents, rerank="tests_own_reranker:longest")
    (knob,) = [knob for knob in engine.knobs if knob.name == "rerank"]
    assert knob.choices == ("none", "lexical", "tests_own_reranker:longest")
    assert knob.default == "tests_own_reranker:longest"
    for found in both_ways(engine, QUERIES, WORDS):
        assert found.ids(0) == ["5", "1", "2", "3"]
    assert len(model.asked) == 4
    plain = build(documents).retrieve(QUERIES, WORDS)
    assert engine.retrieve(QUERIES, {**WORDS, "rerank": "none"}).ids(0) == plain.ids(0)
    assert plain.ids(0) != found.ids(0)


def test_a_model_that_gives_no_numbers_is_an_error(build, model):
    engine = build(DOCUMENTS, rerank="tests_own_reranker:broken")
    with pytest.raises(TunerError, match="must give one finite number for each of 3 passages"):
        engine.retrieve(QUERIES, WORDS)


def test_a_space_that_alone_names_a_model_is_told_where_else_to_name_it(build):
    space = SearchSpace({"rerank": Categorical(("none", "my_models:rank"))})
    (problem,) = knob_problems(space, build(DOCUMENTS).knobs)
    assert problem.key == ("space", "rerank", "choices")
    assert "'my_models:rank' is not one of 'none', 'lexical'" in problem.message
    assert "name a model by the option too, `retriever: {rerank: …}`" in problem.message


def test_a_model_has_to_be_named_when_the_index_is_built(build, monkeypatch):
    with pytest.raises(InputError, match="name a model by the option too"):
        build(DOCUMENTS).retrieve(QUERIES, {"rerank": "tests_own_reranker:longest"})
    with pytest.raises(InputError, match="cannot import 'nowhere_at_all:rank'"):
        build(DOCUMENTS, rerank="nowhere_at_all:rank")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(InputError, match=r"graphrag-tuner\[dense\]"):
        build(DOCUMENTS, rerank="a-model-that-is-none")


def test_passages_of_a_document_are_reranked_by_the_best_of_them(build):
    documents = [Document("1", "", "ferry harbour. a mill."), *DOCUMENTS[1:]]
    engine = build(documents, chunk_tokens=3)
    for found in both_ways(engine, QUERIES, LEXICAL):
        assert sorted(found.ids(0)) == ["1", "2", "3"]
