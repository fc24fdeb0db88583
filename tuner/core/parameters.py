"""The three kinds of parameter: real, integer and categorical, with their ranges and lattices.

Every parameter maps the unit interval onto its values and back. Values on a lattice (integers, and
reals with a step) own equal slices of it (equal in the logarithm on a log scale), so that a uniform
position gives a fair value, ends included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tuner.core.errors import InputError, Problem, did_you_mean
from tuner.core.parameter_check import (
    choices_problems,
    fine_step_problems,
    integer_problem,
    is_number,
    is_same,
    missing_step_problems,
    native,
    number_problem,
    range_problems,
    when_problems,
)
from tuner.core.scales import (
    checked_lattice_value,
    checked_whole_value,
    lattice_count,
    nearest_index,
    nearest_whole_index,
    number_at,
    outside,
    position_of,
    spaced_levels,
)
from tuner.core.trial import Scalar

Scale = Literal["linear", "log"]
When = Mapping[str, tuple[Scalar, ...]]


@dataclass(frozen=True)
class Real:
    """A real number from ``low`` to ``high``, both included; multiples of ``step`` from ``low``."""

    low: float
    high: float
    scale: Scale = "linear"
    step: float | None = None
    when: When = field(default_factory=dict)

    def __post_init__(self) -> None:
        problems = range_problems(self.low, self.high, self.scale, self.step, number_problem)
        _refuse(problems or fine_step_problems(self.low, self.high, self.step), self)
        for name in ("low", "high", "step"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, float(getattr(self, name)) + 0.0)  # -0.0 -> 0.0
        object.__setattr__(self, "when", _normal_when(self.when))

    @property
    def count(self) -> int | None:
        """Return the number of values; None: infinitely many."""
        if self.low == self.high:
            return 1
        return None if self.step is None else lattice_count(self.low, self.high, self.step)

    def canonical(self, value: object) -> float:
        """Return ``value`` as a float of 12 significant digits, clipped to the range.

        Raises:
            ValueError: not a finite number, out of range, or off the step.
        """
        problem = number_problem(value)
        if problem:
            raise ValueError(problem)
        number = float(value)  # type: ignore[arg-type]  # checked above
        if self.step is not None and self.low < self.high:
            return checked_lattice_value(self, number)
        slack = 1e-12 * max(abs(self.low), abs(self.high))
        if not self.low - slack <= number <= self.high + slack:
            raise ValueError(outside(value, self.low, self.high))
        return self._rounded(number)

    def position(self, value: Scalar) -> float:
        """Return where ``value`` lies in the unit interval."""
        return position_of(self, float(value))  # type: ignore[arg-type]  # canonical values only

    def at(self, position: float) -> float:
        """Return the value at a position of the unit interval."""
        return self.nearest(number_at(self, position))

    def nearest(self, number: float) -> float:
        """Return the value closest to any number."""
        if self.step is None or self.low == self.high:
            return self._rounded(number)
        return self.lattice_value(self.lattice_index(number))

    def levels(self, number: int) -> list[Scalar]:
        """Return up to ``number`` evenly spaced values, ends included; the middle one for 1."""
        return spaced_levels(self, number)

    def to_mapping(self) -> dict[str, Any]:
        """Return the form in which a configuration writes the parameter."""
        return _number_mapping("real", self, default_step=None)

    def lattice_index(self, number: float) -> int:
        """Return which step from ``low``, from 0, is closest to any number."""
        return nearest_index(self, number)

    def lattice_value(self, index: int) -> float:
        """Return the value so many steps from ``low``."""
        return self._rounded(self.low + index * (self.step or 0.0))

    def _rounded(self, value: float) -> float:
        if value in (self.low, self.high):
            return value + 0.0
        return min(max(float(f"{value:.12g}") + 0.0, self.low), self.high)


@dataclass(frozen=True)
class Integer:
    """An integer from ``low`` to ``high``, both included; multiples of ``step`` from ``low``."""

    low: int
    high: int
    scale: Scale = "linear"
    step: int = 1
    when: When = field(default_factory=dict)

    def __post_init__(self) -> None:
        problems = range_problems(self.low, self.high, self.scale, self.step, integer_problem)
        _refuse(problems + missing_step_problems(self.step), self)
        for name in ("low", "high", "step"):
            object.__setattr__(self, name, int(getattr(self, name)))
        object.__setattr__(self, "when", _normal_when(self.when))

    @property
    def count(self) -> int:
        """Return the number of values."""
        return (self.high - self.low) // self.step + 1

    def canonical(self, value: object) -> int:
        """Return ``value`` as an int; 2.0 counts as 2.

        Raises:
            ValueError: not an integer, out of range, or off the step.
        """
        problem = integer_problem(value)
        if problem:
            raise ValueError(problem)
        return checked_whole_value(self, int(value))  # type: ignore[call-overload]  # checked above

    def position(self, value: Scalar) -> float:
        """Return where ``value`` lies in the unit interval."""
        return position_of(self, float(value))  # type: ignore[arg-type]  # canonical values only

    def at(self, position: float) -> int:
        """Return the value at a position of the unit interval."""
        return self.nearest(number_at(self, position))

    def nearest(self, number: float) -> int:
        """Return the value closest to any number."""
        return self.lattice_value(self.lattice_index(number))

    def levels(self, number: int) -> list[Scalar]:
        """Return up to ``number`` evenly spaced values, ends included; the middle one for 1."""
        return spaced_levels(self, number)

    def to_mapping(self) -> dict[str, Any]:
        """Return the form in which a configuration writes the parameter."""
        return _number_mapping("integer", self, default_step=1)

    def lattice_index(self, number: float) -> int:
        """Return which step from ``low``, from 0, is closest to any number."""
        return nearest_whole_index(self, number)

    def lattice_value(self, index: int) -> int:
        """Return the value so many steps from ``low``."""
        return self.low + index * self.step


@dataclass(frozen=True)
class Categorical:
    """One of several values, told apart by type and value (``1``, ``1.0`` and ``True`` differ)."""

    choices: tuple[Scalar, ...]
    when: When = field(default_factory=dict)

    def __post_init__(self) -> None:
        _refuse(choices_problems(self.choices), self)
        object.__setattr__(self, "choices", tuple(native(choice) for choice in self.choices))
        object.__setattr__(self, "when", _normal_when(self.when))

    @property
    def count(self) -> int:
        """Return the number of choices."""
        return len(self.choices)

    def canonical(self, value: object) -> Scalar:
        """Return the choice that equals ``value`` in type and value, or as a number.

        Raises:
            ValueError: not one of the choices.
        """
        value = native(value)
        for choice in self.choices:
            if is_same(choice, value):
                return choice
        for choice in self.choices:
            if is_number(choice) and is_number(value) and choice == value:
                return choice
        if isinstance(value, str):
            hint = did_you_mean(value, [str(choice) for choice in self.choices])
        else:
            hint = f"; known: {', '.join(map(repr, self.choices))}"
        raise ValueError(f"{value!r} is not one of the choices{hint}")

    def index(self, value: Scalar) -> int:
        """Return the place of a canonical value among the choices."""
        return next(i for i, choice in enumerate(self.choices) if is_same(choice, value))

    def position(self, value: Scalar) -> float:
        """Return the middle of the choice's slice of the unit interval."""
        return (self.index(value) + 0.5) / len(self.choices)

    def at(self, position: float) -> Scalar:
        """Return the choice at a position of the unit interval."""
        last = len(self.choices) - 1
        return self.choices[min(max(int(position * len(self.choices)), 0), last)]

    def levels(self, number: int) -> list[Scalar]:
        """Return the first ``number`` choices."""
        return list(self.choices[:number])

    def to_mapping(self) -> dict[str, Any]:
        """Return the form in which a configuration writes the parameter."""
        mapping: dict[str, Any] = {"type": "categorical", "choices": list(self.choices)}
        return mapping | _when_mapping(self.when)


Parameter = Real | Integer | Categorical


def _refuse(problems: list[Problem], parameter: Parameter) -> None:
    problems += when_problems(parameter.when)
    if problems:
        raise InputError(problems=problems)


def _normal_when(when: Mapping[str, Any]) -> dict[str, tuple[Scalar, ...]]:
    return {
        name: tuple(values) if isinstance(values, list | tuple) else (values,)
        for name, values in when.items()
    }


def _when_mapping(when: When) -> dict[str, Any]:
    if not when:
        return {}
    return {"when": {n: v[0] if len(v) == 1 else list(v) for n, v in when.items()}}


def _number_mapping(
    kind: str, parameter: Real | Integer, *, default_step: int | None
) -> dict[str, Any]:
    mapping: dict[str, Any] = {"type": kind, "low": parameter.low, "high": parameter.high}
    if parameter.scale != "linear":
        mapping["scale"] = parameter.scale
    if parameter.step != default_step:
        mapping["step"] = parameter.step
    return mapping | _when_mapping(parameter.when)
