"""Contexts with the relevant passage at each rank, and what is told of answers asked twice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.answers.contexts import passage_texts
from tuner.answers.positions import Ablation, Placed, SelfAgreement
from tuner.core.corpus import Document, Query
from tuner.core.errors import InputError
from tuner.core.rankings import WHOLE, Rankings

NAN = float("nan")


@given(passages=st.integers(2, 12), data=st.data())
def test_a_context_has_one_length_and_keeps_the_order_of_the_others(passages, data):
    placed = Placed(Query("q", "?"), "gold", tuple(f"p{place}" for place in range(passages)))
    rank = data.draw(st.integers(1, passages))
    context = placed.context(rank)
    assert len(context) == len(placed.context(0)) == passages
    assert context[rank - 1] == "gold"
    assert [text for text in context if text != "gold"] == list(placed.others[:-1])
    assert "gold" not in placed.context(0)


def test_rank_1_is_always_tried_and_ranks_beyond_the_context_are_refused():
    assert Ablation(4).tried == (1, 2, 3, 4)
    assert Ablation(10, (5, 3, 5)).tried == (1, 3, 5)
    for rank in (0, 11):
        with pytest.raises(InputError, match=f"{rank} is no rank of a context of 10 passages"):
            Ablation(10, (rank,)).tried  # noqa: B018  # it raises


def test_self_agreement_is_of_what_was_answered_twice():
    first, second = np.array([0.5, 0.5, NAN, 1.0]), np.array([0.5, 0.2, 1.0, NAN])
    found = SelfAgreement.of(first, second)
    assert (found.pairs, found.same) == (2, 0.5)
    assert found.mean_difference == pytest.approx(0.15)  # (0 + .3) / 2
    assert SelfAgreement.of(first[2:], second[2:]) == SelfAgreement(0, None, None)


def test_a_passage_is_its_title_and_what_was_retrieved_of_its_text():
    documents = {
        "a": Document("a", "Ada", "She wrote notes. They were long."),
        "b": Document("b", "", "Babbage built it."),
    }
    spans = np.array([[(0, 16), WHOLE, WHOLE]])
    rankings = Rankings.from_ids(["q"], [["a", "gone", "b"]], spans=spans)
    found = passage_texts(rankings, 0, documents)
    assert list(found.items()) == [("a", "Ada\nShe wrote notes."), ("b", "Babbage built it.")]
