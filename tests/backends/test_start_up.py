"""The evenly spread points that model-based backends start from."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from tuner.backends.points import Point, point_of, quasi_random, random_unseen, spread_unseen
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


def test_draws_end_where_constraints_refuse_all() -> None:
    space = SearchSpace({"a": Real(0, 1), "b": Integer(1, 10**9)}, ("a > b",))
    assert random_unseen(space, set(), np.random.default_rng(0)) is None


def test_rare_points_are_drawn_where_the_space_is_too_large_to_enumerate() -> None:
    # 1 in 12,500: 10,000 draws miss it almost every other time.
    space = SearchSpace({"a": Integer(1, 100_000)}, ("a <= 8",))
    found = [random_unseen(space, set(), np.random.default_rng(seed)) for seed in range(3)]
    assert all(params is not None and space.contains(params) for params in found)


def test_rare_points_of_a_small_space_are_found_by_looking_at_each() -> None:
    space = SearchSpace({name: Integer(0, 19) for name in "abc"}, ("a + b + c >= 56",))
    taken: set[Point] = set()
    rng = np.random.default_rng(0)
    while (params := random_unseen(space, taken, rng)) is not None:
        assert space.contains(params)
        taken.add(point_of(params))
    # 19 + 19 + 19, and three ways of 18 + 19 + 19
    assert len(taken) == 4


def test_the_last_unseen_point_is_found_where_draws_miss_it() -> None:
    space = SearchSpace({"a": Integer(1, 200), "b": Integer(1, 200)})
    taken = {(("a", int, a), ("b", int, b)) for a in range(1, 201) for b in range(1, 201)} - {
        (("a", int, 77), ("b", int, 5))
    }
    assert random_unseen(space, taken, np.random.default_rng(0)) == {"a": 77, "b": 5}
