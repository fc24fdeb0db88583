"""From the ``space`` section of a configuration to parameters, with every problem at once."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tuner.core.errors import InputError, Problem, did_you_mean, refuse
from tuner.core.space.expression import NUMBER, UNKNOWN, Constraint, Domain, kinds_of, parse
from tuner.core.space.parameters import Categorical, Integer, Parameter, Real

# Plain ASCII, so that constraints can mention a parameter and every tracker takes its name. A dot
# leads to a part of a system, as in `retriever.top_k`.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
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
    refuse(problems)
    return parameter


def name_problem(name: object) -> Problem | None:
    """Return what is wrong with a parameter's name."""
    is_name = isinstance(name, str) and _NAME.fullmatch(name) is not None
    if is_name and not any(map(keyword.iskeyword, str(name).split("."))):
        return None
    message = (
        f"{name!r} is no name: use letters, digits and _, beginning with a letter; a dot leads to "
        "a part, as in retriever.top_k"
    )
    return Problem(message, key=("space", str(name)))


def space_problems(
    parameters: Mapping[str, Parameter],
    constraints: Sequence[object],
    *,
    broken: Collection[str] = (),
) -> list[Problem]:
    """Return every problem between parameters; ``broken`` ones exist but could not be read."""
    if not parameters and not broken:
        return [Problem("the space is empty: add at least one parameter", key=("space",))]
    problems = [problem for name in parameters if (problem := name_problem(name))]
    for name, parameter in parameters.items():
        problems += _when_problems(name, parameter, parameters, broken)
    if not problems:
        problems += _cycle_problems(parameters)
    for index, text in enumerate(constraints):
        try:
            parse(text, _domains(parameters, broken))
        except InputError as error:
            problems += [replace(p, key=("space_constraints", index)) for p in error.problems]
    return problems


def order_of_activation(parameters: Mapping[str, Parameter]) -> tuple[str, ...]:
    """Return the names with each parameter after those that decide whether it is active."""
    order: dict[str, None] = {}
    waiting = list(parameters)
    while waiting:
        ready = [name for name in waiting if parameters[name].when.keys() <= order.keys()]
        if not ready:
            break
        order.update(dict.fromkeys(ready))
        waiting = [name for name in waiting if name not in order]
    return tuple(order)


def with_canonical_conditions(parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """Return parameters without problems, with conditions in the form of the values they name."""
    return {
        name: replace(
            parameter,
            when={
                other: tuple(parameters[other].canonical(value) for value in values)
                for other, values in parameter.when.items()
            },
        )
        for name, parameter in parameters.items()
    }


def parse_constraints(
    parameters: Mapping[str, Parameter], constraints: Sequence[str]
) -> tuple[Constraint, ...]:
    """Parse the constraints of a space that has no problems."""
    domains = _domains(parameters, ())
    return tuple(parse(text, domains) for text in constraints)


def _domains(parameters: Mapping[str, Parameter], broken: Collection[str]) -> dict[str, Domain]:
    domains = {name: Domain(UNKNOWN) for name in broken}
    for name, parameter in parameters.items():
        if isinstance(parameter, Categorical):
            domains[name] = Domain(kinds_of(parameter.choices), parameter.choices)
        else:
            domains[name] = Domain(NUMBER)
    return domains


def _when_problems(
    name: str,
    parameter: Parameter,
    parameters: Mapping[str, Parameter],
    broken: Collection[str],
) -> list[Problem]:
    problems = []
    for other, values in parameter.when.items():
        key = ("space", name, "when", other)
        if other in broken:
            continue
        if other not in parameters:
            hint = did_you_mean(other, [n for n in parameters if n != name])
            problems.append(Problem(f"unknown parameter {other!r}{hint}", key=key))
            continue
        if isinstance(parameters[other], Real):
            message = f"{other!r} is real; a condition needs a categorical or an integer"
            problems.append(Problem(message, key=key))
            continue
        for value in values:
            try:
                parameters[other].canonical(value)
            except ValueError as error:
                problems.append(Problem(str(error), key=key))
    return problems


def _cycle_problems(parameters: Mapping[str, Parameter]) -> list[Problem]:
    order = order_of_activation(parameters)
    waiting = [name for name in parameters if name not in order]
    if not waiting:
        return []
    message = f"the conditions of {', '.join(waiting)} wait for each other; remove one"
    return [Problem(message, key=("space", waiting[0], "when"))]
