"""Answers of a system that counts passages: what so many of them give, and for which tokens."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tuner.core.rankings import ByCount, Rankings
from tuner.core.stacked import stacked

# Query a: passages of x, x, y and of y and z together; query b: one of y. Beside them the contexts
# have 5 and 0 tokens.
COUNTS = ByCount.of([[1, 3, 4], [1]], [[5.0, 7.0, 9.0, 12.0, 20.0], [0.0, 3.0]])
ANSWER = Rankings.from_ids(
    ["a", "b"], [["x", "y", "z"], ["y"]], context_tokens=np.array([20.0, 3.0]), by_count=COUNTS
)


def test_so_many_passages_give_the_documents_that_they_are_of():
    expected = {
        0: ([[], []], [5.0, 0.0]),
        1: ([["x"], ["y"]], [7.0, 3.0]),
        2: ([["x"], ["y"]], [9.0, 3.0]),
        3: ([["x", "y"], ["y"]], [12.0, 3.0]),
        4: ([["x", "y", "z"], ["y"]], [20.0, 3.0]),
        9: ([["x", "y", "z"], ["y"]], [20.0, 3.0]),
    }
    for count, (ids, tokens) in expected.items():
        cut = ANSWER.first(count)
        assert [cut.ids(row) for row in range(2)] == ids
        assert cut.context_tokens.tolist() == tokens
        again = ANSWER.first(max(count, 2)).first(count)
        assert [again.ids(row) for row in range(2)] == ids
        assert again.context_tokens.tolist() == tokens


def test_tokens_that_are_not_told_are_not_known():
    untold = replace(ANSWER, by_count=ByCount.of([[1, 3, 4], [1]], None))
    assert untold.first(3).context_tokens is None
    assert untold.first(3).ids(0) == ["x", "y"]


def test_parts_are_put_together():
    other = Rankings.from_ids(["c"], [["w"]], by_count=ByCount.of([[2]], [[1.0, 2.0, 4.0]]))
    whole = stacked([ANSWER, other], np.array([2, 0, 1]))
    assert whole.first(1).ids(0) == []
    assert whole.first(3).context_tokens.tolist() == [4.0, 12.0, 3.0]
    assert whole.first(4).ids(1) == ["x", "y", "z"]
    assert stacked([ANSWER, replace(other, by_count=None)], np.arange(3)).by_count is None
