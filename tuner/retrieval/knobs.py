"""The knobs of a retriever: what they are, what a space and parameters may ask of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar

from tuner.core.checks import is_number
from tuner.core.errors import InputError, Problem, did_you_mean, refuse
from tuner.core.space import Categorical, Integer, Parameter, Real, SearchSpace
from tuner.core.space.expression import UNKNOWN, Domain, parse
from tuner.core.trial import Params, Scalar

Settings = TypeVar("Settings")


@dataclass(frozen=True)
class Knob:
    """One parameter that a retriever understands.

    Attributes:
        stage: what a change costs: ``"query"`` only the queries, ``"index"`` a new index.
        when: the values of other knobs beside which this one has an effect, as a space writes it.
        constraint: a constraint of a space, such as ``"start_k <= select_k"``, outside of which
            values are refused or searched in vain; empty where there is none.
        constraint_when: the values of other knobs beside which ``constraint`` counts; empty: all.
        is_open: whether a categorical one takes other texts than its ``choices``: names that only
            the system itself can check.
        hint: what to do about a value that is not among the ``choices``; told where one is refused.
        is_guess: whether ``default`` is the middle of what is searched, since nobody tells it.
        suggested: the range that a space to copy begins with, where more is taken.

    The ``default`` of a number is None where the system does without it; then a range is suggested.
    """

    name: str
    kind: Literal["real", "integer", "categorical"]
    default: Scalar
    low: float | None = None
    high: float | None = None
    choices: tuple[Scalar, ...] = ()
    scale: Literal["linear", "log"] = "linear"
    stage: Literal["query", "index"] = "query"
    description: str = ""
    when: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict, hash=False)
    constraint: str = ""
    constraint_when: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict, hash=False)
    is_guess: bool = False
    is_open: bool = False
    hint: str = ""
    suggested: tuple[float, float] | None = None


def knob(
    description: str,
    default: float | str,
    *,
    within: tuple[float | None, float | None] = (None, None),
    **more: Any,
) -> Any:
    """Return the field of a record of settings that is a knob; ``more`` are parts of ``Knob``."""
    kind = {float: "real", int: "integer", str: "categorical"}[type(default)]
    low, high = within
    about = {"kind": kind, "low": low, "high": high, "description": description, **more}
    return field(default=default, metadata=about)


def knobs_of(settings: type) -> tuple[Knob, ...]:
    """Return the knobs that the fields of a record of settings are, made by ``knob``."""
    found: tuple[Any, ...] = fields(settings)
    return tuple(Knob(one.name, default=one.default, **one.metadata) for one in found)


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
    refuse(problems)
    return {name: of_kind(given.get(name, knob.default), knob) for name, knob in by_name.items()}


def knob_settings(
    record: Callable[..., Settings], params: Mapping[str, Any], knobs: Sequence[Knob]
) -> Settings:
    """Return checked parameters and the knobs' defaults as a record with a field for each knob.

    Raises:
        InputError: unknown parameters or values outside their range.
    """
    return record(**knob_params(params, knobs))


def space_knobs(
    space: SearchSpace | None,
    baseline: Params | None,
    *,
    defaults: Mapping[str, Scalar] | None = None,
    names: Collection[str] | None = None,
) -> tuple[Knob, ...]:
    """Return the knobs of a system that declares none, as the configuration tells them.

    There is one for each parameter of the space, the baseline and the system's own defaults.
    Its kind is that of the space; numbers have no bounds, since what a system can take is its own
    affair and a baseline may lie outside of what is searched. Its default is the baseline's value,
    else the system's own, else the middle of the range. ``names`` leaves out all others.
    """
    parameters = {} if space is None else dict(space.parameters)
    today: Params = dict(baseline or {})
    own = dict(defaults or {})
    knobs = []
    for name in dict.fromkeys((*parameters, *today, *own)):
        if names is not None and name not in names:
            continue
        fallback = today.get(name, own.get(name))
        has_fallback = name in today or name in own
        guess = not has_fallback
        match parameters.get(name):
            case Real() as parameter:
                default = fallback if has_fallback else parameter.at(0.5)
                knobs.append(Knob(name, "real", default, scale=parameter.scale, is_guess=guess))
            case Integer() as parameter:
                default = fallback if has_fallback else parameter.at(0.5)
                knobs.append(Knob(name, "integer", default, scale=parameter.scale, is_guess=guess))
            case Categorical() as parameter:
                default = fallback if has_fallback else parameter.choices[0]
                choices = dict.fromkeys((*parameter.choices, default))
                knobs.append(
                    Knob(name, "categorical", default, choices=tuple(choices), is_guess=guess)
                )
            case None:
                knobs.append(_fixed(name, fallback))
    return tuple(knobs)


def unvalued(name: str, *, stage: Literal["query", "index"] = "query") -> Knob:
    """Return the knob of a parameter that is known by its name alone, without a configuration."""
    told = "any values: name them in `space:`, or one in `baseline:`"
    return Knob(name, "categorical", None, stage=stage, description=told, is_guess=True)


def of_kind(value: Any, knob: Knob) -> Any:
    """Return a checked value in the type that the knob declares: 2.0 hops are 2 hops."""
    match knob.kind:
        case "integer":
            return None if value is None else int(value)
        case "real":
            return None if value is None else float(value)
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
        if value in knob.choices or (knob.is_open and isinstance(value, str) and value):
            return None
        hint = f"; {knob.hint}" if knob.hint else ""
        return f"{value!r} is not one of {', '.join(map(repr, knob.choices))}{hint}"
    if value is None and knob.default is None:
        return None
    if not is_number(value):
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


def _fixed(name: str, value: Scalar) -> Knob:
    """Return the knob of a parameter that is not searched: of its value's kind."""
    if not is_number(value):
        return Knob(name, "categorical", value, choices=(value,))
    return Knob(name, "integer" if isinstance(value, int) else "real", value)


def space_of(knobs: Sequence[Knob]) -> dict[str, dict[str, Any]]:
    """Return the knobs that can be searched, as a space writes them.

    A condition on a knob that is not searched itself is left out.
    """
    searched = {knob.name for knob in knobs if _has_range(knob)}
    return {knob.name: _parameter(knob, searched) for knob in knobs if knob.name in searched}


def constraints_of(knobs: Sequence[Knob]) -> list[str]:
    """Return the constraints between knobs that can be searched."""
    searched = {knob.name for knob in knobs if _has_range(knob)}
    domains = {knob.name: Domain(UNKNOWN) for knob in knobs}
    texts = dict.fromkeys(knob.constraint for knob in knobs if knob.constraint)
    return [text for text in texts if set(parse(text, domains).names) <= searched]


def _has_range(knob: Knob) -> bool:
    """Say whether a knob has several values, between ends that are known."""
    if knob.kind == "categorical":
        return len(knob.choices) > 1
    low, high = _range(knob)
    return low is not None and high is not None and low < high


def _range(knob: Knob) -> tuple[float | None, float | None]:
    """Return the ends between which a number is searched."""
    return knob.suggested or (knob.low, knob.high)


def _parameter(knob: Knob, searched: Collection[str]) -> dict[str, Any]:
    when = {name: values for name, values in knob.when.items() if name in searched}
    if knob.kind == "categorical":
        return Categorical(knob.choices, when=when).to_mapping()
    low, high = (end or 0 for end in _range(knob))  # neither is None here
    try:
        if knob.kind == "integer":
            return Integer(int(low), int(high), scale=knob.scale, when=when).to_mapping()
        return Real(low, high, scale=knob.scale, when=when).to_mapping()
    except InputError as error:  # a range that cannot be searched, such as a log scale from 0
        raise InputError(f"knob {knob.name!r}: {error}") from error
