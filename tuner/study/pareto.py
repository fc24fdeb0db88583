"""Several goals at once: what a search learns from, the front it found, and the front's knee."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tuner.core.rankings import FloatArray
from tuner.core.trial import Params, Trial


@dataclass(frozen=True)
class Point:
    """A setting that a trial tells of: its own, or that of an alternative of its answer.

    ``place`` is 0 for its own, and counts the alternatives from 1 on.
    """

    trial: Trial
    place: int = 0

    @property
    def params(self) -> Params:
        """Return all parameters."""
        profile = self.trial.profile
        if profile is None or not self.place:
            return self.trial.params
        return dict(profile.alternatives[self.place - 1].params)

    @property
    def metrics(self) -> Mapping[str, float]:
        """Return all metrics; those that are the same for the whole answer are the trial's."""
        profile = self.trial.profile
        if profile is None or not self.place:
            return self.trial.metrics
        return {**self.trial.metrics, **profile.alternatives[self.place - 1].metrics}

    @property
    def as_trial(self) -> Trial:
        """Return the trial as it would have been; what it is worth in all is its own."""
        return replace(self.trial, params=self.params, metrics=self.metrics)


def points_of(trials: Iterable[Trial]) -> list[Point]:
    """Return every setting that trials tell of."""
    return [
        Point(trial, place)
        for trial in trials
        for place in range(1 + (0 if trial.profile is None else len(trial.profile.alternatives)))
    ]


# From a trial's metrics to its goals, each higher is better.
Goals = Callable[[Mapping[str, float]], tuple[float, ...]]
# By how much each goal of two points may differ by chance.
Chance = Callable[[Point, Point], tuple[float, ...]]

# The share of the plain weighted sum in the scalar, as in ParEGO: it tells apart points whose worst
# goal is the same.
AUGMENTATION = 0.05


def swept(history: Sequence[Trial], goals: Goals, *, seed: int) -> list[Trial]:
    """Return a history whose scored trials have their goals, and one of many scalars of them.

    The objective becomes ``min(w * g) + .05 * sum(w * g)`` over the goals g, each scaled to 0..1 in
    this history, for weights w drawn anew with every further trial: the augmented Tchebycheff
    scalar of ParEGO (Knowles 2006, eq. 2), maximised. So a backend that knows one objective only
    sweeps over the front. One that knows several reads ``goals``. What a race estimated is of the
    study's objective, not of this one: it is left out.

    A trial whose answer tells of several points is worth as much as the best of them, and has no
    goals, as then no trial has: no one point of them stands for the others.
    """
    history = [replace(trial, race=None) if trial.race else trial for trial in history]
    scored = [trial for trial in history if trial.is_scored]
    if not scored:
        return history
    points = points_of(scored)
    found = np.array([goals(point.metrics) for point in points])
    weights = np.random.default_rng([seed, len(history)]).dirichlet(np.ones(found.shape[1]))
    parts = weights * scaled(found)
    scalars = parts.min(axis=1) + AUGMENTATION * parts.sum(axis=1)
    worth: dict[int, float] = {}
    of_it: dict[int, tuple[float, ...]] = {}
    for point, scalar, values in zip(points, scalars.tolist(), found.tolist(), strict=True):
        number = point.trial.number
        worth[number] = max(scalar, worth.get(number, scalar))
        of_it[number] = tuple(values) if len(points) == len(scored) else ()
    return [
        replace(trial, objective=worth[trial.number], goals=of_it[trial.number])
        if trial.is_scored
        else trial
        for trial in history
    ]


def front(trials: Sequence[Trial], goals: Goals, chance: Chance | None = None) -> list[Point]:
    """Return the feasible points that no other is better than in one goal and as good in all.

    Better: by more than ``chance`` says the two may differ by chance. Best in the first goal first.
    Of points with equal goals the earliest stands for all.
    """
    feasible = points_of(t for t in trials if t.is_feasible and t.shared_from is None)
    if not feasible:
        return []
    found = np.array([goals(point.metrics) for point in feasible])
    kept = []
    for place, mine in enumerate(found):
        is_as_good = (found >= mine).all(axis=1)
        better = np.flatnonzero(is_as_good & (found > mine).any(axis=1))
        is_beaten = any(
            chance is None
            or np.any(found[by] - mine > np.array(chance(feasible[by], feasible[place])))
            for by in better
        )
        is_earlier_twin = (found[:place] == mine).all(axis=1)
        if not is_beaten and not is_earlier_twin.any():
            kept.append(place)
    kept.sort(key=lambda place: tuple(-found[place]))
    return [feasible[place] for place in kept]


def front_record(
    trials: Sequence[Trial], names: Sequence[str], goals: Goals, chance: Chance | None = None
) -> tuple[Mapping[str, Any], ...]:
    """Describe the front for the study's summary; goals are shown as they were measured."""
    if not names:
        return ()
    points = front(trials, goals, chance)
    if not points:
        return ()
    place = knee(np.array([goals(point.metrics) for point in points]))
    return tuple(
        {
            "trial": point.trial.number,
            "arm": point.trial.arm,
            "params": point.params,
            "goals": dict(zip(names, map(abs, goals(point.metrics)), strict=True)),
            "is_knee": row == place,
        }
        for row, point in enumerate(points)
    )


def knee(found: FloatArray) -> int:
    """Return the row of the front's knee: farthest from the plane through the ends of the front.

    ``found`` has shape (points, goals), higher is better. With each goal scaled to 0..1 over the
    front, the distance grows with the sum of the scaled goals (Das 1999, for ends at the unit
    vectors). It is where giving up a little of one goal no longer buys much of another.

    >>> knee(np.array([[1.0, 0.0], [0.9, 0.8], [0.0, 1.0]]))
    1
    """
    return int(np.argmax(scaled(found).sum(axis=1)))


def scaled(found: FloatArray) -> FloatArray:
    """Scale each column to 0..1 by its range; a constant column becomes 0."""
    low, high = found.min(axis=0), found.max(axis=0)
    shares: FloatArray = (found - low) / np.where(high > low, high - low, 1.0)
    return shares
