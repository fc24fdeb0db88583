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


INDEXED = SearchSpace(
    {
        "chunk": Integer(100, 400, step=100),
        "dim": Integer(64, 256, step=64),
        "k": Integer(1, 8),
        "weight": Real(0, 1),
    }
).with_index(["chunk", "dim"])


def settings(grid: Grid) -> set[tuple[object, object]]:
    points = grid.suggest(INDEXED, (), count=grid.budget, seed=1)
    return {(params["chunk"], params["dim"]) for params in points}


def test_a_grid_with_room_for_its_indexes_is_as_it_was() -> None:
    grid = Grid(4 * 4 * 4 * 4)
    assert len(settings(grid)) == 16
    assert grid.within(INDEXED, [], 16) is grid
    assert grid.within(INDEXED, [{"chunk": 200, "dim": 64}], 15) is grid


def test_a_grid_without_room_gets_coarser_in_its_index_and_finer_in_the_rest() -> None:
    grid = Grid(4 * 4 * 4 * 4).within(INDEXED, [], 5)
    assert settings(grid) == {(100, 64), (100, 256), (400, 64), (400, 256)}
    points = grid.suggest(INDEXED, (), count=256, seed=1)
    assert len({params["k"] for params in points}) == 8  # 4 * 8 * 8 = 256
    assert len(points) == 256


def test_a_known_index_is_none_of_those_that_a_grid_may_ask_for() -> None:
    known = [{"chunk": 100, "dim": 64}]
    assert len(settings(Grid(256).within(INDEXED, known, 3))) == 4
    assert len(settings(Grid(256).within(INDEXED, known, 2))) == 2
    assert settings(Grid(256).within(INDEXED, known, 0)) == {(100, 64)}


def test_named_levels_of_the_index_are_kept_or_refused() -> None:
    grid = Grid(256, levels={"chunk": [100, 200, 300], "k": [1, 2]})
    within = grid.within(INDEXED, [], 3)
    assert settings(within) == {(100, 192), (200, 192), (300, 192)}
    assert {p["k"] for p in within.suggest(INDEXED, (), count=256, seed=0)} == {1, 2}
    with pytest.raises(InputError, match=r"need more than the 2 new indexes") as refused:
        grid.within(INDEXED, [], 2)
    assert refused.value.problems[0].key == ("levels",)
