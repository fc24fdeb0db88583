"""Rankings at an equal budget of context tokens, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.corpus import Document, Query
from tuner.core.errors import MetricError
from tuner.core.rankings import Rankings
from tuner.evaluation.evaluator import Evaluator
from tuner.metrics.passages import Passages

TEXTS = {"a": "one two three", "b": "one two", "c": "one", "d": "one two three four five"}
PASSAGES = Passages.build(list(TEXTS), list(TEXTS.values()), ["q", "q"])


def within(answers, budget, **extra):
    rankings = Rankings.from_ids([f"q{n}" for n in range(len(answers))], answers, **extra)
    return PASSAGES.within(rankings, budget)


def test_a_ranking_ends_before_the_first_passage_that_does_not_fit():
    # 3 + 2 fit into 5; then 5 more do not, and what follows is not read although it would fit.
    cut = within([["a", "b", "d", "c"], ["d", "c"]], 5)
    assert [cut.ids(0), cut.ids(1)] == [["a", "b"], ["d"]]
    assert cut.context_tokens.tolist() == [5.0, 5.0]


def test_a_first_passage_beyond_the_budget_leaves_nothing():
    cut = within([["d", "c"], ["c"]], 4)
    assert [cut.ids(0), cut.ids(1)] == [[], ["c"]]
    assert cut.context_tokens.tolist() == [0.0, 1.0]


def test_scores_are_cut_with_their_documents():
    cut = within([["a", "d"], ["c"]], 3, scores=np.array([[2.0, 1.0], [3.0, np.nan]]))
    np.testing.assert_array_equal(cut.scores, [[2.0, np.nan], [3.0, np.nan]])


def test_the_retrievers_own_count_does_not_decide():
    cut = within([["a"], ["b"]], 2, context_tokens=np.array([1.0, 1.0]))
    assert [cut.ids(0), cut.ids(1)] == [[], ["b"]]


def test_a_passage_without_text_is_an_error():
    with pytest.raises(MetricError, match="'x' was retrieved, but its text is not in the corpus"):
        within([["x"], ["a"]], 5)


@given(st.lists(st.permutations(list(TEXTS)), min_size=1, max_size=4), st.integers(1, 12))
def test_no_ranking_exceeds_the_budget_and_each_is_the_longest_that_fits(answers, budget):
    cut = within(answers, budget)
    for row, answer in enumerate(answers):
        kept = cut.ids(row)
        assert kept == answer[: len(kept)]
        used = sum(len(TEXTS[id_].split()) for id_ in kept)
        assert used == cut.context_tokens[row] <= budget
        if len(kept) < len(answer):
            assert used + len(TEXTS[answer[len(kept)]].split()) > budget


class Generous:
    knobs = ()
    fingerprint = "f"

    def prepare(self, queries):
        pass

    def retrieve(self, queries, params):
        return Rankings.from_ids([query.id for query in queries], [["b", "d", "c", "a"]])


def test_systems_are_measured_at_equal_budgets():
    documents = [Document(id_, "", text) for id_, text in TEXTS.items()]

    def evaluate(budget):
        names = ["recall@10", "context_tokens", "redundancy"]
        evaluator = Evaluator.build(
            Generous(), [Query("q", "one")], {"q": {"a": 1, "b": 1}}, names,
            documents=documents, budget_tokens=budget,
        )  # fmt: skip
        return evaluator({}).metrics

    assert (evaluate(None)["recall@10"], evaluate(None)["context_tokens"]) == (1.0, 11.0)
    assert (evaluate(8)["recall@10"], evaluate(8)["context_tokens"]) == (0.5, 8.0)
    with pytest.raises(MetricError, match="a budget of tokens needs the documents' texts"):
        Evaluator.build(Generous(), [Query("q", "one")], {"q": {"a": 1}}, [], budget_tokens=8)
