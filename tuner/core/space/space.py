"""The search space: named parameters, when they are active, and constraints between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from tuner.core.errors import InputError, Problem, did_you_mean, refuse
from tuner.core.json_text import fingerprint_of
from tuner.core.rankings import FloatArray
from tuner.core.space.expression import Constraint
from tuner.core.space.grids import Grids, Levels, named_levels
from tuner.core.space.parameters import Categorical, Parameter
from tuner.core.space.problems import is_same
from tuner.core.space.reading import (
    order_of_activation,
    parse_constraints,
    parse_parameters,
    space_problems,
    with_canonical_conditions,
)
from tuner.core.trial import Params, Scalar

# Where nothing is found in so many draws, less than about one point in 2,000 is feasible.
SAMPLE_ATTEMPTS = 10_000
# Spaces with up to this many combinations are enumerated to count them or to find what is left.
MOST_COMBINATIONS = 50_000


@dataclass(frozen=True)
class SearchSpace:
    """Named parameters, in order, and constraints such as ``"start_k <= select_k"``.

    A parameter with ``when={"mode": ("hybrid",)}`` is active only while ``mode`` is active and has
    one of these values. Points hold active parameters only. A constraint that mentions an inactive
    parameter counts as satisfied. ``index`` names the parameters whose change needs another index
    of the system: what asks it knows them, and they are no part of the fingerprint.

    >>> from tuner.core.space import Categorical, Integer
    >>> space = SearchSpace({"k": Integer(1, 9), "mode": Categorical(("text", "graph"))})
    >>> space.canonical({"mode": "graph", "k": 3.0})
    {'k': 3, 'mode': 'graph'}
    """

    parameters: Mapping[str, Parameter]
    constraints: tuple[str, ...] = ()
    index: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        problems = space_problems(self.parameters, self.constraints)
        refuse(problems)
        object.__setattr__(self, "parameters", with_canonical_conditions(self.parameters))
        object.__setattr__(self, "constraints", tuple(self.constraints))

    @classmethod
    def from_mapping(cls, raw: object, constraints: Sequence[object] = ()) -> SearchSpace:
        """Read the ``space`` section of a configuration, as in the README.

        Raises:
            InputError: every problem at once, with keys such as ``("space", "max_hops", "low")``
                and ``("space_constraints", 0)``.
        """
        parameters, problems, broken = parse_parameters(raw)
        if parameters or broken or not problems:
            problems += space_problems(parameters, constraints, broken=broken)
        refuse(problems)
        return cls(parameters, tuple(str(text) for text in constraints))

    def to_mapping(self) -> dict[str, dict[str, Any]]:
        """Return the form that ``from_mapping`` reads; the constraints stand beside it."""
        return {name: parameter.to_mapping() for name, parameter in self.parameters.items()}

    def with_index(self, names: Iterable[str]) -> SearchSpace:
        """Return the same space, in which these parameters, where it has them, shape the index."""
        known = set(names)
        return replace(self, index=tuple(name for name in self.parameters if name in known))

    def without(self, names: Iterable[str]) -> SearchSpace | None:
        """Return the same space without some parameters, on which nothing else depends.

        Constraints that speak of these alone go with them. None where no parameter is left.
        """
        gone = set(names)
        left = {name: one for name, one in self.parameters.items() if name not in gone}
        if not left:
            return None
        kept = (one for one in self._constraints if not one.names or not one.names <= gone)
        return replace(self, parameters=left, constraints=tuple(one.text for one in kept))

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the parameters, in order."""
        return tuple(self.parameters)

    @cached_property
    def fingerprint(self) -> str:
        """Return a SHA-256 of the parameters, in their order, and the constraints."""
        texts = [constraint.text for constraint in self._constraints]
        return fingerprint_of([list(self.to_mapping().items()), texts])

    def canonical(self, params: Mapping[str, object]) -> Params:
        """Return the params in the order of the space, native, without the inactive ones.

        Floats have 12 significant digits (or lie exactly on an end of the range or on the step).
        Constraints are not looked at: see ``satisfies``.

        Raises:
            InputError: every unknown, missing, out-of-range or off-step parameter, with the key
                ``("params", name)``.
        """
        problems = [
            Problem(f"unknown parameter{did_you_mean(str(name), self.names)}", key=_at(name))
            for name in params
            if name not in self.parameters
        ]
        active: Params = {}
        for name in self.activation_order:
            parameter = self.parameters[name]
            if not self.is_active(parameter, active):
                continue
            if name not in params:
                problems.append(Problem("missing", key=_at(name)))
                continue
            try:
                active[name] = parameter.canonical(params[name])
            except ValueError as error:
                problems.append(Problem(str(error), key=_at(name)))
        refuse(problems)
        return self._in_order(active)

    def key(self, params: Mapping[str, object]) -> str:
        """Return a short hash (16 hexadecimal digits) of the canonical params."""
        return fingerprint_of(self.canonical(params))[:16]

    def satisfies(self, params: Params) -> bool:
        """Say whether canonical params meet every constraint."""
        return all(constraint.holds(params) for constraint in self._constraints)

    def contains(self, params: Mapping[str, object]) -> bool:
        """Say whether the params are valid and meet every constraint."""
        try:
            return self.satisfies(self.canonical(params))
        except InputError:
            return False

    def sample(self, rng: np.random.Generator) -> Params:
        """Draw a point, uniform on each parameter's scale; constraints by rejection.

        Raises:
            InputError: nothing that meets the constraints was found in 10,000 draws.
        """
        for _ in range(SAMPLE_ATTEMPTS):
            params = self.decode(rng.random(len(self.parameters)))
            if self.satisfies(params):
                return params
        # Few feasible points of a small space are still found by looking at each.
        if self.is_enumerable and (few := list(self.points())):
            return few[int(rng.integers(len(few)))]
        texts = ", ".join(repr(text) for text in self.constraints)
        message = f"no point that meets {texts} in {SAMPLE_ATTEMPTS:,} draws; loosen them"
        raise InputError(message, key=("space_constraints",))

    @property
    def is_enumerable(self) -> bool:
        """Say whether there are few enough combinations (50,000) to look at each."""
        counts = [parameter.count for parameter in self.parameters.values()]
        return None not in counts and prod(c or 1 for c in counts) <= MOST_COMBINATIONS

    def size(self) -> int | None:
        """Return the number of distinct points.

        None: infinite, or conditional or constrained and too large to be enumerated.
        """
        if self.is_enumerable:
            return sum(1 for _ in self.points())
        counts = [parameter.count for parameter in self.parameters.values()]
        if None in counts or self.constraints or any(p.when for p in self.parameters.values()):
            return None
        return prod(c or 1 for c in counts)

    def points(self) -> Iterator[Params]:
        """Enumerate every point of a finite space, lazily, the last parameter fastest.

        Raises:
            InputError: the space is infinite.
        """
        levels: dict[str, Sequence[Scalar]] = {}
        for name, parameter in self.parameters.items():
            if parameter.count is None:
                message = "a real parameter without step has infinitely many values"
                raise InputError(message, key=("space", name))
            levels[name] = parameter.levels(parameter.count)
        return self.combinations(levels)

    def combinations(self, levels: Mapping[str, Sequence[Scalar]]) -> Iterator[Params]:
        """Enumerate the distinct feasible points over some values of each parameter, lazily."""
        for chosen in self._assign(0, {}, levels):
            yield self._in_order(chosen)

    def grid(
        self, budget: int, levels: Levels | None = None, *, edges: bool = False
    ) -> list[Params]:
        """Return the points of the finest even grid with at most ``budget`` points.

        Each parameter's levels lie in the middles of equal parts of its range, on its own scale;
        with ``edges``, from end to end at even distances. ``levels`` fixes some parameters' levels,
        by number or by value. The others take turns in adding a level while the grid still fits:
        choices first, and of the rest the one with the fewest levels. Combinations that differ in
        inactive parameters only are one point.

        Raises:
            InputError: a budget below 1, or named levels that are invalid or exceed the budget.
        """
        if budget < 1:
            raise InputError(f"a grid needs a budget of at least 1 trial, got {budget}")
        named = named_levels(self.parameters, levels or {}, edges=edges)
        numbers = {name: 1 for name in self.names if name not in named}
        grid = Grids(self, named, budget, edges=edges)
        if not grid.fits(numbers):
            total = grid.total(numbers)
            raise InputError(
                f"the named levels make a grid of {total} points but the budget is {budget} "
                f"trials; raise the budget to {total} or name fewer levels",
                key=("levels",),
            )
        open_names = list(numbers)
        while open_names:
            # Of equals, the first declared.
            name = min(open_names, key=lambda name: (self._is_ordered(name), numbers[name]))
            count = self.parameters[name].count
            finer = numbers | {name: numbers[name] + 1}
            if (count is None or numbers[name] < count) and grid.fits(finer):
                numbers = finer
            else:
                open_names.remove(name)
        return grid.points(numbers)

    def _is_ordered(self, name: str) -> bool:
        """Say whether a grid without some of a parameter's values still tells of them.

        Numbers between levels are like their neighbours; a choice that is left out is never seen.
        Those of the index wait their turn all the same, as each is an index to build.
        """
        return not isinstance(self.parameters[name], Categorical) or name in self.index

    def named_levels(self, levels: Levels, *, edges: bool = False) -> dict[str, Sequence[Scalar]]:
        """Return the values of the parameters whose levels are fixed by number or by value.

        Raises:
            InputError: every level that is invalid.
        """
        return named_levels(self.parameters, levels, edges=edges)

    def encode(self, params: Params) -> FloatArray:
        """Return canonical params as positions in [0, 1], one a parameter; inactive ones .5."""
        return np.array(
            [
                parameter.position(params[name]) if name in params else 0.5
                for name, parameter in self.parameters.items()
            ]
        )

    def decode(self, positions: Sequence[float] | FloatArray) -> Params:
        """Return the point at positions in [0, 1]; whether it meets the constraints is not checked.

        Uniform positions give uniform values on each parameter's scale. 0 and 1 are the exact ends.
        """
        place = dict(zip(self.parameters, map(float, positions), strict=True))
        active: Params = {}
        for name in self.activation_order:
            if self.is_active(self.parameters[name], active):
                active[name] = self.parameters[name].at(place[name])
        return self._in_order(active)

    @cached_property
    def activation_order(self) -> tuple[str, ...]:
        """Return the names with each parameter after those that decide whether it is active."""
        return order_of_activation(self.parameters)

    @cached_property
    def _constraints(self) -> tuple[Constraint, ...]:
        return parse_constraints(self.parameters, self.constraints)

    def is_active(self, parameter: Parameter, active: Params) -> bool:
        """Say whether a parameter is active, given the active ones before it."""
        return all(
            name in active and any(is_same(active[name], value) for value in values)
            for name, values in parameter.when.items()
        )

    def _in_order(self, active: Params) -> Params:
        return {name: active[name] for name in self.parameters if name in active}

    @cached_property
    def _decided_constraints(self) -> dict[str, tuple[Constraint, ...]]:
        """Return, by parameter, the constraints that nothing after it has a part in."""
        place = {name: depth for depth, name in enumerate(self.activation_order)}
        decided: dict[str, tuple[Constraint, ...]] = dict.fromkeys(place, ())
        for constraint in self._constraints:
            # One without names is decided at once: the first parameter is always active.
            last = max(constraint.names, key=place.__getitem__, default=self.activation_order[0])
            decided[last] += (constraint,)
        return decided

    def _assign(
        self, depth: int, chosen: Params, levels: Mapping[str, Sequence[Scalar]]
    ) -> Iterator[Params]:
        if depth == len(self.activation_order):
            yield chosen
            return
        name = self.activation_order[depth]
        if not self.is_active(self.parameters[name], chosen):
            yield from self._assign(depth + 1, chosen, levels)
            return
        # Where constraints leave little, most of the time goes here: a part that breaks one is
        # left before it is completed.
        constraints = self._decided_constraints[name]
        for value in levels[name]:
            part = chosen | {name: value}
            if all(constraint.holds(part) for constraint in constraints):
                yield from self._assign(depth + 1, part, levels)


def _at(name: object) -> tuple[str, str]:
    return ("params", str(name))
