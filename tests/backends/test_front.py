"""Fronts in a search: volumes against counting cells, what would enlarge them, where it leads."""

from __future__ import annotations

from itertools import product
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.backends import front
from tuner.backends.front import (
    boxes_above,
    dominators,
    expected_growth,
    goals_of,
    hypervolume,
    is_efficient,
)
from tuner.backends.gp import Gp
from tuner.core.space import Real, SearchSpace
from tuner.core.trial import Params, Trial, TrialState

SIDE = 4
SPACE = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})
# Points with 2 to 4 goals, on a lattice, so that there are equal points and equal goals.
points = st.integers(2, 4).flatmap(
    lambda goals: st.lists(
        st.lists(st.integers(-1, SIDE), min_size=goals, max_size=goals), min_size=1, max_size=7
    ).map(lambda rows: np.array(rows, dtype=float))
)


def dominates(one, other):
    return all(a >= b for a, b in zip(one, other, strict=True)) and tuple(one) != tuple(other)


def cells(goals):
    """Return the middles of the cells of side 1 between 0 and SIDE + 1."""
    return np.array(list(product(np.arange(SIDE + 1) + 0.5, repeat=goals)))


@given(points)
def test_efficient_is_whom_nobody_dominates(found):
    naive = [sum(dominates(by, one) for by in found) for one in found]
    assert dominators(found).tolist() == naive
    assert is_efficient(found).tolist() == [number == 0 for number in naive]


@given(points)
def test_the_hypervolume_is_the_number_of_cells_below_a_point(found):
    below = (cells(found.shape[1])[:, None] < found[None]).all(axis=2).any(axis=1)
    assert hypervolume(found, np.zeros(found.shape[1])) == below.sum()


@given(points)
def test_the_boxes_hold_each_cell_once_that_no_point_dominates(found):
    lowers, uppers = boxes_above(found, np.zeros(found.shape[1]))
    middles = cells(found.shape[1])
    below = (middles[:, None] < found[None]).all(axis=2).any(axis=1)
    inside = (lowers[None] < middles[:, None]) & (middles[:, None] < uppers[None])
    assert inside.all(axis=2).sum(axis=1).tolist() == (~below).astype(int).tolist()


@given(points)
def test_a_point_that_is_sure_grows_the_front_by_what_it_adds(found):
    reference = np.zeros(found.shape[1])
    boxes = boxes_above(found, reference)
    news = cells(found.shape[1])[:: SIDE + 2]
    growth = expected_growth(news, np.full(news.shape, 1e-9), *boxes)
    before = hypervolume(found, reference)
    added = [hypervolume(np.vstack([found, new]), reference) - before for new in news]
    assert growth == pytest.approx(added, abs=1e-7)


def test_the_expectation_is_the_mean_over_what_a_point_may_turn_out_to_be(monkeypatch):
    found, reference = np.array([[1.0, 3.0], [2.0, 1.0]]), np.zeros(2)
    means, deviations = np.array([[1.5, 2.0], [0.5, 0.5]]), np.array([[0.5, 1.0], [0.2, 2.0]])
    middles = [NormalDist().inv_cdf((i + 0.5) / 200) for i in range(200)]
    draws = np.array(list(product(middles, repeat=2)))

    def added(new):
        """Return what points (a, b) add: a * b, less what is below (1, 3) or (2, 1) already."""
        a, b = np.maximum(new, 0.0).T
        one, two = np.minimum(a, 1) * np.minimum(b, 3), np.minimum(a, 2) * np.minimum(b, 1)
        return a * b - one - two + np.minimum(a, 1) * np.minimum(b, 1)

    naive = [np.mean(added(mean + draws * sd)) for mean, sd in zip(means, deviations, strict=True)]
    boxes = boxes_above(found, reference)
    assert expected_growth(means, deviations, *boxes) == pytest.approx(naive, rel=0.02)
    # In parts it is the same.
    whole = expected_growth(means, deviations, *boxes)
    monkeypatch.setattr(front, "CHUNK", 1)
    assert expected_growth(means, deviations, *boxes).tolist() == whole.tolist()


def trials(goals_at, number=20, seed=0, **extra):
    """Return told trials at random points, with goals; the objective is the first of them."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(number):
        params: Params = SPACE.sample(rng)
        goals = tuple(float(goal) for goal in goals_at(params["x"], params["y"]))
        told = {"state": TrialState.FINISHED, "objective": goals[0], "goals": goals, **extra}
        found.append(Trial(i, "gp", params, **told))
    return found


def test_a_front_is_sought_where_two_goals_differ():
    history = trials(lambda x, y: (x, 0.25, 2 * x, -y))
    goals = goals_of(history)
    # The second is the same everywhere; the third tells nothing new, but is a goal.
    assert goals.shape == (20, 3)
    assert goals.mean(axis=0) == pytest.approx(0.0, abs=1e-12)
    assert goals.std(axis=0) == pytest.approx(1.0)
    assert goals_of(trials(lambda x, y: (x, 0.25))) is None
    assert goals_of([one.told(goals=()) for one in history]) is None
    assert goals_of([history[0].told(goals=()), *history[1:]]) is None
    assert goals_of([one.told(violation=1.0) for one in history]) is None


def test_who_breaks_a_constraint_has_the_worst_of_those_who_do_not():
    history = trials(lambda x, y: (x, -y))
    broken = [one.told(violation=1.0) if one.params["x"] > 0.5 else one for one in history]
    goals = goals_of(broken)
    for place, one in enumerate(broken):
        if one.violation:
            assert goals[place].tolist() == goals.min(axis=0).tolist()


def test_a_front_of_too_many_boxes_is_left_to_the_objective(monkeypatch):
    history = trials(lambda x, y: (x, 1 - x, y))
    assert goals_of(history) is not None
    monkeypatch.setattr(front, "MOST_BOXES", 100)  # (20 + 2 over 2) are 231.
    assert goals_of(history) is None
    assert len(Gp(60, initial=5).suggest(SPACE, history, count=2, seed=0)) == 2


def curve(x, y):
    """Quality grows with x, at a cost; y only costs: the front is y = 0."""
    return x, -(x**2) - y


def asked(backend, goals_at, number, seed=0):
    history = []
    while len(history) < number:
        (params,) = backend.suggest(SPACE, history, count=1, seed=seed)
        goals = tuple(goals_at(params["x"], params["y"]))
        state = TrialState.FINISHED
        history.append(Trial(len(history), "gp", params, state, goals[0], goals=goals))
    return np.array([trial.goals for trial in history])


def test_a_gap_in_the_front_is_filled():
    history = [
        Trial(i, "gp", {"x": x, "y": y}, TrialState.FINISHED, x, goals=curve(x, y))
        for i, (x, y) in enumerate(product((0.0, 0.1, 0.2, 0.8, 0.9, 1.0), (0.0, 0.5, 1.0)))
    ]
    (params,) = Gp(60, initial=5).suggest(SPACE, history, count=1, seed=0)
    assert 0.3 < params["x"] < 0.7
    assert params["y"] < 0.1


@pytest.mark.parametrize(
    "goals_at",
    [curve, lambda x, y: (*curve(x, y), round(x - y, 1))],
    ids=["two", "three, in steps"],
)
def test_it_covers_more_than_chance_does(goals_at):
    reference = np.array([0.0, -2.0, -1.0])[: len(goals_at(0, 0))]
    rng = np.random.default_rng(1)
    drawn = np.array([goals_at(*rng.random(2)) for _ in range(100)])
    found = asked(Gp(20, initial=5), goals_at, 20)
    assert hypervolume(found, reference) > hypervolume(drawn, reference)


def test_what_breaks_a_constraint_is_left():
    history = trials(curve, number=30)
    history = [one.told(violation=max(one.params["x"] - 0.5, 0.0)) for one in history]
    picks = Gp(60, initial=5).suggest(SPACE, history, count=5, seed=0)
    assert all(params["x"] < 0.6 for params in picks)
