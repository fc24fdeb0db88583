"""YAML -> Config, with every problem named by file, line and key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from tuner.config.model import Config
from tuner.config.params import read_params_file
from tuner.config.source import Source, read_source, with_overrides
from tuner.core.errors import InputError, Problem, did_you_mean

__all__ = ["Config", "Source", "load_config", "parse_config"]


def load_config(path: str | Path, settings: Sequence[str] = ()) -> tuple[Config, Source]:
    """Read a configuration file with its ``--set`` overrides.

    Returns:
        the configuration, and its source, which locates later problems by line.

    Raises:
        InputError: with every problem found, each with file, line and key.
    """
    source = with_overrides(read_source(path), settings)
    return parse_config(source), source


def parse_config(source: Source) -> Config:
    """Check plain data against the model of the configuration, and read the baseline's file.

    Raises:
        InputError: with every problem found.
    """
    try:
        config = Config.model_validate(source.data)
    except ValidationError as error:
        problems = _unique([_problem(details, source.data) for details in error.errors()])
        raise source.error(InputError(problems=problems)) from None
    if not isinstance(config.baseline, str):
        return config
    try:
        baseline = read_params_file(config.baseline)
    except InputError as error:
        problems = [replace(problem, key=("baseline", *problem.key)) for problem in error.problems]
        raise source.error(InputError(problems=problems)) from error
    # What the file says now is what the study's own copy of the configuration will hold.
    return config.model_copy(update={"baseline": baseline})


def _problem(details: ErrorDetails, data: Any) -> Problem:
    key = _key_in(data, details["loc"])
    message = details["msg"]
    got = details.get("input")
    match details["type"]:
        case "extra_forbidden":
            message = f"unknown key{did_you_mean(str(key[-1]), _siblings(key[:-1]))}"
        case "missing":
            message = "this key is required"
        case "string_pattern_mismatch":
            message = (
                f"{got!r} must start with a letter or digit and hold only letters, digits, "
                "'.', '_' and '-'"
            )
        case _:
            message = _lower_first(message.replace("Input should", "should"))
            if not isinstance(got, dict | list) or not got:
                message += f", got {_shown(got)}"
    return Problem(message, key=key)


def _shown(value: Any) -> str:
    text = "null" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


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


def _siblings(key: tuple[str | int, ...]) -> list[str]:
    """List the keys that the section at ``key`` knows."""
    model: Any = Config
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
