"""Grids over a search space: as many levels a parameter as a budget of trials allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from math import prod
from typing import TYPE_CHECKING

from tuner.core.errors import InputError, Problem, did_you_mean
from tuner.core.trial import Params, Scalar

if TYPE_CHECKING:
    from tuner.core.space import SearchSpace

# Constraints may leave little of a grid, so that it can be refined on and on: refining stops when
# so many combinations were looked at (about a second).
MOST_LOOKED_AT = 200_000

Levels = Mapping[str, int | Sequence[object]]


def grid_points(space: SearchSpace, budget: int, levels: Levels) -> list[Params]:
    """Return the points of the finest even grid with at most ``budget`` points.

    Parameters take turns, the one with the fewest levels first, in adding a level while the grid
    still fits. Combinations that differ in inactive parameters only are one point.

    Raises:
        InputError: a budget below 1, or named levels that are invalid or exceed the budget.
    """
    if budget < 1:
        raise InputError(f"a grid needs a budget of at least 1 trial, got {budget}")
    named = _named_levels(space, levels)
    numbers = {name: 1 for name in space.names if name not in named}
    if not _fits(space, _all_levels(space, named, numbers), budget):
        total = _total(space, named, numbers)
        raise InputError(
            f"the named levels make a grid of {total} points but the budget is {budget} trials; "
            f"raise the budget to {total} or name fewer levels",
            key=("levels",),
        )
    looked_at = 0
    open_names = list(numbers)
    while open_names and looked_at <= MOST_LOOKED_AT:
        name = min(open_names, key=lambda name: numbers[name])  # Of equals, the first declared.
        count = space.parameters[name].count
        finer = numbers | {name: numbers[name] + 1}
        is_possible = count is None or numbers[name] < count
        levels_of_finer = _all_levels(space, named, finer) if is_possible else {}
        looked_at += _combination_count(levels_of_finer)
        if is_possible and _fits(space, levels_of_finer, budget):
            numbers = finer
        else:
            open_names.remove(name)
    return list(space.combinations(_all_levels(space, named, numbers)))


def _fits(space: SearchSpace, levels: Mapping[str, Sequence[Scalar]], budget: int) -> bool:
    combinations = _combination_count(levels)
    if not space.constraints and not any(p.when for p in space.parameters.values()):
        return combinations <= budget
    if combinations > max(MOST_LOOKED_AT, budget):
        return False
    return sum(1 for _ in islice(space.combinations(levels), budget + 1)) <= budget


def _total(
    space: SearchSpace, named: Mapping[str, Sequence[Scalar]], numbers: Mapping[str, int]
) -> int:
    levels = _all_levels(space, named, numbers)
    raw = _combination_count(levels)
    if raw > MOST_LOOKED_AT:
        return raw
    return sum(1 for _ in space.combinations(levels))


def _combination_count(levels: Mapping[str, Sequence[Scalar]]) -> int:
    return prod(len(values) for values in levels.values())


def _all_levels(
    space: SearchSpace, named: Mapping[str, Sequence[Scalar]], numbers: Mapping[str, int]
) -> dict[str, Sequence[Scalar]]:
    return {
        name: named[name] if name in named else parameter.levels(numbers[name])
        for name, parameter in space.parameters.items()
    }


def _named_levels(space: SearchSpace, levels: Levels) -> dict[str, list[Scalar]]:
    named: dict[str, list[Scalar]] = {}
    problems: list[Problem] = []
    for name, wanted in levels.items():
        key = ("levels", str(name))
        if name not in space.parameters:
            problems.append(Problem(f"unknown parameter{did_you_mean(name, space.names)}", key=key))
            continue
        parameter = space.parameters[name]
        if isinstance(wanted, int) and not isinstance(wanted, bool):
            if wanted < 1:
                problems.append(Problem(f"needs at least 1 level, got {wanted}", key=key))
            elif parameter.count is not None and wanted > parameter.count:
                message = f"has {parameter.count} values only, {wanted} levels were asked for"
                problems.append(Problem(message, key=key))
            else:
                named[name] = parameter.levels(wanted)
            continue
        if isinstance(wanted, str) or not isinstance(wanted, Sequence) or not wanted:
            message = f"must be a number of levels or a list of values, got {wanted!r}"
            problems.append(Problem(message, key=key))
            continue
        values: list[Scalar] = []
        for index, value in enumerate(wanted):
            try:
                values.append(parameter.canonical(value))
            except ValueError as error:
                problems.append(Problem(str(error), key=(*key, index)))
        named[name] = list({(type(value), value): value for value in values}.values())
    if problems:
        raise InputError(problems=problems)
    return named
