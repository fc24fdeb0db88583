"""The three kinds of parameter: real, integer and categorical, with their ranges and lattices.

Every parameter maps the unit interval onto its values and back. Values on a lattice (integers, and
reals with a step) own equal slices of it (equal in the logarithm on a log scale), so that a uniform
position gives a fair value, ends included.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tuner.core.checks import integer_problem, is_number, native, number_problem
from tuner.core.errors import Problem, did_you_mean, refuse
from tuner.core.space.problems import (
    choices_problems,
    fine_step_problems,
    is_same,
    missing_step_problems,
    range_problems,
    when_problems,
)
from tuner.core.trial import Scalar

Scale = Literal["linear", "log"]
When = Mapping[str, tuple[Scalar, ...]]

# A value this close to a lattice point, as a share of the step, is that point.
LATTICE_TOLERANCE = 1e-6


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
        if self.step is None:
            return None
        return math.floor((self.high - self.low) / self.step + LATTICE_TOLERANCE) + 1

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
            return self._on_step(number)
        slack = 1e-12 * max(abs(self.low), abs(self.high))
        if not self.low - slack <= number <= self.high + slack:
            raise ValueError(_outside(value, self))
        return self._rounded(number)

    def _on_step(self, number: float) -> float:
        count, low, step = self.count or 1, self.low, self.step or 1.0
        offset = (number - low) / step
        index = round(offset)
        if not -LATTICE_TOLERANCE <= offset <= (self.high - low) / step + LATTICE_TOLERANCE:
            raise ValueError(_outside(number, self))
        nearest = self.lattice_value(min(index, count - 1))
        if abs(offset - index) > LATTICE_TOLERANCE or index >= count:
            raise ValueError(_off_step(number, self, nearest))
        return nearest

    def position(self, value: Scalar) -> float:
        """Return where ``value`` lies in the unit interval."""
        return _position(self, float(value))  # type: ignore[arg-type]  # canonical values only

    def at(self, position: float) -> float:
        """Return the value at a position of the unit interval."""
        return self.nearest(_number_at(self, position))

    def nearest(self, number: float) -> float:
        """Return the value closest to any number."""
        if self.step is None or self.low == self.high:
            return self._rounded(number)
        return self.lattice_value(self.lattice_index(number))

    def levels(self, number: int, *, edges: bool = False) -> list[Scalar]:
        """Return up to ``number`` values, in the middles of as many equal parts of the range.

        With ``edges``, they are evenly spaced from end to end; the middle one for 1.
        """
        return _levels(self, number, edges=edges)

    def to_mapping(self) -> dict[str, Any]:
        """Return the form in which a configuration writes the parameter."""
        return _number_mapping("real", self, default_step=None)

    def lattice_index(self, number: float) -> int:
        """Return which step from ``low``, from 0, is closest to any number."""
        index = round((number - self.low) / (self.step or 1))
        return min(max(index, 0), (self.count or 1) - 1)

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
        # In integer arithmetic: floats end at 2**53.
        number: int = int(value)  # type: ignore[call-overload]  # checked above
        if not self.low <= number <= self.high:
            raise ValueError(_outside(number, self))
        if (number - self.low) % self.step:
            raise ValueError(_off_step(number, self, self.nearest(number)))
        return number

    def position(self, value: Scalar) -> float:
        """Return where ``value`` lies in the unit interval."""
        return _position(self, float(value))  # type: ignore[arg-type]  # canonical values only

    def at(self, position: float) -> int:
        """Return the value at a position of the unit interval."""
        return self.nearest(_number_at(self, position))

    def nearest(self, number: float) -> int:
        """Return the value closest to any number."""
        return self.lattice_value(self.lattice_index(number))

    def levels(self, number: int, *, edges: bool = False) -> list[Scalar]:
        """Return up to ``number`` values, in the middles of as many equal parts of the range.

        With ``edges``, they are evenly spaced from end to end; the middle one for 1.
        """
        return _levels(self, number, edges=edges)

    def to_mapping(self) -> dict[str, Any]:
        """Return the form in which a configuration writes the parameter."""
        return _number_mapping("integer", self, default_step=1)

    def lattice_index(self, number: float) -> int:
        """Return which step from ``low``, from 0, is closest to any number; of two the even one.

        A difference of large integers is no exact float: only the part below one step is one.
        """
        whole = math.floor(number)
        index, rest = divmod(whole - self.low, self.step)
        odd = index % 2  # Rounding goes to the even neighbour, so that it has to know.
        index += round(odd + (rest + (number - whole)) / self.step) - odd
        return min(max(index, 0), self.count - 1)

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

    def levels(self, number: int, *, edges: bool = False) -> list[Scalar]:  # noqa: ARG002
        """Return the first ``number`` choices."""
        return list(self.choices[:number])

    def to_mapping(self) -> dict[str, Any]:
        """Return the form in which a configuration writes the parameter."""
        mapping: dict[str, Any] = {"type": "categorical", "choices": list(self.choices)}
        return mapping | _when_mapping(self.when)


Parameter = Real | Integer | Categorical


def _refuse(problems: list[Problem], parameter: Parameter) -> None:
    problems += when_problems(parameter.when)
    refuse(problems)


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


def _outside(value: object, span: Real | Integer) -> str:
    return f"{native(value)!r} is outside {span.low} .. {span.high}"


def _off_step(number: float, span: Real | Integer, nearest: float) -> str:
    return f"{number!r} is off the step of {span.step} from {span.low}; nearest: {nearest!r}"


def _edges(span: Real | Integer) -> tuple[float, float]:
    """Return where the unit interval begins and ends, on the span's scale."""
    low, high = float(span.low), float(span.high)
    if span.step is not None and span.low < span.high:
        top = low + ((span.count or 1) - 1) * span.step
        low, high = low - span.step / 2, top + span.step / 2
        if span.scale == "log":
            low = max(low, span.low / 2)  # Half a step down may reach 0.
    return (math.log(low), math.log(high)) if span.scale == "log" else (low, high)


def _position(span: Real | Integer, value: float) -> float:
    """Return where a value lies in the unit interval."""
    start, end = _edges(span)
    if start == end or span.low == span.high:
        return 0.5
    place = math.log(value) if span.scale == "log" else value
    return min(max((place - start) / (end - start), 0.0), 1.0)


def _number_at(span: Real | Integer, position: float) -> float:
    """Return the number at a position of the unit interval, off the lattice."""
    start, end = _edges(span)
    place = start + min(max(position, 0.0), 1.0) * (end - start)
    if span.step is None and position >= 1.0:
        return float(span.high)  # exp(log(high)) may miss it by a digit.
    if span.step is None and position <= 0.0:
        return float(span.low)
    return math.exp(place) if span.scale == "log" else place


def _levels(span: Real | Integer, number: int, *, edges: bool) -> list[Scalar]:
    """Return up to ``number`` values: middles of equal parts, or evenly spaced, ends included."""
    count = span.count
    if count is not None and number >= count:
        return [span.lattice_value(index) for index in range(count)]
    if number == 1:
        return [span.at(0.5)]
    if edges:
        low = float(span.low)
        high = low + (count - 1) * (span.step or 0) if count else float(span.high)
        space = np.geomspace if span.scale == "log" else np.linspace
        spaced = [float(value) for value in space(low, high, number)]
    else:
        spaced = [_number_at(span, (part + 0.5) / number) for part in range(number)]
    if count is None:
        return list(dict.fromkeys(span.canonical(value) for value in spaced))
    indices = _distinct([span.lattice_index(value) for value in spaced], count)
    return [span.lattice_value(index) for index in indices]


def _distinct(indices: list[int], count: int) -> list[int]:
    """Move equal neighbours up, then down from the end, so that all differ within ``count``.

    Log levels of small integers collide: 1, 1, 2, 5 becomes 1, 2, 3, 5.
    """
    moved = list(indices)
    for i in range(1, len(moved)):
        moved[i] = max(moved[i], moved[i - 1] + 1)
    moved[-1] = min(moved[-1], count - 1)
    for i in range(len(moved) - 2, -1, -1):
        moved[i] = min(moved[i], moved[i + 1] - 1)
    return moved
