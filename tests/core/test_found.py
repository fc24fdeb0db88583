"""The ranks of what is relevant as one number a query."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.found import DEEPEST, found_at, ranks_of


@given(st.lists(st.booleans(), max_size=80))
def test_ranks_come_back_as_far_as_is_told(hits):
    value = found_at(np.array([hits], dtype=bool))[0]
    depth = min(len(hits), DEEPEST)
    assert ranks_of(value) == (tuple(n + 1 for n in range(depth) if hits[n]), depth)


def test_a_query_that_was_not_asked_has_none():
    assert ranks_of(float("nan")) is None
    assert ranks_of(0.5) is None
    assert ranks_of(2.0**60) is None
