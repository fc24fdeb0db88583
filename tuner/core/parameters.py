"""The three kinds of parameter: real, integer and categorical, with their ranges and lattices.

Every parameter maps the unit interval onto its values and back. Values on a lattice (integers, and
reals with a step) own equal slices of it (equal in the logarithm on a log scale), so that a uniform
position gives a fair value, ends included.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tuner.core.errors import InputError, Problem, did_you_mean
from tuner.core.trial import Scalar

Scale = Literal["linear", "log"]
When = Mapping[str, tuple[Scalar, ...]]

# Beyond it, neighbouring integers are no longer different as floats.
LARGEST_INTEGER = 2**53
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
        problems = _range_problems(self.low, self.high, self.scale, self.step, _number_problem)
        _refuse(problems, self)
        for name in ("low", "high", "step"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, float(getattr(self, name)) + 0.0)  # -0.0 -> 0.0
        object.__setattr__(self, "when", _normal_when(self.when))

    @property
    def count(self) -> int | None:
        """Return the number of values; None: infinitely many."""
        if self.low == self.high:
            return 1
        return None if self.step is None else _lattice_count(self.low, self.high, self.step)

    def canonical(self, value: object) -> float:
        """Return ``value`` as a float of 12 significant digits, clipped to the range.

        Raises:
            ValueError: not a finite number, out of range, or off the step.
        """
        problem = _number_problem(value)
        if problem:
            raise ValueError(problem)
        number = float(value)  # type: ignore[arg-type]  # checked above
        if self.step is not None and self.low < self.high:
            return _lattice_value(self, number, self.lattice_value)  # type: ignore[no-any-return]
        slack = 1e-12 * max(abs(self.low), abs(self.high))
        if not self.low - slack <= number <= self.high + slack:
            raise ValueError(_outside(value, self.low, self.high))
        return self._rounded(number)

    def position(self, value: Scalar) -> float:
        """Return where ``value`` lies in the unit interval."""
        return _position(self, float(value))  # type: ignore[arg-type]  # canonical values only

    def at(self, position: float) -> float:
        """Return the value at a position of the unit interval."""
        return self.nearest(_raw_at(self, position))

    def nearest(self, number: float) -> float:
        """Return the value closest to any number."""
        if self.step is None or self.low == self.high:
            return self._rounded(number)
        return self.lattice_value(self.lattice_index(number))

    def levels(self, number: int) -> list[Scalar]:
        """Return up to ``number`` evenly spaced values, ends included; the middle one for 1."""
        return _levels(self, number)

    def to_mapping(self) -> dict[str, Any]:
        """Return the form in which a configuration writes the parameter."""
        return _number_mapping("real", self, default_step=None)

    def lattice_index(self, number: float) -> int:
        """Return which step from ``low``, from 0, is closest to any number."""
        return _nearest_index(self, number)

    def lattice_value(self, index: int) -> float:
        """Return the value so many steps from ``low``."""
        return self._rounded(self.low + index * (self.step or 0.0))

    def _rounded(self, value: float) -> float:
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
        problems = _range_problems(self.low, self.high, self.scale, self.step, _integer_problem)
        _refuse(problems, self)
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
        problem = _integer_problem(value)
        if problem:
            raise ValueError(problem)
        return _lattice_value(self, int(value), self.lattice_value)  # type: ignore[call-overload,no-any-return]

    def position(self, value: Scalar) -> float:
        """Return where ``value`` lies in the unit interval."""
        return _position(self, float(value))  # type: ignore[arg-type]  # canonical values only

    def at(self, position: float) -> int:
        """Return the value at a position of the unit interval."""
        return self.nearest(_raw_at(self, position))

    def nearest(self, number: float) -> int:
        """Return the value closest to any number."""
        return self.lattice_value(self.lattice_index(number))

    def levels(self, number: int) -> list[Scalar]:
        """Return up to ``number`` evenly spaced values, ends included; the middle one for 1."""
        return _levels(self, number)

    def to_mapping(self) -> dict[str, Any]:
        """Return the form in which a configuration writes the parameter."""
        return _number_mapping("integer", self, default_step=1)

    def lattice_index(self, number: float) -> int:
        """Return which step from ``low``, from 0, is closest to any number."""
        return _nearest_index(self, number)

    def lattice_value(self, index: int) -> int:
        """Return the value so many steps from ``low``."""
        return self.low + index * self.step


@dataclass(frozen=True)
class Categorical:
    """One of several values, told apart by type and value (``1``, ``1.0`` and ``True`` differ)."""

    choices: tuple[Scalar, ...]
    when: When = field(default_factory=dict)

    def __post_init__(self) -> None:
        _refuse(_choices_problems(self.choices), self)
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
            if _is_number(choice) and _is_number(value) and choice == value:
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


def native(value: object) -> Any:
    """Return a numpy scalar as the Python value it stands for, and anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def is_same(a: object, b: object) -> bool:
    """Say whether two scalars are equal in type and value."""
    return type(a) is type(b) and a == b


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number_problem(value: object) -> str | None:
    value = native(value)
    if isinstance(value, str):
        return f"{value!r} is text, a number is wanted{_unquoted(value)}"
    if not _is_number(value):
        return f"{value!r} is not a number"
    if not math.isfinite(value):  # type: ignore[arg-type]  # a number by now
        return f"{value!r} is not a finite number"
    return None


def _integer_problem(value: object) -> str | None:
    value = native(value)
    problem = _number_problem(value)
    if problem:
        return problem
    if value != int(value):  # type: ignore[call-overload]  # a number by now
        return f"{value!r} is not an integer"
    if abs(value) > LARGEST_INTEGER:  # type: ignore[arg-type]
        return f"{value!r} is too large: integers go up to 2**53"
    return None


def _unquoted(text: str) -> str:
    try:
        number = float(text)
    except ValueError:
        return ""
    if not math.isfinite(number):
        return ""
    # YAML 1.1 reads 1e-3 as text, since it has no dot.
    return f"; write {number:.1e}" if "e" in text.lower() else f"; write {text} without quotes"


def _range_problems(low: Any, high: Any, scale: Any, step: Any, check: Any) -> list[Problem]:
    problems = [
        Problem(problem, key=(name,))
        for name, value in (("low", low), ("high", high), ("step", step))
        if not (name == "step" and value is None) and (problem := check(value))
    ]
    if not isinstance(scale, str) or scale not in ("linear", "log"):
        hint = did_you_mean(str(scale), ["linear", "log"])
        problems.append(Problem(f"unknown scale {scale!r}{hint}", key=("scale",)))
    broken = {problem.key[0] for problem in problems}
    if not broken & {"low", "high"} and low > high:
        problems.append(Problem(f"low is {low} but high is {high}: swap them", key=("low",)))
    if scale == "log" and "low" not in broken and low <= 0:
        message = f"a log scale needs low above 0, got {low}; write a small positive low"
        problems.append(Problem(message, key=("low",)))
    if step is not None and "step" not in broken and step <= 0:
        problems.append(Problem(f"step must be above 0, got {step}", key=("step",)))
    return problems


def _choices_problems(choices: Any) -> list[Problem]:
    if isinstance(choices, str) or not isinstance(choices, Sequence):
        return [Problem(f"choices must be a list, got {choices!r}", key=("choices",))]
    if not choices:
        return [Problem("choices is empty: list at least one value", key=("choices",))]
    problems = []
    for position, choice in enumerate(map(native, choices)):
        key = ("choices", position)
        if not (choice is None or isinstance(choice, bool | int | float | str)):
            message = f"a choice is a number, text, true, false or null, got {choice!r}"
            problems.append(Problem(message, key=key))
        elif isinstance(choice, float) and not math.isfinite(choice):
            problems.append(Problem(f"{choice!r} is not a finite number", key=key))
        elif any(is_same(choice, native(earlier)) for earlier in choices[:position]):
            problems.append(Problem(f"{choice!r} is listed twice", key=key))
    return problems


def _refuse(problems: list[Problem], parameter: Parameter) -> None:
    problems += when_problems(parameter.when)
    if problems:
        raise InputError(problems=problems)


def when_problems(when: Any) -> list[Problem]:
    """Return what is wrong with the form of a condition, whatever the parameters are."""
    if not isinstance(when, Mapping):
        message = f"when must map a parameter to its values, as {{mode: hybrid}}, got {when!r}"
        return [Problem(message, key=("when",))]
    return [
        Problem("lists no value", key=("when", str(name)))
        for name, values in when.items()
        if isinstance(values, Sequence) and not isinstance(values, str) and not values
    ]


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


def _outside(value: object, low: float, high: float) -> str:
    return f"{native(value)!r} is outside {low} .. {high}"


def _lattice_count(low: float, high: float, step: float) -> int:
    return math.floor((high - low) / step + LATTICE_TOLERANCE) + 1


def _lattice_value(parameter: Any, number: float, at_index: Any) -> Any:
    count, low, step = parameter.count, parameter.low, parameter.step
    offset = (number - low) / step
    index = round(offset)
    if not -LATTICE_TOLERANCE <= offset <= (parameter.high - low) / step + LATTICE_TOLERANCE:
        raise ValueError(_outside(number, low, parameter.high))
    nearest = at_index(min(index, count - 1))
    if abs(offset - index) > LATTICE_TOLERANCE or index >= count:
        raise ValueError(f"{number!r} is off the step of {step} from {low}; nearest: {nearest!r}")
    return nearest


def _edges(parameter: Real | Integer) -> tuple[float, float]:
    """Return where the unit interval begins and ends, on the parameter's scale."""
    low, high = float(parameter.low), float(parameter.high)
    if parameter.step is not None and parameter.low < parameter.high:
        top = low + ((parameter.count or 1) - 1) * parameter.step
        low, high = low - parameter.step / 2, top + parameter.step / 2
        if parameter.scale == "log":
            low = max(low, parameter.low / 2)  # Half a step down may reach 0.
    return (math.log(low), math.log(high)) if parameter.scale == "log" else (low, high)


def _position(parameter: Real | Integer, value: float) -> float:
    start, end = _edges(parameter)
    if start == end or parameter.low == parameter.high:
        return 0.5
    place = math.log(value) if parameter.scale == "log" else value
    return min(max((place - start) / (end - start), 0.0), 1.0)


def _raw_at(parameter: Real | Integer, position: float) -> float:
    start, end = _edges(parameter)
    place = start + min(max(position, 0.0), 1.0) * (end - start)
    if parameter.step is None and position >= 1.0:
        return float(parameter.high)  # exp(log(high)) may miss it by a digit.
    if parameter.step is None and position <= 0.0:
        return float(parameter.low)
    return math.exp(place) if parameter.scale == "log" else place


def _nearest_index(parameter: Real | Integer, raw: float) -> int:
    index = round((raw - parameter.low) / (parameter.step or 1))
    return min(max(index, 0), (parameter.count or 1) - 1)


def _levels(parameter: Real | Integer, number: int) -> list[Scalar]:
    count = parameter.count
    if count is not None and number >= count:
        return [parameter.lattice_value(index) for index in range(count)]
    if number == 1:
        return [parameter.at(0.5)]
    low = float(parameter.low)
    high = low + (count - 1) * (parameter.step or 0) if count else float(parameter.high)
    if parameter.scale == "log":
        spaced = np.geomspace(low, high, number)
    else:
        spaced = np.linspace(low, high, number)
    if count is None:
        return list(dict.fromkeys(parameter.canonical(float(value)) for value in spaced))
    indices = _distinct([_nearest_index(parameter, float(value)) for value in spaced], count)
    return [parameter.lattice_value(index) for index in indices]


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
