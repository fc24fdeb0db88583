"""What can be wrong with one parameter: its range, step, choices and the form of its condition."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tuner.core.checks import native
from tuner.core.errors import Problem, did_you_mean

# A real range may be this many times its step: finer ones get lost in 12 significant digits.
LARGEST_STEP_RATIO = 1e9


def is_same(a: object, b: object) -> bool:
    """Say whether two scalars are equal in type and value."""
    return type(a) is type(b) and a == b


def range_problems(
    low: Any, high: Any, scale: Any, step: Any, check: Callable[[object], str | None]
) -> list[Problem]:
    """Return what is wrong with a range; ``check`` says what is wrong with one number.

    A ``step`` of None is none, and no problem here: see ``missing_step_problems``.
    """
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


def missing_step_problems(step: object) -> list[Problem]:
    """Return whether an integer, which always has a step, was given none."""
    if step is not None:
        return []
    message = "null is no step of an integer; write 1, or leave step out"
    return [Problem(message, key=("step",))]


def fine_step_problems(low: float, high: float, step: float | None) -> list[Problem]:
    """Return whether a real step is lost beside the numbers that it divides."""
    if step is None or max(high - low, abs(low), abs(high)) / step <= LARGEST_STEP_RATIO:
        return []
    message = f"{step} is too fine for {low} .. {high}; write a larger step, or none"
    return [Problem(message, key=("step",))]


def choices_problems(choices: Any) -> list[Problem]:
    """Return what is wrong with the choices of a categorical parameter."""
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
