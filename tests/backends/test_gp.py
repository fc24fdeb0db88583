"""Gaussian process search: what it learns from, at any length of history."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tuner.backends.gp import Gp, _Model, _negative_log_prior
from tuner.backends.points import point_of, spread_unseen
from tuner.core.errors import InputError
from tuner.core.space import Categorical, Integer, Real, SearchSpace
from tuner.core.trial import Params, Trial, TrialState

SPACE = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})
SPACE4 = SearchSpace({name: Real(0, 1) for name in "abcd"})


def trials(space: SearchSpace, number: int, objective: Any) -> list[Trial]:
    rng = np.random.default_rng(0)
    points = [space.sample(rng) for _ in range(number)]
    return [
        Trial(i, "gp", params, TrialState.FINISHED, objective(params))
        for i, params in enumerate(points)
    ]


def near_peak(params: Params) -> float:
    return -((params["x"] - 0.3) ** 2) - (params["y"] - 0.8) ** 2  # type: ignore[operator]


@pytest.mark.parametrize("number", [12, 130, 450])
def test_it_goes_where_the_objective_is_high(number: int) -> None:
    # A small margin: among many points the best one is close to the peak already.
    backend = Gp(500, initial=5, margin=0.001)
    (params,) = backend.suggest(SPACE, trials(SPACE, number, near_peak), count=1, seed=0)
    assert abs(params["x"] - 0.3) < 0.12  # type: ignore[operator]
    assert abs(params["y"] - 0.8) < 0.12  # type: ignore[operator]


def test_the_fit_follows_its_priors_where_observations_say_nothing() -> None:
    features = np.random.default_rng(1).random((3, 4))
    slope = [_negative_log_prior(np.array([0.1, *row, -3.0]), 4)[1] for row in features]
    for row, found in zip(features, slope, strict=True):
        for place in range(6):  # against differences
            step = np.eye(6)[place] * 1e-6
            at = np.array([0.1, *row, -3.0])
            up, down = (_negative_log_prior(at + sign * step, 4)[0] for sign in (1, -1))
            assert found[place] == pytest.approx((up - down) / 2e-6, abs=1e-4)
    # Equal losses: the likelihood prefers any length scale; the prior's peak is exp(1.41 + .69).
    model = _Model.learnt(SPACE4, [SPACE4.decode(row) for row in features], np.zeros(3), 0.0, 0.01)
    scales = np.exp(model.kernel.theta[1:])  # type: ignore[attr-defined]
    assert scales == pytest.approx(np.exp(np.sqrt(2) + np.log(4) / 2), rel=0.6)


def test_how_bad_the_worst_points_are_has_no_part_in_it() -> None:
    history = trials(SPACE, 20, near_peak)
    tenth = sorted(float(trial.worth or 0.0) for trial in history)[9]
    far = [
        trial.told(objective=trial.worth - 9.0) if trial.worth < tenth else trial
        for trial in history
        if trial.worth is not None
    ]
    assert far != history
    first, second = (Gp(50).suggest(SPACE, told, count=1, seed=0) for told in (history, far))
    assert first == second


def test_the_first_points_are_an_even_grid_and_then_spread() -> None:
    points = Gp(50).suggest(SPACE4, [], count=14, seed=3)
    grid = [point_of(params) for params in SPACE4.grid(12)]
    assert sorted(map(point_of, points[:12])) == sorted(grid)  # 3 x 2 x 2 x 1
    assert points[12:] == spread_unseen(SPACE4, trials(SPACE4, 12, sum_of), count=2, seed=3)


def test_of_the_even_grid_the_points_nearest_to_the_middle_come_first() -> None:
    # Levels: thirds with middles 1/6, 1/2, 5/6, and quarters with 1/8, 3/8, 5/8, 7/8.
    orders = {seed: Gp(50).suggest(SPACE, [], count=12, seed=seed) for seed in range(8)}
    for points in orders.values():
        away = [sum((float(value) - 0.5) ** 2 for value in point.values()) for point in points]  # type: ignore[arg-type]
        # 1/64 twice, 1/9 + 1/64 = 73/576 four times, 9/64 twice, 1/9 + 9/64 = 145/576 four times.
        assert away == pytest.approx([1 / 64] * 2 + [73 / 576] * 4 + [9 / 64] * 2 + [145 / 576] * 4)
    assert len({point_of(points[0]) for points in orders.values()}) == 2  # Equals are shuffled.


def test_choices_have_no_middle() -> None:
    space = SearchSpace({"mode": Categorical(("a", "b", "c")), "x": Real(0, 1)})
    first = [Gp(50).suggest(space, [], count=1, seed=seed)[0]["mode"] for seed in range(12)]
    assert set(first) == {"a", "b", "c"}


def sum_of(params: Params) -> float:
    return float(sum(params.values()))  # type: ignore[arg-type]


def test_points_that_break_a_constraint_repel() -> None:
    history = [
        trial.told(violation=1.0 if trial.params["x"] < 0.5 else 0.0)  # type: ignore[operator]
        for trial in trials(SPACE, 40, near_peak)
    ]
    (params,) = Gp(60, initial=5).suggest(SPACE, history, count=1, seed=0)
    assert params["x"] > 0.42  # type: ignore[operator]


def test_while_nothing_is_feasible_the_smallest_violation_is_sought() -> None:
    history = [
        trial.told(violation=1.0 + abs(trial.params["x"] - 0.9), objective=-trial.params["x"])  # type: ignore[operator]
        for trial in trials(SPACE, 20, near_peak)
    ]
    (params,) = Gp(60, initial=5).suggest(SPACE, history, count=1, seed=0)
    assert abs(params["x"] - 0.9) < 0.1  # type: ignore[operator]


@pytest.mark.parametrize("objective", [1e308, -1e308, 1e-320])
def test_extreme_objectives_are_taken(objective: float) -> None:
    history = trials(SPACE, 12, near_peak)
    history[3] = history[3].told(objective=objective)
    assert len(Gp(60, initial=5).suggest(SPACE, history, count=2, seed=0)) == 2


def test_the_scale_of_the_objective_does_not_matter() -> None:
    def suggestion(factor: float, shift: float) -> Params:
        history = trials(SPACE, 15, lambda params: shift + factor * near_peak(params))
        return Gp(60, initial=5).suggest(SPACE, history, count=1, seed=0)[0]

    one, small = suggestion(1.0, 0.0), suggestion(2.0**-20, 0.0)
    assert small["x"] == pytest.approx(one["x"], abs=0.05)
    assert small["y"] == pytest.approx(one["y"], abs=0.05)


def test_a_categorical_is_learnt_without_an_order() -> None:
    space = SearchSpace({"mode": Categorical(tuple("abcde")), "k": Integer(1, 5)})
    gain = {"a": 0.0, "b": 0.1, "c": 1.0, "d": 0.05, "e": 0.2}
    history = trials(space, 14, lambda p: gain[str(p["mode"])] - 0.1 * abs(int(p["k"]) - 2))
    unseen = [t for t in history if (t.params["mode"], t.params["k"]) != ("c", 2)]
    (params,) = Gp(60, initial=5).suggest(space, unseen, count=1, seed=0)
    assert params["mode"] == "c"


def test_many_features_share_one_length_scale() -> None:
    space = SearchSpace({f"x{i}": Real(0, 1) for i in range(80)})
    history = trials(space, 25, lambda params: float(params["x0"] or 0.0))  # type: ignore[arg-type]
    assert len(Gp(60, initial=5).suggest(space, history, count=2, seed=0)) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"initial": 1}, "initial: must be a whole number of at least 2, got 1"),
        ({"initial": "few"}, "initial: must be a whole number"),
        ({"margin": -0.1}, "margin: must be a number of at least 0.0, got -0.1"),
        ({"margin": float("nan")}, "margin: must be a number"),
    ],
)
def test_bad_options_are_explained(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Gp(10, **options)
