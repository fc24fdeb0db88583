"""Grids: how levels are chosen, named and refused."""

from __future__ import annotations

from typing import Any

import pytest

from tuner.core.errors import InputError
from tuner.core.space import Categorical, Integer, Real, SearchSpace
from tuner.core.space.expression import Constraint
from tuner.core.space.grids import MOST_LOOKED_AT
from tuner.core.trial import Params, Scalar

PLAIN = SearchSpace(
    {
        "graph_weight": Real(0.0, 1.0),
        "max_hops": Integer(1, 5),
        "top_k": Integer(3, 30),
        "temperature": Real(0.01, 1.0, scale="log"),
    }
)


def levels(
    space: SearchSpace, budget: int, named: Any = None, *, edges: bool = False
) -> dict[str, list[Scalar]]:
    grid = space.grid(budget, named, edges=edges)
    return {name: list(dict.fromkeys(p[name] for p in grid if name in p)) for name in space.names}


def test_the_product_fits_the_budget_evenly() -> None:
    # 3 x 3 x 3 x 2 = 54; any fourth level, or a third of the last, makes 72 or 81.
    assert levels(PLAIN, 60, edges=True) == {
        "graph_weight": [0.0, 0.5, 1.0],
        "max_hops": [1, 3, 5],
        "top_k": [3, 17, 30],
        "temperature": [0.01, 1.0],
    }
    assert levels(PLAIN, 81, edges=True)["temperature"] == [0.01, 0.1, 1.0]


def test_levels_lie_in_the_middles_of_equal_parts() -> None:
    # 5 hops own a fifth of the range each: their middles are at .1, .3, .5, .7, .9; 1/6 and 5/6
    # lie in the first and the last fifth. 28 values of top_k: 2.5 + 28 / 6 = 7.2, 16.5, 25.8.
    # Temperatures: 10 ** -1.5 and 10 ** -0.5.
    assert levels(PLAIN, 60) == {
        "graph_weight": [0.166666666667, 0.5, 0.833333333333],
        "max_hops": [1, 3, 5],
        "top_k": [7, 17, 26],
        "temperature": [0.0316227766017, 0.316227766017],
    }


@pytest.mark.parametrize(("budget", "points"), [(1, 1), (2, 2), (15, 12), (16, 16), (60, 54)])
def test_grid_sizes(budget: int, points: int) -> None:
    assert len(PLAIN.grid(budget)) == points


def test_one_level_is_the_middle() -> None:
    assert PLAIN.grid(1) == [{"graph_weight": 0.5, "max_hops": 3, "top_k": 17, "temperature": 0.1}]


def test_short_ranges_leave_their_share_to_the_others() -> None:
    space = SearchSpace({"flag": Categorical((True, False)), "x": Real(0, 1)})
    assert levels(space, 10) == {"flag": [True, False], "x": [0.1, 0.3, 0.5, 0.7, 0.9]}


def test_log_levels_of_small_integers_are_distinct() -> None:
    ten, six = (SearchSpace({"k": Integer(1, high, scale="log")}) for high in (10, 6))
    # From .5 to 10.5 by the logarithm, in the middles of four parts: .7, 1.6, 3.4, 7.2.
    assert levels(ten, 4) == {"k": [1, 2, 3, 7]}
    # Spaced by the logarithm: 1, 2.1, 4.6, 10; and 1, 1.6, 2.4, 3.8, 6.
    assert levels(ten, 4, edges=True) == {"k": [1, 2, 5, 10]}
    assert levels(six, 5, edges=True) == {"k": [1, 2, 3, 4, 6]}


def test_levels_keep_to_the_step() -> None:
    space = SearchSpace({"x": Real(0.0, 1.0, step=0.3), "k": Integer(0, 10, step=4)})
    assert levels(space, 12) == {"x": [0.0, 0.3, 0.6, 0.9], "k": [0, 4, 8]}


def test_points_that_differ_in_inactive_parameters_are_one() -> None:
    space = SearchSpace(
        {
            "mode": Categorical(("text", "graph")),
            "hops": Integer(1, 5, when={"mode": ("graph",)}),
        }
    )
    assert space.grid(6) == [{"mode": "text"}] + [
        {"mode": "graph", "hops": hops} for hops in range(1, 6)
    ]
    # The budget freed by text mode goes to hops.
    assert len(space.grid(4)) == 4


def test_all_choices_stand_in_a_grid_before_numbers_get_a_second_level() -> None:
    space = SearchSpace(
        {
            "x": Real(0, 1),
            "mode": Categorical(("text", "local", "global", "mix")),
            "pick": Categorical(("near", "heavy"), when={"mode": ("local", "global", "mix")}),
            "k": Integer(1, 9),
        }
    )
    grid = space.grid(12)  # text, and 3 x 2 others; twice as many of them would be 14.
    assert sorted((p["mode"], p.get("pick", "")) for p in grid) == sorted(
        [("text", ""), *((m, p) for m in ("local", "global", "mix") for p in ("near", "heavy"))]
    )
    assert all((params["x"], params["k"]) == (0.5, 5) for params in grid)
    assert len({params["x"] for params in space.grid(14)}) == 2


def test_choices_of_the_index_wait_their_turn() -> None:
    space = SearchSpace({"model": Categorical(("a", "b", "c", "d")), "x": Real(0, 1)})
    models = {
        len({p["model"] for p in one.grid(5)}) for one in (space, space.with_index(["model"]))
    }
    assert models == {4, 2}  # With the index: 2 models at 2 levels of x.


def test_constraints_filter_and_the_budget_is_used_again() -> None:
    space = SearchSpace({"a": Integer(1, 9), "b": Integer(1, 9)}, ("a <= b",))
    grid = space.grid(45)
    assert len(grid) == 45  # 9 x 10 / 2: all of it, though 81 points exceed the budget
    assert all(space.contains(params) for params in grid)
    assert 20 <= len(space.grid(30)) <= 30


def test_named_levels_are_taken_as_they_are() -> None:
    found = levels(PLAIN, 24, {"max_hops": [1, 2, 3], "graph_weight": 4})
    assert found == {
        "graph_weight": [0.125, 0.375, 0.625, 0.875],
        "max_hops": [1, 2, 3],
        "top_k": [9, 23],  # 2.5 + 28 / 4 = 9.5, of two the even step from 3; 23.5
        "temperature": [0.1],
    }
    ends = levels(PLAIN, 24, {"max_hops": [1, 2, 3], "graph_weight": 4}, edges=True)
    assert ends["graph_weight"] == [0.0, 0.333333333333, 0.666666666667, 1.0]
    assert (ends["max_hops"], ends["top_k"]) == ([1, 2, 3], [3, 30])


def test_repeated_named_levels_count_once() -> None:
    assert levels(PLAIN, 3, {"max_hops": [1, 1.0, 2]})["max_hops"] == [1, 2]


def test_too_many_named_levels_are_refused_with_the_number() -> None:
    named = {"max_hops": 5, "top_k": 28, "graph_weight": [0.1]}
    with pytest.raises(
        InputError, match=r"140 points but the budget is 60.*raise the budget to 140"
    ):
        PLAIN.grid(60, named)


@pytest.mark.parametrize(
    ("named", "key", "message"),
    [
        ({"hops": 3}, ("levels", "hops"), "did you mean 'max_hops'?"),
        ({"max_hops": 6}, ("levels", "max_hops"), "has 5 values only"),
        ({"max_hops": 0}, ("levels", "max_hops"), "at least 1"),
        ({"max_hops": [1, 7]}, ("levels", "max_hops", 1), "7 is outside 1 .. 5"),
        ({"max_hops": []}, ("levels", "max_hops"), "a list of values"),
        ({"max_hops": "all"}, ("levels", "max_hops"), "a list of values"),
        ({"max_hops": True}, ("levels", "max_hops"), "a list of values"),
    ],
)
def test_bad_named_levels_are_explained(named: Any, key: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError) as error:
        PLAIN.grid(60, named)
    found = {problem.key: problem.message for problem in error.value.problems}
    assert message in found[key]


def test_a_grid_needs_a_budget() -> None:
    with pytest.raises(InputError, match="at least 1 trial"):
        PLAIN.grid(0)


def test_a_grid_without_a_feasible_point_is_empty_only_where_the_space_is() -> None:
    space = SearchSpace({"a": Integer(1, 9), "b": Integer(1, 9)}, ("a + b == 18",))
    assert space.grid(10) == [{"a": 9, "b": 9}]


def test_a_thin_feasible_band_does_not_take_for_ever() -> None:
    space = SearchSpace({"a": Real(0, 1), "b": Real(0, 1)}, ("a + b == 0.7654321",))
    assert len(space.grid(50)) <= 50


def test_refining_ends_after_a_number_of_combinations(monkeypatch: pytest.MonkeyPatch) -> None:
    space = SearchSpace({name: Real(0, 1) for name in "abcd"}, ("a * b * c * d > 0.99",))
    looked_at = 0
    holds = Constraint.holds

    def counted(constraint: Constraint, params: Params) -> bool:
        nonlocal looked_at
        looked_at += 1
        return holds(constraint, params)

    monkeypatch.setattr(Constraint, "holds", counted)
    assert space.grid(60, edges=True) == [dict.fromkeys("abcd", 1.0)]
    assert looked_at <= MOST_LOOKED_AT


def test_a_feasible_corner_is_refined() -> None:
    space = SearchSpace({"a": Real(0, 1), "b": Real(0, 1)}, ("a + b >= 1.6",))
    assert 25 <= len(space.grid(40)) <= 40


def test_large_budgets_are_used() -> None:
    assert len(PLAIN.grid(20_000)) > 15_000
    assert len(SearchSpace({"x": Real(0, 1)}).grid(3_000)) == 3_000
