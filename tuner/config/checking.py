"""Plain data against a model: every problem told by its key, with a suggestion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from tuner.config.source import Source
from tuner.core.errors import InputError, Problem, did_you_mean
from tuner.core.shown import shortened

Model = TypeVar("Model", bound=BaseModel)

# Keys that some look for, where what they mean is said in another way.
_SAID_OTHERWISE = {
    "measure_latency": "; latency is timed, in a pass of single queries, where a metric needs it: "
    "write metrics: [latency_p95_ms]",
    "nightly.budget": "; a budget holds for every run: write `budget:` at the top of the file, not "
    "below `nightly:`",
}


def checked(source: Source, model: type[Model]) -> Model:
    """Read a source's data as ``model``.

    Raises:
        InputError: with every problem found, each with file, line and key.
    """
    try:
        return model.model_validate(source.data)
    except ValidationError as error:
        problems = _unique([_problem(details, source.data, model) for details in error.errors()])
        raise source.error(InputError(problems=problems)) from None


def checked_mapping(given: object, model: type[Model], *, name: str, example: str) -> Model:
    """Read what Python is given for a section of a configuration, by its name.

    Raises:
        InputError: with every problem found, each with its key.
    """
    if not isinstance(given, Mapping):
        raise InputError(f"{name}={given!r}: write a mapping, such as {name}={example}")
    data = {str(key): value for key, value in given.items()}
    try:
        return checked(Source("", data), model)
    except OverflowError:  # a whole number that no float holds
        raise InputError("a number is too large", key=(name,)) from None
    except InputError as error:
        told = (replace(problem, key=(name, *problem.key)) for problem in error.problems)
        raise InputError(problems=told) from None


def _problem(details: ErrorDetails, data: Any, top: type[BaseModel]) -> Problem:
    key = _key_in(data, details["loc"])
    message = details["msg"]
    got = details.get("input")
    match details["type"]:
        case "extra_forbidden":
            name = str(key[-1])
            said = _SAID_OTHERWISE.get(name) or _SAID_OTHERWISE.get(".".join(map(str, key)))
            hint = said or did_you_mean(name, _siblings(key[:-1], top))
            message = f"unknown key{hint}"
        case "missing":
            message = "this key is required"
        case "string_pattern_mismatch":
            message = (
                f"{got!r} must start with a letter or digit and hold only letters, digits, "
                "'.', '_' and '-'"
            )
        case "model_type":
            first = next(iter(_siblings(key, top)), "key")
            message = f"should be a mapping such as {{{first}: …}}, got {_shown(got)}"
        case _:
            message = _lower_first(message.replace("Input should", "should"))
            if not isinstance(got, dict | list) or not got:
                message += f", got {_shown(got)}"
    return Problem(message, key=key)


def _shown(value: Any) -> str:
    return shortened("null" if value is None else repr(value), 60)


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


def _key_in(data: Any, location: tuple[int | str, ...]) -> tuple[str | int, ...]:
    """Drop what pydantic adds to a location for unions, such as the member's name."""
    key: list[str | int] = []
    for step in location:
        is_there = (isinstance(data, dict) and step in data) or (
            isinstance(data, list) and isinstance(step, int) and step < len(data)
        )
        if is_there:
            key.append(step)
            data = data[step]
        elif isinstance(data, dict):
            key.append(step)
            break
    return tuple(key)


def _unique(problems: list[Problem]) -> list[Problem]:
    """Keep one problem a key: a union reports one for each member that did not fit."""
    by_key: dict[tuple[str | int, ...], Problem] = {}
    for problem in problems:
        first = by_key.get(problem.key)
        if first is None:
            by_key[problem.key] = problem
        elif first.message != problem.message:
            wanted = problem.message.split(", got ")[0]
            start, got, end = first.message.partition(", got ")
            by_key[problem.key] = Problem(
                f"{start} or {wanted.removeprefix('should be ')}{got}{end}", key=problem.key
            )
    return list(by_key.values())


def _siblings(key: tuple[str | int, ...], top: type[BaseModel]) -> list[str]:
    """List the keys that the section at ``key`` knows."""
    model: Any = top
    for step in key:
        if isinstance(step, int):
            model = get_args(model)[0]
        elif isinstance(model, type) and issubclass(model, BaseModel):
            model = model.model_fields[str(step)].annotation
        else:  # dict[str, Section]
            model = get_args(model)[1]
        if get_origin(model) in (Union, UnionType):
            model = next(part for part in get_args(model) if part is not type(None))
    is_model = isinstance(model, type) and issubclass(model, BaseModel)
    return list(model.model_fields) if is_model else []
