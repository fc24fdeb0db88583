"""How many new indexes each arm of a study may ask for, where all together may ask for so many.

What the baseline and the starting points need comes first. The rest is shared out by the trials of
the arms; an arm that cannot use its share leaves the rest of it to the others. So the share of an
arm depends on the study alone, and no arm uses up what the others need, whoever comes first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from fractions import Fraction

from tuner.backends import by_index
from tuner.backends.grid import Grid
from tuner.backends.index_levels import Levels
from tuner.backends.points import Point
from tuner.core.errors import InputError
from tuner.core.space import SearchSpace
from tuner.core.trial import Trial
from tuner.study.arms import Arm, Fixed


def shared_out(arms: Sequence[Arm], space: SearchSpace, most: int | None) -> list[Arm]:
    """Return the arms with what each may ask for of new indexes; grids as coarse as it takes.

    ``most`` is for all, the indexes of given points included; None: no limit.

    Raises:
        InputError: named levels of a grid need more; its key begins with the arm's place among
            those that search.
    """
    if most is None or not space.index:
        return list(arms)
    levels = Levels.of(space)
    fixed = [arm.backend for arm in arms if isinstance(arm.backend, Fixed)]
    given = {levels.key(params): params for backend in fixed for params in backend.params}
    searching = [arm for arm in arms if not isinstance(arm.backend, Fixed)]
    needs = [_need(arm, space, levels, given.keys()) for arm in searching]
    shares = _shares([arm.budget for arm in searching], needs, max(most - len(given), 0))
    settings = [levels.setting(params) for params in given.values()]
    known = [setting for setting in settings if setting is not None]
    found = {}
    for place, (arm, share) in enumerate(zip(searching, shares, strict=True)):
        backend = arm.backend
        if isinstance(backend, Grid):
            try:
                backend = backend.within(space, known, share)
            except InputError as error:
                problems = [replace(one, key=(place, *one.key)) for one in error.problems]
                raise InputError(problems=problems) from error
        found[arm.name] = replace(arm, backend=backend, new_indexes=share)
    return [found.get(arm.name, arm) for arm in arms]


def most_for(arm: Arm, space: SearchSpace, trials: Sequence[Trial], most: int | None) -> int | None:
    """Return how many indexes there may be once an arm has asked for another trial.

    ``trials`` are all so far, of whatever arm; whose trial is the first on an index asked for it.
    """
    if most is None or arm.new_indexes is None or not space.index:
        return most
    levels, first = Levels.of(space), dict[Point, str]()
    for trial in trials:
        first.setdefault(levels.key(trial.params), trial.arm)
    own = sum(name == arm.name for name in first.values())
    return min(most, len(first) + max(arm.new_indexes - own, 0))


def _need(arm: Arm, space: SearchSpace, levels: Levels, known: Collection[Point]) -> int:
    """Return how many indexes beside the known ones an arm can make use of."""
    if not isinstance(arm.backend, Grid):
        return by_index.most_asked(arm.backend, space, arm.budget)
    # Which points a grid has does not depend on the seed.
    points = arm.backend.suggest(space, (), count=arm.budget, seed=0)
    return len({levels.key(params) for params in points} - set(known))


def _shares(weights: Sequence[int], needs: Sequence[int], whole: int) -> list[int]:
    """Divide a number by weights, nobody getting more than needed.

    >>> _shares([54, 40, 6], [12, 7, 6], 11)  # 5.94, 4.4, 0.66: the rest goes to the nearest
    [6, 4, 1]
    >>> _shares([50, 50], [2, 20], 11)  # the first leaves to the second what it does not need
    [2, 9]
    """
    shares = [0] * len(weights)
    open_places = list(range(len(weights)))
    while open_places:
        left = whole - sum(shares[i] for i in range(len(weights)) if i not in open_places)
        total = sum(weights[i] for i in open_places)
        fair = {i: Fraction(left * weights[i], total) for i in open_places}
        content = [i for i in open_places if needs[i] <= fair[i]]
        if not content:
            for i in open_places:
                shares[i] = int(fair[i])
            by_rest = sorted(open_places, key=lambda i: (shares[i] - fair[i], i))
            for i in by_rest[: left - sum(shares[i] for i in open_places)]:
                shares[i] += 1
            break
        for i in content:
            shares[i] = needs[i]
        open_places = [i for i in open_places if i not in content]
    return shares
