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
# so many combinations were looked at (half a second), over all grids on the way.
MOST_LOOKED_AT = 100_000

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
    grid = _Grid(space, named, budget)
    if not grid.fits(numbers):
        total = grid.total(numbers)
        raise InputError(
            f"the named levels make a grid of {total} points but the budget is {budget} trials; "
            f"raise the budget to {total} or name fewer levels",
            key=("levels",),
        )
    open_names = list(numbers)
    while open_names:
        name = min(open_names, key=lambda name: numbers[name])  # Of equals, the first declared.
        count = space.parameters[name].count
        finer = numbers | {name: numbers[name] + 1}
        if (count is None or numbers[name] < count) and grid.fits(finer):
            numbers = finer
        else:
            open_names.remove(name)
    return grid.points(numbers)


class _Grid:
    """Grids by the number of levels of each parameter whose levels are not named."""

    def __init__(
        self, space: SearchSpace, named: Mapping[str, Sequence[Scalar]], budget: int
    ) -> None:
        self.space = space
        self.named = named
        self.budget = budget
        self.is_plain = not space.constraints and not any(
            parameter.when for parameter in space.parameters.values()
        )
        self.looked_at = 0
        self.last_that_fits: list[Params] = []

    def levels(self, numbers: Mapping[str, int]) -> dict[str, Sequence[Scalar]]:
        return {
            name: self.named[name] if name in self.named else parameter.levels(numbers[name])
            for name, parameter in self.space.parameters.items()
        }

    def fits(self, numbers: Mapping[str, int]) -> bool:
        combinations = self._combinations(numbers)
        if self.is_plain:
            return combinations <= self.budget
        if self.looked_at + combinations > max(MOST_LOOKED_AT, self.budget):
            return False
        self.looked_at += combinations
        found = list(islice(self.space.combinations(self.levels(numbers)), self.budget + 1))
        if len(found) > self.budget:
            return False
        self.last_that_fits = found
        return True

    def points(self, numbers: Mapping[str, int]) -> list[Params]:
        """Return the points of the last grid that fits, whose numbers of levels these are."""
        if self.is_plain:
            return list(self.space.combinations(self.levels(numbers)))
        return self.last_that_fits

    def total(self, numbers: Mapping[str, int]) -> int:
        combinations = self._combinations(numbers)
        if combinations > MOST_LOOKED_AT:
            return combinations
        return sum(1 for _ in self.space.combinations(self.levels(numbers)))

    def _combinations(self, numbers: Mapping[str, int]) -> int:
        return prod(map(len, self.named.values())) * prod(numbers.values())


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
