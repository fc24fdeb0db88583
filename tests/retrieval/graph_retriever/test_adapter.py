"""graph-retriever itself, over a small corpus and over a store of the user's."""

from __future__ import annotations

import pickle
from itertools import product

import numpy as np
import pytest

pytest.importorskip(
    "graph_retriever", reason="graph-retriever is not installed: pip install '.[graph_retriever]'"
)

from tuner.core.corpus import Corpus, Document, Query, Triple
from tuner.core.errors import InputError, TunerError
from tuner.core.space import Integer, SearchSpace
from tuner.retrieval.adapters.graph_retriever import GraphRetriever
from tuner.retrieval.adapters.graph_retriever.corpus_store import CorpusStore
from tuner.retrieval.adapters.graph_retriever.options import mentions, read_edges, titles


def rows(rankings):
    return [rankings.ids(row) for row in range(len(rankings.query_ids))]


def test_links_lead_to_what_the_words_do_not(build, corpus, queries):
    retriever = build(corpus)
    start = {"start_k": 1, "select_k": 3}
    alone = retriever.retrieve(queries, {**start, "max_depth": 0})
    assert [len(row) for row in rows(alone)] == [1, 1, 1, 1, 1, 0]  # the last query is blank
    assert not alone.graph_used.any()
    linked = retriever.retrieve(queries, start)
    assert linked.ids(0)[:2] == ["10", "11"]  # the film, then its director
    assert linked.graph_used.tolist() == [True, True, True, False, True, False]


def test_every_knob_can_change_the_answer(build, corpus, queries):
    retriever = build(corpus)
    changes = [
        ({"start_k": 1}, {"strategy": "mmr"}),
        ({}, {"select_k": 2}),
        ({}, {"start_k": 1}),
        ({"start_k": 1, "max_depth": 1}, {"adjacent_k": 1}),
        ({"start_k": 1}, {"max_depth": 0}),
        ({"strategy": "mmr", "start_k": 4}, {"lambda_mult": 0.0}),
        ({"start_k": 1, "max_depth": 1}, {"edges": "titles"}),
    ]
    assert {name for _, change in changes for name in change} == {k.name for k in retriever.knobs}
    for params, change in changes:
        before = retriever.retrieve(queries, params)
        assert rows(before) != rows(retriever.retrieve(queries, {**params, **change})), change


@pytest.mark.parametrize("strategy", ["eager", "mmr", "scored"])
@pytest.mark.parametrize("start_k", [1, 3])
@pytest.mark.parametrize("adjacent_k", [2, 10])
def test_the_store_answers_as_the_librarys_own_does(strategy, start_k, adjacent_k):
    from graph_retriever import Content, traverse
    from graph_retriever.adapters.in_memory import InMemory
    from graph_retriever.strategies import Eager, Mmr, Scored

    draw = np.random.default_rng(start_k)
    ids = [f"{row:03}" for row in range(60)]
    vectors = draw.normal(size=(60, 16)).astype(np.float32)
    names = [[f"n{name}" for name in draw.choice(25, size=3, replace=False)] for _ in ids]
    questions = {f"q{row}": vector for row, vector in enumerate(draw.normal(size=(20, 16)))}
    titles = [[f"n{draw.integers(25)}"] for _ in ids]
    own = CorpusStore(ids, vectors, names, titles, lambda text: questions[text].astype(np.float32))
    contents = [
        Content(id_, "", vector.tolist(), {"mentions": row, "title": own_names})
        for id_, vector, row, own_names in zip(ids, vectors, names, titles, strict=True)
    ]
    library = InMemory(lambda text: questions[text].tolist(), contents)
    common = {"select_k": 12, "start_k": start_k, "adjacent_k": adjacent_k, "max_depth": 3}
    made = {
        "eager": Eager(**common),
        "mmr": Mmr(**common),
        "scored": Scored(scorer=lambda node: node.similarity_score, **common),
    }[strategy]
    alternatives = read_edges(None, over_store=False)
    for question, edges in product(questions, alternatives.values()):
        found, wanted = (
            traverse(question, edges=list(edges), strategy=made, store=store)
            for store in (own, library)
        )
        assert [(n.id, n.depth) for n in found] == [(n.id, n.depth) for n in wanted]


@pytest.mark.parametrize("end", ["low", "high"])
def test_the_ends_of_every_range_are_answered(build, corpus, queries, end):
    retriever = build(corpus)
    for knob in retriever.knobs:
        if knob.kind != "categorical":
            for strategy in ("eager", "mmr", "scored"):
                rankings = retriever.retrieve(
                    queries, {"strategy": strategy, knob.name: getattr(knob, end)}
                )
                assert len(rows(rankings)[0]) > 0


def test_context_tokens_count_the_words_of_what_is_returned(build, corpus, queries):
    rankings = build(corpus).retrieve(queries, {"start_k": 1, "select_k": 1})
    lengths = {d.id: len(f"{d.title} {d.text}".split()) for d in corpus.documents}
    assert rankings.context_tokens.tolist() == [
        float(sum(lengths[id_] for id_ in row)) for row in rows(rankings)
    ]


def test_the_store_knows_ids_and_names():
    store = CorpusStore(
        ["b", "a"],
        np.eye(2, dtype=np.float32),
        [["x"], ["x", "y"]],
        [["b"], ["y"]],
        lambda _: np.ones(2),
    )
    assert [content.id for content in store.get(["b", "c", "a"])] == ["b", "a"]
    assert [content.id for content in store.get(["a", "b"], {"mentions": "y"})] == ["a"]
    vector, found = store.search_with_embedding("", 5)
    assert vector == [1.0, 1.0]
    assert [content.id for content in found] == ["a", "b"]  # equally similar: by id
    assert [content.id for content in store.search([1.0, 0.0], 1, {"mentions": "x"})] == ["b"]
    assert [content.id for content in store.search([1.0, 0.0], 2, {"title": "y"})] == ["a"]
    assert store.search([1.0, 0.0], 2, {"title": "y", "mentions": "z"}) == []


def test_documents_are_linked_by_the_names_found_in_them(corpus):
    assert mentions(corpus, "triples")[:2] == [("night ferry", "ada holm"), ("ada holm", "kvarnby")]
    named = Corpus(corpus.documents[:2], entities={"11": ("Ada  HOLM", "+")})
    assert mentions(named, "triples") == [(), ("ada holm",)]
    assert mentions(Corpus(corpus.documents[:1]), "triples") == [("night ferry", "ada holm")]
    stray = Corpus(corpus.documents[:1], (Triple("99", "A", "is", "B"),))
    assert mentions(stray, "triples") == [()]


def test_names_come_from_facts_from_texts_or_from_both(corpus):
    of_lissa = corpus.documents[3]  # "Lissa (river)": "The Lissa flows through Ostermark …"
    one = Corpus((of_lissa,), (Triple("13", "Lissa", "ends in", "Northern Sea"),))
    assert mentions(one, "triples") == [("lissa", "northern sea")]
    assert mentions(one, "titles") == [("lissa river", "lissa", "ostermark")]
    assert mentions(one, "both") == [("lissa river", "lissa", "ostermark", "northern sea")]
    assert titles(one) == [("lissa river", "lissa")]


def test_links_to_titles_lead_from_who_names_to_who_is_named(build, corpus, queries):
    retriever = build(corpus)
    step = {"start_k": 1, "max_depth": 1, "select_k": 8}
    # Day Ferry names Per Lund. Nothing else has that title, and it has no name in common with 14.
    (shared,) = rows(retriever.retrieve(queries[2:3], step))
    (titled,) = rows(retriever.retrieve(queries[2:3], {**step, "edges": "titles"}))
    assert (shared, titled) == (["14", "15"], ["14", "15"])
    # Of the film's director, what the film shares a name with is not called by a name in it.
    (shared,) = rows(retriever.retrieve([Query("q", "she was born")], step))
    (titled,) = rows(retriever.retrieve([Query("q", "she was born")], {**step, "edges": "titles"}))
    assert (shared[0], set(shared)) == ("11", {"10", "11", "12"})
    assert titled == ["11", "12"]


def test_an_index_is_built_once(build, corpus, queries):
    first = build(corpus)
    first.prepare(queries)
    files = {path: path.stat().st_mtime_ns for path in first.directory.parent.rglob("*.npy")}
    second = build(corpus)
    second.prepare(queries[::-1])
    assert rows(second.retrieve(queries, {})) == rows(first.retrieve(queries, {}))
    assert {p: p.stat().st_mtime_ns for p in first.directory.parent.rglob("*.npy")} == files


def films(corpus):
    return Corpus(corpus.documents[:3])


EDGES = [["keywords", "keywords"]]


def test_a_store_of_the_users_own(build, corpus, queries, embedders):
    retriever = build(films(corpus), store="own_stores:films", edges=EDGES)
    retriever.prepare(queries)
    copy = pickle.loads(pickle.dumps(retriever))
    answer = copy.retrieve(queries, {"start_k": 1})
    assert answer.ids(1) != []
    assert set(answer.ids(0)) <= {"10", "11", "12"}
    assert answer.graph_used[0]
    other = build(films(corpus), store="own_stores:films", edges=[["keywords", "$id"]])
    assert other.fingerprint != retriever.fingerprint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"store": "own_stores:films"}, "edges: must be a list of pairs"),
        ({"store": "own_stores:films", "edges": [["a"]]}, r"edges.0: \['a'\] is no pair"),
        ({"store": "own_stores:films", "edges": EDGES}, "lacks 5 of the corpus's 8 documents"),
        ({"store": "own_stores:gone", "edges": EDGES}, "has no 'gone'"),
        ({"store": "own_stores", "edges": EDGES}, "must name the store as package.module:function"),
        ({"store": "own_stores:nothing", "edges": EDGES}, "returned NoneType, no adapter"),
        ({"store": "own_stores:unreachable", "edges": EDGES}, "ConnectionError: no route"),
        ({"edges": EDGES}, "the fields mentions and title, and no 'keywords'"),
        ({"edges": {"a": [["mentions", "title"]], "b": "x"}}, r"edges\.b: must be a list of pairs"),
        ({"names": "phrases"}, "'phrases' is not one of triples, titles, both"),
        ({"embedder": "nowhere"}, "sentence-transformers"),
    ],
)
def test_impossible_options(build, corpus, embedders, options, message):
    with pytest.raises(InputError, match=message):
        build(corpus, **options)


def test_documents_of_no_corpus_are_named(build, corpus, queries, embedders):
    retriever = build(Corpus(corpus.documents[:2]), store="own_stores:films", edges=EDGES)
    with pytest.raises(TunerError, match=r"returned '12' for query .* no document of the corpus"):
        retriever.retrieve(queries, {})


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ((), "no documents"),
        ((Document("1", "A", "a"), Document("1", "B", "b")), "'1' occurs twice"),
    ],
)
def test_a_corpus_that_cannot_be_indexed(build, documents, message):
    with pytest.raises(InputError, match=message):
        build(Corpus(documents))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"selectk": 3}, "did you mean 'select_k'"),
        ({"strategy": "greedy"}, "is not one of"),
        ({"start_k": 0}, "outside"),
        ({"lambda_mult": 1.0}, "outside"),
    ],
)
def test_impossible_parameters(build, corpus, queries, params, message):
    with pytest.raises(InputError, match=message):
        build(corpus).retrieve(queries, params)


def test_a_space_in_which_the_start_is_more_than_is_returned_is_refused(build, corpus):
    space = SearchSpace({"start_k": Integer(1, 40), "select_k": Integer(5, 40)})
    told = (
        r"'start_k' can be 40 where select_k is 5.*space_constraints: \[\"start_k <= select_k\"\]"
    )
    with pytest.raises(InputError, match=told):
        build(corpus, space=space, baseline={})
    # The others choose among those that they begin with.
    build(corpus, space=space, baseline={"strategy": "mmr"})


def test_edges():
    assert read_edges([["keywords", "$id"]], over_store=True) == {"": (("keywords", "$id"),)}
    with pytest.raises(InputError, match="must be a list"):
        read_edges("keywords", over_store=True)
    assert list(read_edges(None, over_store=False)) == ["shared", "titles", "both"]


def test_alternatives_of_links_are_a_parameter_of_the_queries(build, corpus, queries, embedders):
    edges = {"words": EDGES, "itself": [["keywords", "$id"]]}
    retriever = build(films(corpus), store="own_stores:films", edges=edges)
    declared = GraphRetriever.declare_knobs(store="own_stores:films", edges=edges)
    assert declared == retriever.knobs
    (knob,) = [one for one in declared if one.name == "edges"]
    assert (knob.default, knob.choices, knob.stage) == ("words", ("words", "itself"), "query")
    usual = rows(retriever.retrieve(queries, {"start_k": 1}))
    assert rows(retriever.retrieve(queries, {"start_k": 1, "edges": "words"})) == usual
    assert rows(retriever.retrieve(queries, {"start_k": 1, "edges": "itself"})) != usual
    assert "edges" not in {knob.name for knob in build(corpus, edges=[["mentions", "title"]]).knobs}


def test_a_damaged_index_is_made_again(build, corpus, queries):
    retriever = build(corpus)
    (retriever.directory / "vectors.npy").write_bytes(b"")
    assert rows(build(corpus).retrieve(queries, {}))[0]
