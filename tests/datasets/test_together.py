"""Queries that stay together: groups, and copies of one text."""

from __future__ import annotations

import pytest

from tuner.core.corpus import Query
from tuner.datasets import cut_queries, split_queries
from tuner.datasets.together import together


def test_groups_and_copies_stay_together_and_so_does_what_they_share():
    queries = [
        Query("a", "Who is Ada?"),
        Query("b", "Where is Paris?", group="g"),
        Query("c", "who is  ada"),
        Query("d", "When was it?", group="g"),
        Query("e", "WHERE IS PARIS"),
        Query("f", "Which one?"),
    ]
    assert together(queries).tolist() == [0, 1, 0, 1, 1, 5]


def test_two_sets_become_one_by_a_query_that_is_in_both():
    queries = [Query("a", "x"), Query("b", "y", group="g"), Query("c", "x", group="g")]
    assert together(queries).tolist() == [0, 0, 0]


def test_queries_without_a_text_of_their_own_share_none():
    queries = [Query("a", "a"), Query("b", "b"), Query("c", "?"), Query("d", "?")]
    assert together(queries).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("seed", range(5))
def test_copies_are_on_one_side_of_a_split_and_in_one_part(seed):
    queries = [Query(f"q{i:02}", f"question {i % 20}") for i in range(60)]
    for sides in (
        split_queries(queries, holdout=0.5, stratify_by=(), seed=seed),
        cut_queries(queries, 3, stratify_by=(), seed=seed),
    ):
        texts = [{int(id_[1:]) % 20 for id_ in side} for side in sides]
        assert sum(map(len, texts)) == 20
        assert sum(map(len, sides)) == 60
