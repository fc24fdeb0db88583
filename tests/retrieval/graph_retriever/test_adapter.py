"""graph-retriever itself, over a small corpus and over a store of the user's."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

pytest.importorskip(
    "graph_retriever", reason="graph-retriever is not installed: pip install '.[graph_retriever]'"
)

from tuner.core.corpus import Corpus, Document, Triple
from tuner.core.errors import InputError, TunerError
from tuner.retrieval.adapters.graph_retriever.corpus_store import CorpusStore
from tuner.retrieval.adapters.graph_retriever.options import mentions, read_edges


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
    own = CorpusStore(ids, vectors, names, lambda text: questions[text].astype(np.float32))
    contents = [
        Content(id_, "", vector.tolist(), {"mentions": row})
        for id_, vector, row in zip(ids, vectors, names, strict=True)
    ]
    library = InMemory(lambda text: questions[text].tolist(), contents)
    common = {"select_k": 12, "start_k": start_k, "adjacent_k": adjacent_k, "max_depth": 3}
    made = {
        "eager": Eager(**common),
        "mmr": Mmr(**common),
        "scored": Scored(scorer=lambda node: node.similarity_score, **common),
    }[strategy]
    for question in questions:
        found, wanted = (
            traverse(question, edges=[("mentions", "mentions")], strategy=made, store=store)
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
        ["b", "a"], np.eye(2, dtype=np.float32), [["x"], ["x", "y"]], lambda _: np.ones(2)
    )
    assert [content.id for content in store.get(["b", "c", "a"])] == ["b", "a"]
    assert [content.id for content in store.get(["a", "b"], {"mentions": "y"})] == ["a"]
    vector, found = store.search_with_embedding("", 5)
    assert vector == [1.0, 1.0]
    assert [content.id for content in found] == ["a", "b"]  # equally similar: by id
    assert [content.id for content in store.search([1.0, 0.0], 1, {"mentions": "x"})] == ["b"]


def test_documents_are_linked_by_the_names_found_in_them(corpus):
    assert mentions(corpus)[:2] == [("night ferry", "ada holm"), ("ada holm", "kvarnby")]
    named = Corpus(corpus.documents[:2], entities={"11": ("Ada  HOLM", "+")})
    assert mentions(named) == [(), ("ada holm",)]
    assert mentions(Corpus(corpus.documents[:1])) == [("night ferry", "ada holm")]
    stray = Corpus(corpus.documents[:1], (Triple("99", "A", "is", "B"),))
    assert mentions(stray) == [()]


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
        ({"store": "own_stores:gone", "edges": EDGES}, "has no attribute 'gone'"),
        ({"store": "own_stores", "edges": EDGES}, "write package.module:function"),
        ({"store": "own_stores:nothing", "edges": EDGES}, "returned NoneType, no adapter"),
        ({"store": "own_stores:unreachable", "edges": EDGES}, "ConnectionError: no route"),
        ({"edges": EDGES}, "edges go with a store"),
        ({"embedder": "nowhere"}, "must name a function"),
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


def test_edges():
    assert read_edges([["keywords", "$id"]]) == (("keywords", "$id"),)
    with pytest.raises(InputError, match="must be a list"):
        read_edges("keywords")


def test_a_damaged_index_is_made_again(build, corpus, queries):
    retriever = build(corpus)
    (retriever.directory / "vectors.npy").write_bytes(b"")
    assert rows(build(corpus).retrieve(queries, {}))[0]
