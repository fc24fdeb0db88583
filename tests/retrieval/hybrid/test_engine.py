"""What the engine answers: by text, by graph, by both, and where one of them has nothing to say."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tuner.core.corpus import Corpus, Document, Query, Triple
from tuner.core.errors import InputError
from tuner.retrieval.base import Serves


def answer(engine, text, **params):
    return engine.retrieve([Query("q", text)], params).ids(0)


def test_text_alone_finds_the_passage_that_shares_words(build, corpus):
    found = answer(build(corpus), "streams of water", graph_weight=0.0)
    assert found == ["17"]  # no other passage shares a word: nothing fills the list up


def test_hops_reach_passages_that_share_no_word_with_the_query(build, corpus):
    engine = build(corpus)
    question = "Night Ferry"
    assert "12" not in answer(engine, question, graph_weight=1.0, max_hops=2)
    assert "12" in answer(engine, question, graph_weight=1.0, max_hops=3)  # film, person, town
    assert "12" not in answer(engine, question, graph_weight=0.0)


def test_graph_alone_ignores_what_the_text_says(build, corpus):
    engine = build(corpus)
    cold = {"graph_weight": 1.0, "max_hops": 1, "temperature": 0.001}
    found = engine.retrieve([Query("q", "Night Ferry")], cold)
    # The name stands in one passage only, so one hop reaches that passage and no other.
    assert found.ids(0) == ["10"]
    assert found.scores[0].tolist() == [1.0] + [0.0] * (found.depth - 1)


def test_scores_fall_and_lie_between_0_and_1(build, corpus, queries):
    rankings = build(corpus).retrieve(queries, {"top_k": 100})
    assert (np.diff(rankings.scores, axis=1) <= 0).all()
    assert (rankings.scores >= 0).all()
    assert (rankings.scores <= 1).all()
    assert rankings.documents.shape == (5, 8)  # no deeper than the corpus


def test_a_low_temperature_follows_the_best_name_alone(build):
    documents = [
        Document("1", "Karolinska Observatory", "Founded by Alva Brandt."),
        Document("2", "Orm", "Orm was known to Tora Falk."),
        Document("3", "Alva Brandt", "An astronomer."),
        Document("4", "Tora Falk", "A poet."),
    ]
    engine = build(documents)
    question = "Karolinska Observatory or Orm?"
    cold = answer(engine, question, graph_weight=1.0, temperature=0.001)
    warm = answer(engine, question, graph_weight=1.0, temperature=10.0)
    assert set(cold) == {"1", "3"}
    assert set(warm) == {"1", "2", "3", "4"}


def test_where_the_graph_is_silent_the_score_is_the_text_leg_alone(build, corpus):
    engine = build(corpus)
    question = [Query("q", "streams flow")]  # words of no name
    by_text = engine.retrieve(question, {"graph_weight": 0.0})
    for weight in (0.3, 1.0):
        rankings = engine.retrieve(question, {"graph_weight": weight})
        assert rankings.ids(0) == by_text.ids(0) != []
        np.testing.assert_array_equal(rankings.scores, by_text.scores)
        assert rankings.graph_used.tolist() == [False]


def test_it_says_for_each_query_whether_the_graph_was_used(build, corpus):
    engine = build(corpus)
    both = [Query("1", "Ada Holm"), Query("2", "streams flow")]
    assert engine.retrieve(both, {}).graph_used.tolist() == [True, False]
    assert engine.retrieve(both, {"graph_weight": 0.0}).graph_used.tolist() == [False, False]


def test_names_are_found_in_lower_case_and_by_a_part_of_them(build, corpus):
    engine = build(corpus)
    whole = answer(engine, "Ada Holm", graph_weight=1.0)
    assert answer(engine, "ada holm", graph_weight=1.0) == whole
    assert answer(engine, "holm", graph_weight=1.0)[0] == "11"


def test_titles_with_parentheses_answer_to_the_bare_name(build, corpus):
    assert set(answer(build(corpus), "Lissa", graph_weight=1.0, max_hops=1)) >= {"12", "13", "16"}


def test_equal_scores_are_ordered_by_id(build):
    same = [Document(name, "", "green tea") for name in ("b", "10", "a", "9")]
    other = Document("z", "", "black coffee")
    for weight in (0.0, 0.5, 1.0):
        found = answer(build([*same, other]), "green tea", graph_weight=weight)
        assert found == ["10", "9", "a", "b"]


def test_the_order_of_the_corpus_changes_nothing(build, corpus, queries):
    backwards = Corpus(corpus.documents[::-1])
    rankings, again = (build(c).retrieve(queries, {}) for c in (corpus, backwards))
    for row in range(len(queries)):
        assert rankings.ids(row) == again.ids(row)
    np.testing.assert_array_equal(rankings.scores, again.scores)


def test_context_tokens_count_the_words_of_what_was_retrieved(build):
    engine = build(
        [Document("1", "Tea house", "Green tea, please."), Document("2", "", "北京 tea")]
    )
    rankings = engine.retrieve([Query("q", "tea"), Query("r", "nothing of it")], {})
    assert set(rankings.ids(0)) == {"1", "2"}
    # tea house green tea please = 5; 北, 京, tea = 3; and nothing was found for the second query
    assert rankings.context_tokens.tolist() == [8.0, 0.0]


def test_a_batch_tells_how_long_each_stage_took(build, corpus, queries):
    engine = build(corpus)
    for _ in range(2):
        seconds = engine.retrieve(queries, {}).seconds
        assert set(seconds) == {"text", "graph", "fuse"}
        assert min(seconds.values()) >= 0
        engine.prepare(queries)


@pytest.mark.parametrize("text", ["", "   ", "?!", "the of and", "zzzz qqqq", "\u0000", "🙂"])
def test_a_query_that_matches_nothing_gets_an_empty_answer(build, corpus, text):
    rankings = build(corpus).retrieve([Query("q", text)], {})
    assert rankings.ids(0) == []
    assert rankings.graph_used.tolist() == [False]
    assert rankings.context_tokens.tolist() == [0.0]


def test_no_queries_at_all(build, corpus):
    engine = build(corpus)
    engine.prepare([])
    rankings = engine.retrieve([], {})
    assert len(rankings.query_ids) == len(rankings.documents) == 0


def test_a_corpus_of_one_document(build):
    engine = build([Document("7", "Ada Holm", "A director.")])
    for weight in (0.0, 0.5, 1.0):
        rankings = engine.retrieve([Query("q", "Who was Ada Holm?")], {"graph_weight": weight})
        assert rankings.ids(0) == ["7"]
        assert rankings.scores.tolist() == [[1.0]]  # a lone score becomes 1


def test_a_corpus_without_words(build):
    engine = build([Document("1", "", ""), Document("2", "", "...")])
    engine.prepare([Query("q", "anything")])
    assert answer(engine, "anything") == []


def test_passages_without_titles_are_linked_by_their_first_phrase(build, corpus):
    untitled = [Document(d.id, "", d.text) for d in corpus.documents]
    found = answer(build(untitled), "Night Ferry", graph_weight=1.0, max_hops=3)
    assert found[0] == "10"
    assert {"11", "12"} <= set(found)


def test_chinese_is_searched_by_pairs_of_characters(build):
    documents = [
        Document("1", "北京大学", "北京大学位于北京市海淀区。"),
        Document("2", "清华大学", "清华大学也在海淀区。"),
        Document("3", "上海", "上海是一座城市。"),
    ]
    engine = build(documents)
    assert answer(engine, "北京大学在哪里?", graph_weight=0.0)[0] == "1"
    assert "3" not in answer(engine, "北京大学在哪里?", graph_weight=0.0)
    assert answer(engine, "北京大学在哪里?", graph_weight=1.0)[0] == "1"


@pytest.mark.parametrize(
    ("title", "query"),
    [
        ("Musée de l'Érmitage", "musee de l'ermitage"),
        ("Москва", "МОСКВА"),
        ("दिल्ली विश्वविद्यालय", "दिल्ली विश्वविद्यालय"),
        ("ＡＢＣ Studio", "abc studio"),
        ("İstanbul", "istanbul"),
    ],
)
def test_names_in_other_scripts(build, title, query):
    engine = build([Document("1", title, ""), Document("2", "Something else", "entirely")])
    for weight in (0.0, 1.0):
        assert answer(engine, query, graph_weight=weight) == ["1"]


def test_ids_of_digits_stay_what_they_are(build):
    engine = build([Document("007", "Tea", "tea"), Document("7", "Tea", "tea tea")])
    assert set(answer(engine, "tea")) == {"007", "7"}


def test_facts_of_the_corpus_take_the_place_of_phrases(build):
    documents = [
        Document("1", "Alpha", "The old mill was rebuilt by Tora Falk."),
        Document("2", "Beta", "Here they keep the archive."),
    ]
    question = "old mill of Tora Falk"
    assert answer(build(documents), question, graph_weight=1.0) == ["1"]
    facts = Corpus(
        tuple(documents),
        triples=(Triple("1", "old mill", "houses", "archive"),),
        entities={"2": ("archive", "Tora Falk")},
    )
    # "old mill" leads to 1, and the archive that both passages name leads on to 2.
    assert answer(build(facts), "old mill", graph_weight=1.0, max_hops=2) == ["1", "2"]
    assert answer(build(facts), "Tora Falk", graph_weight=1.0, max_hops=1) == ["2"]


def test_it_serves_single_queries(build, corpus, queries):
    engine = build(corpus)
    assert isinstance(engine, Serves)
    engine.prepare(queries)
    for query in queries:
        served = engine.serve(query, {"top_k": 3})
        batch = engine.retrieve([query], {"top_k": 3})
        assert served.ids(0) == batch.ids(0)
        np.testing.assert_allclose(served.scores, batch.scores, atol=2e-6)


def test_the_same_question_gets_the_same_answer(build, corpus, queries):
    first, second = (build(corpus).retrieve(queries, {"temperature": 0.3}) for _ in range(2))
    np.testing.assert_array_equal(first.documents, second.documents)
    np.testing.assert_array_equal(first.scores, second.scores)
    assert first.document_ids is second.document_ids


def test_a_pickle_is_small_and_answers_alike(build, corpus, queries):
    engine = build(corpus)
    engine.prepare(queries)
    pickled = pickle.dumps(engine)
    assert len(pickled) < 2_000
    copy = pickle.loads(pickled)
    assert copy.fingerprint == engine.fingerprint
    here, there = engine.retrieve(queries, {}), copy.retrieve(queries, {})
    np.testing.assert_array_equal(here.documents, there.documents)
    assert here.document_ids is there.document_ids  # opened once a process


def test_two_documents_with_one_id_are_refused(build):
    with pytest.raises(InputError, match="document id 'x' occurs twice"):
        build([Document("x", "", "a"), Document("x", "", "b")])


def test_an_empty_corpus_is_refused(build):
    with pytest.raises(InputError, match="no documents"):
        build([])
