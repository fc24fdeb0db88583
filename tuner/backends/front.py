"""Searching for a front: what is not dominated, its hypervolume, and what would enlarge it.

All goals are higher is better. A model of each goal says where the front can still grow: the
expected hypervolume improvement, exact for goals whose posteriors are independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np
from scipy.special import ndtr

from tuner.core.rankings import BoolArray, FloatArray
from tuner.core.space import SearchSpace
from tuner.core.trial import Params, Trial

# n points with m goals make up to (n + m - 1 over m - 1) boxes: so many are 198 points with three
# goals, 46 with four. Beyond it, the search follows the one objective that it is told.
MOST_BOXES = 20_000
# The reference lies below the front's worst by this share of the front's range. With less, its ends
# grow slowly; far below, half of the trials go to them. Measured in experiments/search_quality.
BELOW = 0.5
# Memory for so many numbers at a time.
CHUNK = 4_000_000


def dominators(points: FloatArray) -> FloatArray:
    """Count, for each point of shape (points, goals), those as good in all and better in one."""
    as_good = (points[:, None, :] >= points[None, :, :]).all(axis=2)
    number: FloatArray = (as_good & ~as_good.T).sum(axis=0).astype(np.float64)
    return number


def is_efficient(points: FloatArray) -> BoolArray:
    """Say of each point, shape (points, goals), whether none dominates it; equal ones do not.

    >>> is_efficient(np.array([[1.0, 3.0], [2.0, 1.0], [1.0, 2.0]])).tolist()
    [True, True, False]
    """
    efficient: BoolArray = dominators(points) == 0.0
    return efficient


def hypervolume(points: FloatArray, reference: FloatArray) -> float:
    """Return the volume of what lies between ``reference`` and one of ``points``, at least.

    ``points`` has shape (points, goals), of two goals or more. What is not better than the
    reference in every goal adds nothing. Exact, by slabs along the last goal.

    >>> hypervolume(np.array([[1.0, 3.0], [2.0, 1.0]]), np.zeros(2))  # 1 * 3 + 1 * 1
    4.0
    """
    inside = points[(points > reference).all(axis=1)]
    if inside.shape[1] == 2:
        steps, heights = _staircase(inside, reference)
        return float((np.diff(steps) * (heights - reference[1])).sum())
    edges = np.concatenate([reference[-1:], np.unique(inside[:, -1])])
    # Inside of a slab, who reaches its upper edge dominates by the other goals alone.
    parts = [
        (high - low) * hypervolume(inside[inside[:, -1] >= high, :-1], reference[:-1])
        for low, high in pairwise(edges)
    ]
    return math.fsum(parts)


def boxes_above(front: FloatArray, reference: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper corners of disjoint boxes, each of shape (boxes, goals).

    They fill what is better than the reference in every goal and not dominated by a point of the
    front, of two goals or more; upper corners may be infinite.
    """
    inside = front[(front > reference).all(axis=1)]
    if inside.shape[1] == 2:
        steps, heights = _staircase(inside, reference)
        lower = np.column_stack([steps, np.append(heights, reference[1])])
        upper = np.column_stack([np.append(steps[1:], np.inf), np.full(len(steps), np.inf)])
        return lower, upper
    edges = np.concatenate([reference[-1:], np.unique(inside[:, -1]), [np.inf]])
    lowers, uppers = [], []
    for low, high in pairwise(edges):
        lower, upper = boxes_above(inside[inside[:, -1] >= high, :-1], reference[:-1])
        lowers.append(np.column_stack([lower, np.full(len(lower), low)]))
        uppers.append(np.column_stack([upper, np.full(len(upper), high)]))
    return np.vstack(lowers), np.vstack(uppers)


def _staircase(points: FloatArray, reference: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return where the front of two goals steps down, and its height before each step.

    The first of the n + 1 steps is the reference itself; between two steps, one of n heights.
    """
    order = np.lexsort((points[:, 1], points[:, 0]))
    heights = np.maximum.accumulate(points[order, 1][::-1])[::-1]
    return np.concatenate([reference[:1], points[order, 0]]), heights


def expected_growth(
    means: FloatArray, deviations: FloatArray, lowers: FloatArray, uppers: FloatArray
) -> FloatArray:
    """Return by how much a normal point is expected to enlarge the hypervolume, shape (points,).

    ``means`` and ``deviations`` (above 0) have shape (points, goals), the boxes are those of
    ``boxes_above``. The share of one box that a point dominates is a product over the goals, and so
    is its expectation where they are independent (Yang, Emmerich, Deutz and Bäck 2019, section 4):
    ``E[(min(y, upper) - lower)+] = excess(lower) - excess(upper)``, ``excess(a) = E[(y - a)+]``.
    """
    at_once = max(1, CHUNK // len(lowers))
    parts = [slice(begin, begin + at_once) for begin in range(0, len(means), at_once)]
    return np.concatenate([_growth(means[p], deviations[p], lowers, uppers) for p in parts])


def _growth(
    means: FloatArray, deviations: FloatArray, lowers: FloatArray, uppers: FloatArray
) -> FloatArray:
    shares = np.ones((len(means), len(lowers)))
    for goal in range(means.shape[1]):
        # A level is the edge of many boxes: each is computed once.
        edges = np.concatenate([lowers[:, goal], uppers[:, goal]])
        levels, places = np.unique(edges, return_inverse=True)
        excess = _excess(means[:, goal, None], deviations[:, goal, None], levels)
        shares *= excess[:, places[: len(lowers)]] - excess[:, places[len(lowers) :]]
    growth: FloatArray = shares.sum(axis=1)
    return growth


def _excess(means: FloatArray, deviations: FloatArray, levels: FloatArray) -> FloatArray:
    """Return ``E[(y - level)+]`` of normal y, shape (points, levels); 0 at infinity."""
    finite = np.isfinite(levels)
    z = (means - levels[finite]) / deviations
    density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    excess = np.zeros((len(means), len(levels)))
    excess[:, finite] = deviations * np.maximum(z * ndtr(z) + density, 0.0)
    return excess


class Surrogate(Protocol):
    """A model of one goal as a loss: lower is better."""

    def condition(self, under_way: list[Params]) -> None:
        """Take in points whose losses are not known yet."""
        ...

    def predict(self, points: list[Params]) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of the loss at each point."""
        ...


def goals_of(scored: Sequence[Trial]) -> FloatArray | None:
    """Return the goals that a front is sought for, shape (trials, goals), in standard deviations.

    Trials that break a constraint have the worst of those that keep them all. None where there is
    one objective to follow: no goals; no two that differ between trials; nothing that keeps the
    constraints; or a front that makes too many boxes.
    """
    if len({len(trial.goals) for trial in scored}) != 1 or not scored[0].goals:
        return None
    goals: FloatArray = np.array([trial.goals for trial in scored])
    feasible = np.array([trial.violation <= 0.0 for trial in scored])
    if not feasible.any():
        return None
    goals[~feasible] = goals[feasible].min(axis=0)
    goals = goals / np.maximum(np.abs(goals).max(axis=0), 1e-300)  # Squares cannot overflow.
    spread = goals.std(axis=0)
    differs = spread > 1e-12
    standard: FloatArray = (goals - goals.mean(axis=0))[:, differs] / spread[differs]
    points, number = np.unique(standard[is_efficient(standard)], axis=0).shape
    if number < 2 or math.comb(points + number - 1, number - 1) > MOST_BOXES:
        return None
    return standard


class FrontModel:
    """A model of each goal, and by how much a point is expected to enlarge the front.

    ``goals`` are standardised, shape (observed, goals); ``margin`` is in their unit.
    """

    def __init__(
        self,
        space: SearchSpace,
        observed: list[Params],
        goals: FloatArray,
        models: Sequence[Surrogate],
        margin: float,
    ) -> None:
        self.space = space
        self.models = models
        efficient = is_efficient(goals)
        self.best_observed = [observed[place] for place in np.flatnonzero(efficient)]
        front = np.unique(goals[efficient], axis=0)
        worst, best = front.min(axis=0), front.max(axis=0)
        # What is better by less than the margin counts as covered, or one end of the front is
        # asked again and again for the last crumb.
        self.lowers, self.uppers = boxes_above(front + margin, worst - BELOW * (best - worst))

    def condition(self, under_way: list[Params]) -> None:
        """Take in points that are under way in each model."""
        for model in self.models:
            model.condition(under_way)

    def improvement(self, points: list[Params]) -> FloatArray:
        """Return the expected growth of the hypervolume at each point, goals standardised."""
        found = [model.predict(points) for model in self.models]
        means = np.column_stack([-mean for mean, _ in found])
        deviations = np.column_stack([deviation for _, deviation in found])
        return expected_growth(means, deviations, self.lowers, self.uppers)
