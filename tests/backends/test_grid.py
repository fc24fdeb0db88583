"""Grid search: its points, its order and its named levels."""

from __future__ import annotations

from typing import Any

import pytest

from tuner.backends.grid import Grid
from tuner.core.errors import InputError
from tuner.core.space import Integer, Real, SearchSpace
from tuner.core.trial import Params, Trial, TrialState

SPACE = SearchSpace({"a": Real(0, 1), "k": Integer(1, 9)})


def keys(points: list[Params]) -> set[str]:
    return {SPACE.key(params) for params in points}


def test_the_whole_grid_is_suggested_once_in_a_seeded_order() -> None:
    grid = SPACE.grid(20)
    first = Grid(20).suggest(SPACE, [], count=100, seed=0)
    other = Grid(20).suggest(SPACE, [], count=100, seed=1)
    assert keys(first) == keys(other) == keys(grid)
    assert len(first) == len(grid)
    assert first != other != grid


def test_levels_are_named() -> None:
    points = Grid(20, levels={"a": [0.1, 0.2], "k": 3}).suggest(SPACE, [], count=100, seed=0)
    assert keys(points) == keys([{"a": a, "k": k} for a in (0.1, 0.2) for k in (1, 5, 9)])


def test_levels_beyond_the_budget_are_refused() -> None:
    with pytest.raises(InputError, match="18 points but the budget is 10 trials"):
        Grid(10, levels={"a": [0.1, 0.2], "k": 9}).suggest(SPACE, [], count=1, seed=0)


@pytest.mark.parametrize("levels", [3, "all", [1, 2], None])
def test_levels_are_a_mapping(levels: Any) -> None:
    with pytest.raises(InputError, match="must map parameters to levels"):
        Grid(10, levels=levels)


def test_points_that_others_tried_are_left_out() -> None:
    grid = SPACE.grid(20)
    seen = [Trial(i, "tpe", params, TrialState.FINISHED, 0.5) for i, params in enumerate(grid[:7])]
    points = Grid(20).suggest(SPACE, seen, count=100, seed=0)
    assert keys(points) == keys(grid[7:])


def test_suggestions_are_the_callers_to_change() -> None:
    backend = Grid(20)
    backend.suggest(SPACE, [], count=1, seed=0)[0]["a"] = "spoilt"
    assert backend.suggest(SPACE, [], count=1, seed=0) == Grid(20).suggest(
        SPACE, [], count=1, seed=0
    )


def test_one_instance_serves_several_spaces() -> None:
    backend = Grid(4)
    other = SearchSpace({"b": Integer(1, 4)})
    assert "a" in backend.suggest(SPACE, [], count=1, seed=0)[0]
    assert "b" in backend.suggest(other, [], count=1, seed=0)[0]
