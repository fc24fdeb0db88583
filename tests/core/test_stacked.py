"""Answers to several batches as those to one: in order, as wide as the widest of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tuner.core.rankings import Legs, Rankings
from tuner.core.stacked import stacked


def part(names, answers, **extra):
    return Rankings.from_ids(names, answers, **extra)


def test_rows_come_in_order_and_ids_are_those_of_all():
    first = part(["a", "b"], [["x", "y"], ["y"]], context_tokens=np.array([3.0, 1.0]))
    second = part(["c"], [["z", "y", "x"]], context_tokens=np.array([9.0]))
    whole = stacked([first, second], np.array([2, 0, 1]))
    assert whole.query_ids == ("c", "a", "b")
    assert [whole.ids(row) for row in range(3)] == [["z", "y", "x"], ["x", "y"], ["y"]]
    assert whole.context_tokens.tolist() == [9.0, 3.0, 1.0]
    assert whole.documents.shape == (3, 3)


def test_what_one_part_lacks_all_lack():
    first = part(["a"], [["x"]], tokens=np.array([[4.0]]), graph_used=np.array([True]))
    second = part(["b"], [["x"]], graph_used=np.array([False]))
    whole = stacked([first, second], np.arange(2))
    assert whole.tokens is None
    assert whole.graph_used.tolist() == [True, False]


def test_legs_are_as_wide_as_the_widest():
    def with_legs(rankings, width):
        documents = np.arange(width)[None, :]
        scores = np.ones((2, 1, width), dtype=np.float32)
        return replace(rankings, legs=Legs(("graph", "text"), documents, scores, scores[0] * 2.0))

    first = with_legs(part(["a"], [["x", "y"]]), 2)
    second = with_legs(part(["b"], [["z", "x", "y"]]), 3)
    legs = stacked([first, second], np.arange(2)).legs
    # x, y and z are 0, 1 and 2 in all; the second part counts them from z on.
    assert legs.documents.tolist() == [[0, 1, -1], [2, 0, 1]]
    assert legs.scores.dtype == np.float32
    assert legs.scores[:, 0].tolist() == [[1.0, 1.0, 0.0]] * 2
    assert legs.tokens.tolist() == [[2.0, 2.0, 0.0], [2.0, 2.0, 2.0]]
    assert stacked([first, part(["c"], [["x"]])], np.arange(2)).legs is None
