"""The evenly spread points that model-based backends start from."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from tuner.backends._points import quasi_random, random_unseen, spread_unseen
from tuner.core.space import Integer, Real, SearchSpace
from tuner.core.trial import Trial


@pytest.mark.parametrize("dimensions", [1, 2, 4, 8])
def test_spread_points_cover_more_evenly_than_random_ones(dimensions: int) -> None:
    space = SearchSpace({f"x{i}": Real(0, 1) for i in range(dimensions)})

    def unevenness(points: np.ndarray) -> float:
        # Of 20 sorted values, how far each is from its place, over all parameters.
        ideal = (np.arange(20) + 0.5)[:, None] / 20
        return float(np.abs(np.sort(points, axis=0) - ideal).mean())

    spread, random = [], []
    for seed in range(10):
        params = islice(quasi_random(space, seed=seed), 20)
        spread.append(unevenness(np.array([space.encode(p) for p in params])))
        random.append(unevenness(np.random.default_rng(seed).random((20, dimensions))))
    assert np.mean(spread) < 0.8 * np.mean(random)


def test_points_asked_together_are_those_asked_one_by_one() -> None:
    space = SearchSpace({"a": Integer(1, 4), "b": Integer(1, 4)}, ("a <= b",))
    together = spread_unseen(space, [], count=10, seed=3)
    history: list[Trial] = []
    for number in range(10):
        (params,) = spread_unseen(space, history, count=1, seed=3)
        history.append(Trial(number, "gp", params))
    assert [trial.params for trial in history] == together
    assert spread_unseen(space, history, count=1, seed=3) == []


def test_the_last_unseen_point_is_found_where_draws_miss_it() -> None:
    space = SearchSpace({"a": Integer(1, 200), "b": Integer(1, 200)})
    taken = {(("a", int, a), ("b", int, b)) for a in range(1, 201) for b in range(1, 201)} - {
        (("a", int, 77), ("b", int, 5))
    }
    assert random_unseen(space, taken, np.random.default_rng(0)) == {"a": 77, "b": 5}
