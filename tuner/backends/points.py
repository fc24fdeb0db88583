"""Points that were not suggested yet: what every backend starts from and falls back to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from scipy.stats import qmc

from tuner.core.space import Categorical, SearchSpace
from tuner.core.trial import Params, Scalar, Trial

# Params as a set holds them: True, 1 and 1.0 are equal in Python but not in a space.
Point = tuple[tuple[str, type, Scalar], ...]

# With a share p of the points unseen, (1 - p) ** 200 of the searches end in an enumeration.
DRAWS = 200
# Where constraints leave little, draws end after so many (a second); before, where each
# combination can be looked at instead.
MOST_DRAWS, MOST_DRAWS_BEFORE_ENUMERATION = 50_000, 5_000
QUASI_RANDOM_DRAWS, BLOCK = 1_000, 20


def point_of(params: Params) -> Point:
    """Return canonical params in a form that can be looked up."""
    return tuple([(name, type(value), value) for name, value in params.items()])


def points_of(history: Iterable[Trial]) -> set[Point]:
    """Return every point of a history, whatever became of it."""
    return {point_of(trial.params) for trial in history}


def scored_trials(history: Iterable[Trial]) -> list[Trial]:
    """Return the trials that a model can learn from: those with a finite worth.

    Where trials have goals, those with all of them. A trial that was raced out counts by its paired
    estimate, on the scale of all others. As a censored value it would only say "worse than the
    best", which most trials are.
    """
    trials = list(history)
    goals = max((len(trial.goals) for trial in trials), default=0)
    return [
        trial
        for trial in trials
        if trial.worth is not None
        and len(trial.goals) == goals
        and all(map(math.isfinite, (trial.worth, *trial.goals)))
    ]


def random_unseen(space: SearchSpace, taken: set[Point], rng: np.random.Generator) -> Params | None:
    """Draw a point that is not taken; None where every point of the space is taken.

    None too where a space that is too large to enumerate gave none: in 200 feasible draws, or in
    50,000 of which constraints refused most. A search that finds nothing new has ended.
    """
    feasible = 0
    for _ in range(MOST_DRAWS_BEFORE_ENUMERATION if space.is_enumerable else MOST_DRAWS):
        params = space.decode(rng.random(len(space.names)))
        if not space.satisfies(params):
            continue
        if point_of(params) not in taken:
            return params
        feasible += 1
        if feasible == DRAWS:
            break
    if not space.is_enumerable:
        return None
    unseen = [params for params in space.points() if point_of(params) not in taken]
    return unseen[int(rng.integers(len(unseen)))] if unseen else None


def pick_unseen(
    space: SearchSpace,
    history: Sequence[Trial],
    rng: np.random.Generator,
    propose: Callable[[set[Point], list[Params]], Params | None],
    *,
    count: int,
) -> list[Params]:
    """Return up to ``count`` new points, proposed one by one; random where none is proposed.

    ``propose`` is given the points that are taken and, of these, the picks so far, in order.
    """
    taken = points_of(history)
    picks: list[Params] = []
    while len(picks) < count:
        params = propose(taken, picks) or random_unseen(space, taken, rng)
        if params is None:
            break
        taken.add(point_of(params))
        picks.append(params)
    return picks


def quasi_random(space: SearchSpace, *, seed: int, start: int = 0) -> Iterator[Params]:
    """Yield the feasible ones of 1,000 evenly spread points, with repeats, from ``start`` on.

    They are a Halton sequence with scrambled digits (Owen, 2017): even for every number of points,
    and in many dimensions too.
    """
    halton = qmc.Halton(len(space.names), scramble=True, rng=np.random.default_rng(seed))
    halton.fast_forward(start)
    for _ in range(0, QUASI_RANDOM_DRAWS, BLOCK):
        for row in halton.random(BLOCK):
            params = space.decode(row)
            if space.satisfies(params):
                yield params


def spread_unseen(
    space: SearchSpace, history: Sequence[Trial], *, count: int, seed: int
) -> list[Params]:
    """Return the next ``count`` points of the quasi-random sequence that the history lacks.

    The n-th is looked for from the n-th of the sequence on, so that it takes no longer after a long
    history, and does not depend on how many are asked for together.
    """
    taken = points_of(history)
    picks: list[Params] = []
    for place in range(len(history), len(history) + count):
        spread = quasi_random(space, seed=seed, start=place)
        unseen = (params for params in spread if point_of(params) not in taken)
        params = next(unseen, None) or random_unseen(
            space, taken, np.random.default_rng([seed, place])
        )
        if params is None:
            break
        taken.add(point_of(params))
        picks.append(params)
    return picks


def middles_unseen(
    space: SearchSpace, history: Sequence[Trial], *, first: int, count: int, seed: int
) -> list[Params]:
    """Return the next ``count`` points of an even grid of at most ``first``, then spread ones.

    The grid's levels lie in the middles of equal parts of the ranges. Those nearest to the middle
    of the space come first, since few optima lie near an end; the order of equals is a seeded
    shuffle. Few points say more there than where they are spread (measured in
    experiments/search_quality/backends.md).
    """
    taken = points_of(history)
    points = space.grid(first)
    order = np.random.default_rng(seed).permutation(len(points))
    from_middle = [_from_middle(space, points[place]) for place in order]
    nearest = order[np.argsort(from_middle, kind="stable")]
    unseen = [points[place] for place in nearest if point_of(points[place]) not in taken]
    picks = unseen[:count]
    known = [*history, *(Trial(len(history) + i, "", params) for i, params in enumerate(picks))]
    return picks + spread_unseen(space, known, count=count - len(picks), seed=seed)


def _from_middle(space: SearchSpace, params: Params) -> float:
    """Return how far the numbers of a point lie from the middles of their ranges, squared."""
    ways = [
        (parameter.position(params[name]) - 0.5) ** 2
        for name, parameter in space.parameters.items()
        if name in params and not isinstance(parameter, Categorical)
    ]
    return round(sum(ways), 9)  # Equals are equal whatever the rounding of their positions.
