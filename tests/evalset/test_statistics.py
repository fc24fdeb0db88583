"""A data set's figures, counted by hand."""

import math
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.corpus import Document, Query, Triple
from tuner.datasets import Dataset, open_dataset
from tuner.evalset.distinct import near_duplicates
from tuner.evalset.statistics import Spread, describe, torn_pairs


def described(dataset: Dataset, **options):
    return describe(dataset, count_tokens=lambda text: len(text.split()), **options)


def small() -> Dataset:
    return Dataset.create(
        "small",
        "here",
        documents=[
            Document("d1", "Ada", "Ada studied with Babbage"),
            Document("d2", "Babbage", "born in London"),
            Document("d3", "London", "city"),
            Document("d4", "London", "city"),
            Document("d5", "Thames", ""),
        ],
        queries=[
            Query("q1", "Where was the teacher of Ada born?", "bridge", "hard"),
            Query("q2", "Which river?", "direct"),
            Query("q3", "which  RIVER?", "direct"),
            Query("q4", "Nothing relevant here", "direct"),
        ],
        qrels={
            "q1": {"d1": 1, "d2": 2, "d3": 1},
            "q2": {"d5": 1},
            "q3": {"d5": 1, "d4": 0},
            "q4": {"d1": 0},
        },
        triples=[
            Triple("d1", "Ada", "teacher", "Babbage"),
            Triple("d2", "Babbage", "born in", "London"),
        ],
        entities={"d3": ("London",)},
        unjudged=["q9"],
    )


def test_counts():
    found = described(small())
    assert found.counts == {
        "documents": 5,
        "queries": 4,
        "judgements": 7,
        "relevant": 5,
        "triples": 2,
        "names_in_triples": 3,
        "documents_with_triples": 2,
        "documents_with_entities": 1,
        "queries_with_evidence": 0,
        "queries_with_answer": 0,
    }
    assert found.grades == {"0": 2, "1": 4, "2": 1}
    assert found.query_types == {"bridge": 1, "direct": 3}
    # 3, 1, 1 and 0 relevant documents
    assert found.relevant_per_query == Spread(0, 1.0, 1.25, 3)
    # 7, 2, 2 and 3 words
    assert found.query_tokens == Spread(2, 2.5, 3.5, 7)


def test_what_is_odd():
    found = described(small())
    assert found.unjudged == ("q9",)
    assert found.without_relevant == ("q4",)
    assert found.duplicate_queries == (("q2", "q3"),)
    assert found.near_duplicate_queries == ()  # duplicates are told once
    assert found.duplicate_documents == (("d3", "d4"),)
    assert found.empty_gold == ("d5",)
    assert found.twins == (("q1", "d4"),)  # d3 is relevant, and its copy d4 is not judged
    assert found.unknown_gold == ()


def test_gold_that_is_not_in_the_corpus():
    dataset = small()
    broken = replace(dataset, qrels={**dataset.qrels, "q2": {"d5": 1.0, "gone": 1.0}})
    found = described(broken)
    assert found.unknown_gold == (("q2", "gone"),)


def test_the_highest_possible_recall():
    documents = [Document(f"d{n}", "", f"text {n}") for n in range(8)]
    dataset = Dataset.create(
        "many",
        "here",
        documents=documents,
        queries=[Query("q1", "one"), Query("q2", "two")],
        qrels={"q1": {d.id: 1 for d in documents}, "q2": {"d1": 1}},
    )
    # (5/8 + 1) / 2
    assert described(dataset).recall_ceiling == {5: 0.8125, 10: 1.0, 20: 1.0}


def test_near_duplicates():
    texts = ["who was the first king of france?", "who was the first King of France", "rivers"]
    pairs = near_duplicates(texts, threshold=0.8)
    assert [(pair.first, pair.second) for pair in pairs] == [(0, 1)]
    assert 0.8 <= pairs[0].similarity <= 1.0
    same = near_duplicates(["巴黎在哪里", "x", "巴黎在哪里"])
    assert [(pair.first, pair.second) for pair in same] == [(0, 2)]
    assert same[0].similarity == pytest.approx(1.0)
    assert near_duplicates(["one"]) == []
    assert near_duplicates(["", " "]) == []


def test_the_similarity_of_near_duplicates_by_hand():
    # Runs of 2 to 4 characters of " ab ": " a", "ab", "b ", " ab", "ab ", " ab "; likewise " ac ".
    # They share " a", which both hold: idf ln(3/3) + 1 = 1; the five others: ln(3/2) + 1 = 1.4055.
    # cosine = 1 / (1 + 5 * 1.4055^2)
    expected = 1 / (1 + 5 * (math.log(3 / 2) + 1) ** 2)
    (pair,) = near_duplicates(["ab", "ac"], threshold=0.09)
    assert pair.similarity == pytest.approx(expected) == pytest.approx(0.0919, abs=1e-4)
    assert near_duplicates(["ab", "ac"], threshold=0.093) == []


TEXTS = st.lists(st.text("ab c北", max_size=8), max_size=12)


@given(TEXTS, st.floats(0.1, 1.0), st.randoms())
def test_near_duplicates_do_not_depend_on_order_and_shrink_with_the_threshold(
    texts, threshold, random
):
    def found(given, at):
        pairs = near_duplicates(given, threshold=at)
        return Counter(tuple(sorted((given[p.first], given[p.second]))) for p in pairs)

    shuffled = random.sample(texts, len(texts))
    assert found(texts, threshold) == found(shuffled, threshold)
    assert found(texts, min(1.0, threshold + 0.2)) <= found(texts, threshold)
    for pair in near_duplicates(texts, threshold=threshold):
        assert threshold - 1e-9 <= pair.similarity <= 1.0
        assert pair.first < pair.second


def test_blocks_meet_across_their_borders():
    texts = [f"word{n} other{n * 7}" for n in range(1100)]
    texts[1099] = texts[3]
    texts[600] = texts[599]
    found = {(p.first, p.second) for p in near_duplicates(texts, threshold=0.999)}
    assert found == {(3, 1099), (599, 600)}


def test_the_built_in_set_is_clean():
    found = described(open_dataset("builtin:atlas"))
    assert found.duplicate_queries == found.duplicate_documents == found.unknown_gold == ()
    assert found.empty_gold == found.twins == found.without_relevant == ()


def test_queries_that_are_worded_alike_are_torn_where_one_is_held_out():
    assert torn_pairs(small(), {"q3"}) == torn_pairs(small(), {"q2", "q1"}) == [("q2", "q3")]
    assert torn_pairs(small(), {"q2", "q3"}) == torn_pairs(small(), {"q1"}) == []
