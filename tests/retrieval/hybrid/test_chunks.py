"""Documents cut into passages: where, whose they are, and what stands for a document."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.corpus import Corpus, Document, Query, Triple
from tuner.core.errors import InputError
from tuner.core.words import count_tokens, split_words
from tuner.retrieval.computed import answer_at
from tuner.retrieval.hybrid.chunks import cut, cut_documents
from tuner.retrieval.hybrid.fusion import Groups, best
from tuner.retrieval.hybrid.options import HybridOptions

TEXT_ALONE = {"graph_weight": 0.0}


@pytest.mark.parametrize(
    ("text", "tokens", "overlap", "expected"),
    [
        ("One two. Three four. Five.", 4, 0, ["One two. Three four.", "Five."]),
        ("One two. Three four. Five.", 4, 2, ["One two. Three four.", "Three four. Five."]),
        # The overlap makes room where the next sentence would not fit beside it.
        ("One two. Three. Four five six.", 3, 1, ["One two. Three.", "Four five six."]),
        ("one two three four five", 2, 0, ["one two", "three four", "five"]),
        ("北京。东京大学。", 4, 0, ["北京。", "东京大学。"]),
        ("first line\nsecond line", 2, 0, ["first line", "second line"]),
        ("", 5, 0, [""]),
        ("?!", 5, 0, ["?!"]),
    ],
)
def test_cuts(text, tokens, overlap, expected):
    assert list(cut(text, tokens=tokens, overlap=overlap)) == expected


texts = st.text(st.sampled_from("ab .!?\n北。"), max_size=60)


@given(text=texts, tokens=st.integers(1, 8), overlap=st.integers(0, 4))
def test_no_word_is_lost_and_no_passage_too_long(text, tokens, overlap):
    overlap = min(overlap, tokens // 2)
    passages = list(cut(text, tokens=tokens, overlap=overlap))
    longest = max((count_tokens(word) for word in text.split()), default=0)
    assert all(count_tokens(passage) <= max(tokens, longest) for passage in passages)
    plain = list(cut(text, tokens=tokens, overlap=0))
    assert split_words(" ".join(plain)) == split_words(text)
    assert set(split_words(text)) == set(split_words(" ".join(passages)))


def test_imported_names_go_to_the_passages_in_which_they_stand():
    document = Document("d", "Holm", "Ada lives here. Bob left.")
    corpus = Corpus((document,), (Triple("d", "Ada", "knows", "Bob"),), {"d": ("Lissa",)})
    chunks = cut_documents(corpus, corpus.documents, HybridOptions(chunk_tokens=3))
    assert [passage.text for passage in chunks.corpus.documents] == ["Ada lives here.", "Bob left."]
    # Lissa stands nowhere, and so may be meant anywhere.
    assert list(chunks.corpus.entities.values()) == [("lissa", "ada"), ("lissa", "bob")]


LONG = "Tea is grown in hills. Rain falls in spring. Ferries cross at night. Tea is drunk hot."
DOCUMENTS = [
    Document("a", "", LONG),
    Document("b", "", "Ferries are ships."),
    Document("c", "", "Coffee is black."),
]


def test_a_document_stands_once_where_its_best_passage_does(build):
    engine = build(DOCUMENTS, chunk_tokens=5)
    queries = [Query("q", "tea grown in hills"), Query("r", "ferries ships night")]
    live = engine.retrieve(queries, TEXT_ALONE)
    engine.prepare(queries)
    for found in (live, engine.retrieve(queries, TEXT_ALONE)):
        assert found.ids(0) == ["a"]
        assert found.ids(1) == ["b", "a"]
        # 5 words of the first sentence; then 3 words, and the 4 of the third sentence.
        np.testing.assert_array_equal(found.context_tokens, [5.0, 7.0])


def test_a_chunked_index_explains_itself(build):
    documents = [
        Document("1", "Holm", "Holm lies by the sea. From Holm a road leads to Lissa."),
        Document("2", "Lissa", "Lissa has a mill. Its people are few."),
    ]
    engine = build(documents, chunk_tokens=8)
    queries = [Query("q", "Where does the road from Holm lead?")]
    told = engine.explain(queries, {}, engine.retrieve(queries, {}))
    assert told.entities is not None
    assert told.entities[0][:2] == ["holm", "lissa"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chunk_overlap": 1}, "chunk_overlap: must be at most half of chunk_tokens=0, got 1"),
        ({"chunk_tokens": 9, "chunk_overlap": 5}, "at most half of chunk_tokens=9, got 5"),
        ({"chunk_tokens": -1}, "chunk_tokens=-1 must be at least 0"),
        (
            {
                "chunk_tokens": 9,
                "dense": {"matrix": "a.npy", "queries": "b.npy", "query_ids": "c.txt"},
            },
            "chunk_tokens: vectors from files are those of whole documents",
        ),
    ],
)
def test_what_cannot_be_cut(build, options, message):
    with pytest.raises(InputError, match=message):
        build(DOCUMENTS, **options)


rows = st.integers(1, 4)


@given(
    scores=st.lists(st.lists(st.integers(0, 6), min_size=6, max_size=6), min_size=1, max_size=4),
    numbers=st.lists(st.integers(0, 3), min_size=6, max_size=6).map(sorted),
    count=st.integers(1, 7),
)
def test_the_best_of_groups_are_the_first_of_each_in_the_whole_order(scores, numbers, count):
    fused = np.array(scores, dtype=np.float32) / 8
    groups = Groups.of(np.broadcast_to(np.array(numbers), fused.shape))
    columns, values = best(fused, count, groups)
    whole, _ = best(fused, 6)
    for row, order in enumerate(whole):
        first = list({numbers[column]: column for column in order[::-1] if column >= 0}.values())
        first = sorted(first, key=lambda column: list(order).index(column))[:count]
        assert [column for column in columns[row] if column >= 0] == first
        np.testing.assert_array_equal(values[row, : len(first)], fused[row, first])


@pytest.mark.parametrize("options", [{"chunk_tokens": 5}, {}])
def test_computed_answers_tell_the_same_parts_of_documents(build, options):
    engine = build(DOCUMENTS, **options).telling_legs()
    queries = [Query("q", "tea grown in hills, ferries at night, coffee")]
    engine.prepare(queries)
    free = engine.free_knobs({}, ["graph_weight", "top_k"])
    told = engine.retrieve(queries, {"graph_weight": 0.5, "top_k": 5})
    for params in ({"graph_weight": 0.2, "top_k": 5}, {"graph_weight": 0.9, "top_k": 2}):
        asked = engine.retrieve(queries, params)
        computed = answer_at(free, told, params)
        assert computed.documents.tolist() == asked.documents.tolist()
        is_there = asked.documents >= 0
        assert is_there.any()
        assert (computed.spans[is_there] == asked.spans[is_there]).all()
        assert computed.spans.shape == asked.spans.shape
    assert told.first(1).spans.shape == (1, 1, 2)
