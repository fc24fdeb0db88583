"""Grid search: its points, its order and its named levels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tuner.backends.grid import Grid
from tuner.core.errors import InputError
from tuner.core.space import Categorical, Integer, Real, SearchSpace
from tuner.core.trial import Params, Trial, TrialState

SPACE = SearchSpace({"a": Real(0, 1), "k": Integer(1, 9)})


def keys(points: list[Params]) -> set[str]:
    return {SPACE.key(params) for params in points}


def told(points: list[Params], worth: Callable[[Params], float]) -> list[Trial]:
    return [Trial(i, "grid", p, TrialState.FINISHED, worth(p)) for i, p in enumerate(points)]


def walked(grid: Grid, space: SearchSpace, trials: int, worth: Callable[[Params], float]) -> Any:
    history: list[Trial] = []
    for number in range(trials):
        for params in grid.suggest(space, history, count=1, seed=0):
            history.append(Trial(number, "grid", params, TrialState.FINISHED, worth(params)))
    return history


def away(params: Params) -> float:
    """Peak at a = .8, k = 3."""
    return -abs(float(params["a"]) - 0.8) - 0.1 * abs(int(params["k"]) - 3)  # type: ignore[arg-type]


def test_an_even_grid_comes_first_in_a_seeded_order() -> None:
    grid = SPACE.grid(12)
    first, other = (Grid(20).suggest(SPACE, [], count=12, seed=seed) for seed in (0, 1))
    assert keys(first) == keys(other) == keys(grid)
    assert first != other != grid


def test_then_one_parameter_of_the_best_is_changed_at_a_time() -> None:
    history = walked(Grid(24), SPACE, 24, away)
    for trial in history[12:]:
        best = max(history[: trial.number], key=lambda one: one.worth).params
        assert sum(trial.params[name] != best[name] for name in SPACE.names) == 1
    # The grid's best is at (.875, 2): .175 below the peak.
    assert max(trial.worth for trial in history) > max(t.worth for t in history[:12]) + 0.1


def test_a_longer_search_begins_as_a_shorter_one() -> None:
    short, long = walked(Grid(16), SPACE, 16, away), walked(Grid(32), SPACE, 32, away)
    assert [t.params for t in long[:16]] == [t.params for t in short]


def test_a_grid_as_large_as_the_budget_is_all_there_is() -> None:
    points = Grid(20, coarse=20).suggest(SPACE, [], count=100, seed=0)
    assert keys(points) == keys(SPACE.grid(20))
    assert not Grid(20, coarse=20).learns
    assert Grid(20).learns


def test_levels_reach_the_edges_where_asked() -> None:
    points = Grid(20, coarse=20, edges=True).suggest(SPACE, [], count=100, seed=0)
    assert keys(points) == keys(SPACE.grid(20, edges=True))
    assert {0.0, 1.0} <= {params["a"] for params in points}
    with pytest.raises(InputError, match="must be true or false, got 'yes'"):
        Grid(20, edges="yes")  # type: ignore[arg-type]


def test_nothing_between_named_levels_is_tried() -> None:
    grid = Grid(30, levels={"k": [1, 4, 9]})
    assert {trial.params["k"] for trial in walked(grid, SPACE, 30, away)} == {1, 4, 9}
    points = Grid(20, levels={"a": [0.1, 0.2], "k": 3}).suggest(SPACE, [], count=100, seed=0)
    assert keys(points) == keys([{"a": a, "k": k} for a in (0.1, 0.2) for k in (2, 5, 8)])


def test_of_choices_and_named_levels_all_combinations_are_asked_in_a_mixed_order() -> None:
    choices = {name: Categorical(("a", "b", "c")) for name in ("one", "two")}
    space = SearchSpace({**choices, "k": Integer(1, 9)})
    points = Grid(27, levels={"k": [1, 5, 9]}).suggest(space, [], count=100, seed=0)
    assert len({space.key(params) for params in points}) == 27
    for name in space.names:
        assert len({params[name] for params in points[:9]}) == 3
    # A shorter search has a part of them, of every choice.
    assert Grid(9, levels={"k": [5]}).suggest(space, [], count=100, seed=0) == Grid(
        100, levels={"k": [5]}
    ).suggest(space, [], count=100, seed=0)


def test_what_it_begins_with_is_said() -> None:
    assert Grid(20).described(SPACE) == (
        "12 points: a 0.125, 0.375, 0.625, 0.875; k 2, 5, 8; then closer levels around the best"
    )
    assert Grid(4, coarse=4, edges=True).described(SPACE) == "4 points: a 0, 1; k 1, 9"


def test_levels_beyond_the_budget_are_refused() -> None:
    with pytest.raises(InputError, match="18 points but the budget is 10 trials"):
        Grid(10, levels={"a": [0.1, 0.2], "k": 9}).suggest(SPACE, [], count=1, seed=0)


@pytest.mark.parametrize("levels", [3, "all", [1, 2], None])
def test_levels_are_a_mapping(levels: Any) -> None:
    with pytest.raises(InputError, match="must map parameters to levels"):
        Grid(10, levels=levels)


def test_points_that_others_tried_are_left_out() -> None:
    grid = SPACE.grid(12)
    seen = [Trial(i, "tpe", params, TrialState.FINISHED, 0.5) for i, params in enumerate(grid[:7])]
    points = Grid(20).suggest(SPACE, seen, count=5, seed=0)
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
    assert settings(grid) == {(100, 64), (100, 192), (300, 64), (300, 192)}
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
