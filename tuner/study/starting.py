"""Points that a study from Python begins with: asked before the search, and learnt from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tuner.core.errors import InputError, Problem, refuse
from tuner.core.space import SearchSpace
from tuner.core.trial import Params
from tuner.study.study import Study

_KEY = "start_from"


def starting_points(given: Any, space: SearchSpace) -> list[Params]:
    """Return given points, a list of mappings, in the form of the space, each once.

    Raises:
        InputError: what is no list, and what is no point of the space: every parameter that is
            wrong.
    """
    if isinstance(given, str) or not isinstance(given, Sequence):
        message = f"write a list of sets of parameters, such as [{{'x': 1}}], got {given!r}"
        raise InputError(message, key=(_KEY,))
    found: list[Params] = []
    problems: list[Problem] = []
    for index, params in enumerate(given):
        if not isinstance(params, Mapping):
            message = f"write a set of parameters, such as {{'x': 1}}, got {params!r}"
            problems.append(Problem(message, key=(_KEY, index)))
            continue
        try:
            point = space.canonical(params)
            if not space.satisfies(point):
                raise InputError("breaks a constraint of the space")
        except InputError as error:
            problems += [replace(p, key=(_KEY, index, *p.key[-1:])) for p in error.problems]
            continue
        if point not in found:
            found.append(point)
    refuse(problems)
    return found


def check_same_start(study: Study, points: Sequence[Params]) -> None:
    """Check that a study that goes on is given the points that it began with.

    Raises:
        InputError: they are others, so that its trials would be others too.
    """
    begun = study.header.config.get(_KEY, [])
    if begun != list(points):
        message = f"the study in run_dir began with {begun}; give the same, or another run_dir"
        raise InputError(message, key=(_KEY,))
