"""Words and vectors mixed anew on prepared queries, and seeds that are tuned."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tuner.retrieval.hybrid.fusion import normalise_text
from tuner.retrieval.hybrid.mixture import corners, mixed, scaled

shares = st.lists(st.integers(0, 20), min_size=1, max_size=30)


@given(pairs=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=30))
def test_the_ends_of_every_mixture_are_among_the_corners(pairs):
    lexical, dense = np.array(pairs, dtype=np.float32).T[:, None, :] / 20
    first, second = corners(lexical, dense)
    for weight in (0.0, 0.13, 0.5, 0.77, 1.0):
        everything, ends = mixed(lexical, dense, weight), mixed(first, second, weight)
        np.testing.assert_allclose(ends.min(), everything.min(), atol=1e-6)
        np.testing.assert_allclose(ends.max(), everything.max(), atol=1e-6)


@given(scores=shares, kept=st.integers(1, 30))
def test_some_documents_are_scaled_as_among_all(scores, kept):
    whole = np.array([scores], dtype=np.float32) / 20
    np.testing.assert_array_equal(scaled(whole[:, :kept], whole), normalise_text(whole)[:, :kept])


def test_seeds_are_tuned_on_prepared_queries(build, corpus, queries):
    engine = build(corpus, seeds=2, most_seeds=12)
    settings = [{"seeds": seeds, "temperature": 1.0} for seeds in (1, 2, 5, 12)]
    live = [engine.retrieve(queries, each) for each in settings]
    engine.prepare(queries)
    for each, expected in zip(settings, live, strict=True):
        found = engine.retrieve(queries, each)
        np.testing.assert_allclose(found.scores, expected.scores, atol=3e-6)
        alone = build(corpus, seeds=each["seeds"]).retrieve(queries, {"temperature": 1.0})
        np.testing.assert_allclose(alone.scores, expected.scores, atol=3e-6)
