"""Check a space and parameters against the knobs that a retriever declares."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tuner.core.errors import InputError, Problem, did_you_mean
from tuner.core.space import Categorical, Parameter, SearchSpace
from tuner.core.trial import Params
from tuner.retrieval.base import Knob


def knob_problems(space: SearchSpace, knobs: Sequence[Knob]) -> list[Problem]:
    """Return where a space asks for knobs or values that the retriever does not have."""
    by_name = {knob.name: knob for knob in knobs}
    problems = []
    for name, parameter in space.parameters.items():
        knob = by_name.get(name)
        if knob is None:
            message = f"the retriever has no parameter {name!r}{did_you_mean(name, by_name)}"
            problems.append(Problem(message, key=("space", name)))
        else:
            problems += _range_problems(parameter, knob)
    return problems


def knob_params(
    given: Mapping[str, Any], knobs: Sequence[Knob], key: tuple[str | int, ...] = ("params",)
) -> Params:
    """Fill parameters up with the knobs' defaults after checking each one.

    Raises:
        InputError: a knob that does not exist, or a value of the wrong kind or outside its range.
    """
    by_name = {knob.name: knob for knob in knobs}
    problems = []
    for name, value in given.items():
        if name not in by_name:
            message = f"the retriever has no parameter {name!r}{did_you_mean(name, by_name)}"
            problems.append(Problem(message, key=(*key, name)))
        elif (wrong := _value_problem(value, by_name[name])) is not None:
            problems.append(Problem(wrong, key=(*key, name)))
    if problems:
        raise InputError(problems=problems)
    return {name: _of_kind(given.get(name, knob.default), knob) for name, knob in by_name.items()}


def _of_kind(value: Any, knob: Knob) -> Any:
    """Return a checked value in the type that the knob declares: 2.0 hops are 2 hops."""
    match knob.kind:
        case "integer":
            return int(value)
        case "real":
            return float(value)
        case _:
            return value


def _range_problems(parameter: Parameter, knob: Knob) -> list[Problem]:
    key = ("space", knob.name)
    if isinstance(parameter, Categorical):
        values = [("choices", choice) for choice in parameter.choices]
    else:
        values = [("low", parameter.low), ("high", parameter.high)]
    wrong = ((part, _value_problem(value, knob)) for part, value in values)
    return [Problem(message, key=(*key, part)) for part, message in wrong if message is not None]


def _value_problem(value: Any, knob: Knob) -> str | None:
    if knob.kind == "categorical":
        if value in knob.choices:
            return None
        return f"{value!r} is not one of {', '.join(map(repr, knob.choices))}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"{value!r} is not a number"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value!r} is not a finite number"
    if knob.kind == "integer" and value != int(value):
        return f"{value!r} is not a whole number"
    low = -float("inf") if knob.low is None else knob.low
    high = float("inf") if knob.high is None else knob.high
    if low <= value <= high:
        return None
    return f"{value!r} is outside what {knob.name!r} can be: {low:g} to {high:g}"
