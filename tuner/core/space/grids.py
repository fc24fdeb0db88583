"""The grids of a space: how many levels each parameter has, and where they lie."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import prod
from typing import Protocol

from tuner.core.checks import is_whole
from tuner.core.errors import Problem, did_you_mean, refuse
from tuner.core.space.parameters import Parameter
from tuner.core.trial import Params, Scalar

Levels = Mapping[str, int | Sequence[object]]

# Constraints may leave little of a grid, so that it can be refined on and on: refining stops when
# so many combinations were looked at (half a second), over all grids on the way.
MOST_LOOKED_AT = 100_000


class _Space(Protocol):
    """What a grid needs of a space."""

    @property
    def parameters(self) -> Mapping[str, Parameter]: ...

    @property
    def constraints(self) -> tuple[str, ...]: ...

    def combinations(self, levels: Mapping[str, Sequence[Scalar]]) -> Iterator[Params]: ...


class Grids:
    """Grids by the number of levels of each parameter whose levels are not named."""

    def __init__(
        self,
        space: _Space,
        named: Mapping[str, Sequence[Scalar]],
        budget: int,
        *,
        edges: bool,
    ) -> None:
        self.space = space
        self.edges = edges
        self.named = named
        self.budget = budget
        self.is_plain = not space.constraints and not any(
            parameter.when for parameter in space.parameters.values()
        )
        self.looked_at = 0
        self.last_that_fits: list[Params] = []

    def levels(self, numbers: Mapping[str, int]) -> dict[str, Sequence[Scalar]]:
        """Return the values of every parameter."""
        return {
            name: self.named[name]
            if name in self.named
            else parameter.levels(numbers[name], edges=self.edges)
            for name, parameter in self.space.parameters.items()
        }

    def fits(self, numbers: Mapping[str, int]) -> bool:
        """Say whether the grid has at most as many points as the budget, as far as it is known."""
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
        """Return how many points the grid has; where those are many, how many at most."""
        combinations = self._combinations(numbers)
        if combinations > MOST_LOOKED_AT:
            return combinations
        return sum(1 for _ in self.space.combinations(self.levels(numbers)))

    def _combinations(self, numbers: Mapping[str, int]) -> int:
        return prod(map(len, self.named.values())) * prod(numbers.values())


def named_levels(
    parameters: Mapping[str, Parameter], levels: Levels, *, edges: bool
) -> dict[str, Sequence[Scalar]]:
    """Return the values of parameters whose levels are fixed, by number or by value.

    Raises:
        InputError: every level that is invalid, with the key ``("levels", name)``.
    """
    named: dict[str, Sequence[Scalar]] = {}
    problems: list[Problem] = []
    for name, wanted in levels.items():
        key = ("levels", str(name))
        if name not in parameters:
            problems.append(Problem(f"unknown parameter{did_you_mean(name, parameters)}", key=key))
            continue
        parameter = parameters[name]
        if is_whole(wanted):
            if wanted < 1:
                problems.append(Problem(f"needs at least 1 level, got {wanted}", key=key))
            elif parameter.count is not None and wanted > parameter.count:
                message = f"has {parameter.count} values only, {wanted} levels were asked for"
                problems.append(Problem(message, key=key))
            else:
                named[name] = parameter.levels(wanted, edges=edges)
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
    refuse(problems)
    return named
