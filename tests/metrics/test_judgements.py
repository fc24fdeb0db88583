"""Rows of different lengths as a matrix, which all that is judged is laid out in."""

from __future__ import annotations

import numpy as np
import pytest

from tuner.metrics.judgements import padded


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([2, 0, 1], [[1.0, 2.0], [-1.0, -1.0], [3.0, -1.0]]),
        ([1, 1, 1], [[1.0], [2.0], [3.0]]),  # as wide as the longest row, and no wider
        ([3], [[1.0, 2.0, 3.0]]),
    ],
)
def test_rows_are_filled_up_to_the_longest(lengths, expected):
    values = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(padded(values, np.array(lengths), fill=-1.0), expected)


def test_without_any_value_there_is_one_column():
    np.testing.assert_array_equal(padded(np.empty(0), np.array([0, 0]), fill=7.0), [[7.0], [7.0]])
    assert padded(np.empty(0), np.empty(0, dtype=int)).shape == (0, 1)
