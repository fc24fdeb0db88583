"""A configuration file -> Config: read, names of old taken along, and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from tuner.config.checking import checked
from tuner.config.model import Config
from tuner.config.params import read_params_file
from tuner.config.section import Section
from tuner.config.source import Key, Source, read_source, with_overrides
from tuner.core.errors import InputError

START_FROM, _OLD_NAME = "start_from", "warm_start"
Place = TypeVar("Place")


def load_config(path: str | Path, settings: Sequence[str] = ()) -> tuple[Config, Source]:
    """Read a configuration file with its ``--set`` overrides.

    Returns:
        the configuration, and its source, which locates later problems by line.

    Raises:
        InputError: with every problem found, each with file, line and key.
    """
    return config_of(with_overrides(read_source(path), settings))


def config_of(source: Source) -> tuple[Config, Source]:
    """Return what a source says, as ``load_config`` does of a file.

    Raises:
        InputError: with every problem found, each with file, line and key.
    """
    source = _with_names_of_today(source)
    source = replace(source, data=_without_empty(source.data))
    return parse_config(source), source


def _with_names_of_today(source: Source) -> Source:
    """Read ``warm_start``, as ``start_from`` was called.

    Raises:
        InputError: both are there.
    """
    if _OLD_NAME not in source.data:
        return source
    if source.data.get(START_FROM):
        message = (
            f"the old name of {START_FROM}, which is there too; put all of it below {START_FROM}"
        )
        raise source.error(InputError(message, key=(_OLD_NAME,)))

    def renamed(places: Mapping[Key, Place]) -> dict[Key, Place]:
        return {
            (START_FROM, *key[1:]) if key[:1] == (_OLD_NAME,) else key: place
            for key, place in places.items()
        }

    data = {START_FROM if key == _OLD_NAME else key: value for key, value in source.data.items()}
    lines, overridden = renamed(source.lines), renamed(source.overridden)
    return replace(source, data=data, lines=lines, overridden=overridden)


def _without_empty(data: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out sections that hold nothing, as where each of their lines is a comment."""
    empty = {
        name
        for name, field in Config.model_fields.items()
        if isinstance(field.annotation, type)
        and issubclass(field.annotation, Section)
        and not field.is_required()
    }
    return {name: part for name, part in data.items() if part is not None or name not in empty}


def parse_config(source: Source) -> Config:
    """Check plain data against the model of the configuration, and read the baseline's file.

    The trials of a budget are shared out among the backends.

    Raises:
        InputError: with every problem found.
    """
    config = checked(source, Config).shared_out()
    if not isinstance(config.baseline, str):
        return config
    try:
        baseline = read_params_file(config.baseline)
    except InputError as error:
        problems = [replace(problem, key=("baseline", *problem.key)) for problem in error.problems]
        raise source.error(InputError(problems=problems)) from error
    # What the file says now is what the study's own copy of the configuration will hold.
    return config.model_copy(update={"baseline": baseline})
