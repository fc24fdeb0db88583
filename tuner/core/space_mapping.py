"""From the ``space`` section of a configuration to parameters, with every problem at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tuner.core.errors import InputError, Problem, did_you_mean
from tuner.core.parameters import Categorical, Integer, Parameter, Real
from tuner.core.space_check import name_problem

_NUMBER_KEYS = ("low", "high", "scale", "step", "when")
_TYPES: dict[str, tuple[Callable[..., Parameter], tuple[str, ...], tuple[str, ...]]] = {
    "real": (Real, ("low", "high"), _NUMBER_KEYS),
    "integer": (Integer, ("low", "high"), _NUMBER_KEYS),
    "categorical": (Categorical, ("choices",), ("choices", "when")),
}


def parse_parameters(raw: object) -> tuple[dict[str, Parameter], list[Problem], list[str]]:
    """Return the parameters that could be read, the problems, and the names of the others."""
    if not isinstance(raw, Mapping):
        example = "{k: {type: integer, low: 1, high: 9}}"
        message = f"must map names to parameters, as in {example}, got {raw!r}"
        return {}, [Problem(message, key=("space",))], []
    parameters: dict[str, Parameter] = {}
    problems: list[Problem] = []
    broken: list[str] = []
    for name, body in raw.items():
        named_badly = name_problem(name)
        if named_badly:
            problems.append(named_badly)
        try:
            parameter = _parameter(body)
        except InputError as error:
            problems += [
                replace(problem, key=("space", str(name), *problem.key))
                for problem in error.problems
            ]
            broken.append(str(name))
            continue
        if named_badly:
            broken.append(str(name))
        else:
            parameters[name] = parameter
    return parameters, problems, broken


def _parameter(body: object) -> Parameter:
    if not isinstance(body, Mapping):
        raise InputError(f"must be a mapping such as {{type: real, low: 0, high: 1}}, got {body!r}")
    kind = body.get("type")
    if kind is None:
        raise InputError(f"missing; one of {', '.join(_TYPES)}", key=("type",))
    if not isinstance(kind, str) or kind not in _TYPES:
        raise InputError(f"unknown type {kind!r}{did_you_mean(str(kind), _TYPES)}", key=("type",))
    make, required, allowed = _TYPES[kind]
    problems = [
        Problem(f"unknown key{did_you_mean(str(key), allowed)}", key=(str(key),))
        for key in body
        if key != "type" and key not in allowed
    ]
    problems += [Problem("missing", key=(key,)) for key in required if key not in body]
    given = [body[key] for key in required if key in body]
    if not given:
        raise InputError(problems=problems)
    options: dict[str, Any] = {key: body[key] for key in allowed if key in body}
    # One end stands in for a missing other one, so that the rest is checked in the same go.
    options |= {key: given[0] for key in required if key not in body}
    if isinstance(options.get("choices"), list):
        options["choices"] = tuple(options["choices"])
    try:
        parameter = make(**options)
    except InputError as error:
        raise InputError(problems=(*problems, *error.problems)) from None
    if problems:
        raise InputError(problems=problems)
    return parameter
