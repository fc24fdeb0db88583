"""Reach, counted by hand: how much of the gold words or walks can find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.corpus import Document, Query
from tuner.datasets import Dataset
from tuner.evalset.reach import Reach, measure_reach
from tuner.evalset.statistics import relevant_documents

HOPS = {("q1", "d1"): 1, ("q1", "d2"): 2, ("q2", "d3"): 4}


def small() -> Dataset:
    return Dataset.create(
        "small",
        "here",
        documents=[
            Document("d1", "Ada", "studied with Babbage"),
            Document("d2", "Babbage", "born in London"),
            Document("d3", "Thames", ""),
        ],
        queries=[
            Query("q1", "Where was the teacher of Ada born?"),
            Query("q2", "Which river?"),
            Query("q3", "Nothing relevant here"),
        ],
        qrels={"q1": {"d1": 1, "d2": 2}, "q2": {"d3": 1}, "q3": {"d1": 0}},
    )


def reach_of(dataset: Dataset, *, hops: dict[tuple[str, str], int] = HOPS, most: int = 3) -> Reach:
    return measure_reach(
        dataset,
        relevant_documents(dataset),
        terms_of=lambda texts: [[w.strip("?").lower() for w in t.split()] for t in texts],
        walk=lambda _, pairs: [hops.get(pair) for pair in pairs],
        most_hops=most,
    )


def test_shares_are_averaged_over_queries_as_recall_is() -> None:
    reach = reach_of(small())
    assert reach.in_corpus == 1.0
    # q1: d1 shares "ada" and d2 "born": 2/2. q2: nothing, 0/1. q3 has none, and does not count.
    assert reach.by_words == pytest.approx((2 / 2 + 0 / 1) / 2)
    # q1: d1 after 1 hop, d2 after 2. q2: d3 after 4, which is one more than is looked at.
    assert reach.by_graph == pytest.approx({1: (1 / 2) / 2, 2: (2 / 2) / 2, 3: 1 / 2})
    assert reach.by_either == pytest.approx({1: 1 / 2, 2: 1 / 2, 3: 1 / 2})
    # With 4 hops the graph finds what words do not.
    assert reach_of(small(), most=4).by_either[4] == 1.0


def test_gold_that_is_not_in_the_corpus_is_out_of_reach() -> None:
    dataset = small()
    broken = replace(dataset, qrels={**dataset.qrels, "q2": {"d3": 1.0, "gone": 1.0}})
    reach = reach_of(broken)
    # q1: 2/2; q2: d3, but not the one that is gone: 1/2.
    assert reach.in_corpus == pytest.approx((1 + 1 / 2) / 2)


def test_without_any_relevant_document_nothing_is_known() -> None:
    dataset = replace(small(), qrels={"q1": {"d1": 0.0}, "q2": {}, "q3": {}})
    assert reach_of(dataset, most=2) == Reach(None, None, {1: None, 2: None}, {1: None, 2: None})


@given(st.lists(st.none() | st.integers(1, 6), min_size=3, max_size=3))
def test_more_hops_reach_no_less_and_both_together_no_less_than_each(
    walked: Sequence[int | None],
) -> None:
    pairs = [("q1", "d1"), ("q1", "d2"), ("q2", "d3")]
    hops = {pair: n for pair, n in zip(pairs, walked, strict=True) if n is not None}
    reach = reach_of(small(), hops=hops, most=6)
    for shares in (reach.by_graph, reach.by_either):
        values = [share for share in shares.values() if share is not None]
        assert values == sorted(values)
    for most, either in reach.by_either.items():
        graph = reach.by_graph[most]
        assert None not in (either, graph, reach.by_words)
        assert max(graph, reach.by_words) <= either <= 1.0
