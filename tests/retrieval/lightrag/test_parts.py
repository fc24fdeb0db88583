"""What is made of a query and of a corpus before LightRAG sees them."""

from __future__ import annotations

from inspect import signature

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("lightrag", reason="LightRAG is not installed: pip install '.[lightrag]'")

from tuner.core.corpus import Corpus, Document, Triple
from tuner.core.errors import InputError
from tuner.retrieval.adapters.lightrag import Lightrag, runtime
from tuner.retrieval.adapters.lightrag.adapter import keywords
from tuner.retrieval.adapters.lightrag.knowledge import SOURCES, read_knowledge
from tuner.retrieval.adapters.lightrag.options import KNOBS, Settings
from tuner.retrieval.adapters.lightrag.runtime import Tokens
from tuner.retrieval.knobs import knob_settings


@pytest.mark.parametrize(
    ("query", "low"),
    [
        ("Where was the director of Night Ferry born?", ["night ferry"]),
        ('Who sings "the long way" in Lima?', ["the long way", "lima"]),
        ("who directed it", ["directed"]),
        ("Ada Holm", ["ada holm"]),
        ("what is it?", ["what is it?"]),
    ],
)
def test_names_are_low_level_keywords_and_the_query_is_the_high_level_one(query, low):
    assert keywords(f" {query}") == (low, [query])


@given(st.text(min_size=1).filter(str.strip))
def test_no_query_is_left_without_keywords(query):
    # LightRAG would ask the language model for them.
    low, high = keywords(query)
    assert low
    assert high
    assert all(low)
    assert all(high)


def test_facts_meet_in_their_entities(corpus):
    knowledge = read_knowledge(corpus, str)
    assert list(knowledge.entities["Ostermark"].chunks) == ["13#0", "15#0"]
    assert list(knowledge.pairs[("Kvarnby", "Lissa")].relations) == ["lies on"]
    assert knowledge.steps[("Ada Holm", "Night Ferry")] == (
        ("Night Ferry", "directed by", "Ada Holm"),
    )
    kg = knowledge.custom_kg()
    assert [chunk["file_path"] for chunk in kg["chunks"]] == [d.id for d in corpus.documents]
    assert {e["entity_name"] for e in kg["entities"]} == set(knowledge.entities)


def test_names_of_which_nothing_is_left_and_loops_are_skipped(corpus):
    odd = (Triple("10", "''", "is", "Ada Holm"), Triple("11", "Ada Holm", "is", "Ada Holm"))
    knowledge = read_knowledge(
        Corpus(corpus.documents, odd), lambda name: name.replace("'", "").strip()
    )
    assert list(knowledge.entities) == ["Ada Holm"]
    assert not knowledge.pairs


def test_without_facts_the_graph_is_made_of_mentions(corpus):
    knowledge = read_knowledge(Corpus(corpus.documents), str)
    assert ("ada holm", "kvarnby") in knowledge.pairs
    # Lissa the river and Lissa the singer are one name, as in any text.
    assert list(knowledge.entities["lissa"].chunks) >= ["12#0"]
    named = Corpus(corpus.documents, entities={"12": ("Lissa", "Sweden")})
    assert list(read_knowledge(named, str).pairs) == [("Kvarnby", "Lissa"), ("Kvarnby", "Sweden")]


def test_what_everybody_mentions_stays_bounded():
    documents = [Document(str(i), f"Town {i}", "It lies in Sweden.") for i in range(SOURCES + 50)]
    triples = [Triple(d.id, d.title, "lies in", "Sweden") for d in documents]
    found = read_knowledge(Corpus(tuple(documents), tuple(triples)), str).entities["Sweden"]
    assert len(found.chunks) == SOURCES + 50
    assert len(found.statements) <= 20


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ((), "no documents"),
        ((Document("1", "A", "a"), Document("1", "B", "b")), "'1' occurs twice"),
        ((Document("1", "", "  "),), "neither title nor text"),
    ],
)
def test_a_corpus_that_cannot_be_indexed(documents, message):
    with pytest.raises(InputError, match=message):
        read_knowledge(Corpus(documents), str)


def test_defaults_are_those_of_lightrag():
    from lightrag import LightRAG, QueryParam

    defaults = {knob.name: knob.default for knob in KNOBS}
    for name, value in defaults.items():
        source = QueryParam if hasattr(QueryParam, name) else LightRAG
        if name == "cosine_better_than_threshold":
            continue  # from the environment, see below
        assert getattr(source, name) == value, name
    assert knob_settings(Settings, {}, KNOBS).mode == "mix"


def test_chunks_are_cut_as_lightrag_does_by_default():
    from lightrag.chunker import chunking_by_fixed_token

    default = {k: p.default for k, p in signature(chunking_by_fixed_token).parameters.items()}
    knobs = {knob.name: knob for knob in Lightrag.declare_knobs()}
    for name in ("chunk_token_size", "chunk_overlap_token_size"):
        assert knobs[name].default == default[name]


def test_chunks_have_so_many_tokens_and_share_some():
    text = "Ada Holm was a director.\nShe was  born in Kvarnby, in 1912."
    # ada holm was a direct or . | She was born in Kvarnb y , in 1912 .
    assert runtime.cut(text, tokens=7, overlap=0) == [
        "Ada Holm was a director.",
        "She was  born in Kvarnby,",
        "in 1912.",
    ]
    assert runtime.cut(text, tokens=7, overlap=2)[1] == "or.\nShe was  born in Kvarnb"
    assert runtime.cut(text, tokens=17, overlap=0) == [text]


@given(st.text(min_size=1).filter(str.strip), st.integers(1, 9))
def test_chunks_without_overlap_hold_the_whole_text(text, tokens):
    chunks = runtime.cut(text, tokens=tokens, overlap=0)
    assert "".join("".join(chunks).split()) == "".join(text.split())
    assert all(len(Tokens().encode(chunk)) <= tokens for chunk in chunks)


def test_facts_belong_to_the_chunks_that_have_their_names():
    text = "Ada Holm was a director. She was born in Kvarnby. Later she lived in Ostermark."
    document = Document("1", "", text)
    triples = (
        Triple("1", "Ada Holm", "was", "director"),
        Triple("1", "Ada Holm", "born in", "Kvarnby"),
        Triple("1", "Ada Holm", "lived in", "Atlantis"),
        Triple("1", "Lemuria", "near", "Mu"),
    )
    sentences = [f"{one.strip('. ')}." for one in text.split(". ")]
    knowledge = read_knowledge(Corpus((document,), triples), str, lambda _: sentences)
    chunks = {name: list(found.chunks) for name, found in knowledge.entities.items()}
    assert chunks["Ada Holm"] == ["1#0"]
    assert chunks["Kvarnby"] == ["1#1"]
    assert chunks["Lemuria"] == ["1#0", "1#1", "1#2"]  # it may stand in any
    # Neither sentence has both names, so each that has one is a source.
    assert list(knowledge.pairs[("Ada Holm", "Kvarnby")].chunks) == ["1#0", "1#1"]
    assert list(knowledge.pairs[("Ada Holm", "Atlantis")].chunks) == ["1#0"]
    assert list(knowledge.pairs[("Ada Holm", "director")].chunks) == ["1#0"]


def test_defaults_do_not_follow_lightrags_environment(monkeypatch, build, corpus, queries):
    usual = build(corpus).retrieve(queries, {})
    for name, value in {
        "KG_CHUNK_PICK_METHOD": "WEIGHT",
        "TOP_K": "1",
        "COSINE_THRESHOLD": "0.9",
        "WORKSPACE": "elsewhere",
    }.items():
        monkeypatch.setenv(name, value)
    again = build(corpus).retrieve(queries, {})
    assert [usual.ids(row) for row in range(6)] == [again.ids(row) for row in range(6)]


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("a river", 2), ("directorship", 2), ("北京 5!", 4)]
)
def test_tokens(text, count):
    assert len(Tokens().encode(text)) == count
