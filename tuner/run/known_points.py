"""Known points: sets of parameters that a study asks before it searches, and learns from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tuner.config.params import read_params_file
from tuner.core.errors import InputError, Problem, refuse
from tuner.core.policy import is_policy
from tuner.core.trial import Params, params_key
from tuner.run.assembly import Assembly

START_FROM = "start_from"
_SUFFIXES = (".yaml", ".yml", ".json")


def is_point(source: str | Mapping[str, Any]) -> bool:
    """Say whether what a study starts from is one set of parameters, written out or in a file."""
    return not isinstance(source, str) or Path(source).suffix.lower() in _SUFFIXES


def known_points(
    assembly: Assembly, sources: Sequence[str | Mapping[str, Any]]
) -> tuple[Params, ...]:
    """Return the points of the space among what a study starts from, each once.

    What a set leaves out is as in the baseline, else the retriever's default. What is not searched
    may be in it with the value that it has in this study, as in any ``best.yaml``.

    Raises:
        InputError: a set that is no point of the space: every parameter that is wrong.
    """
    found: dict[str, Params] = {}
    problems: list[Problem] = []
    for index, source in enumerate(sources):
        if not is_point(source):
            continue
        key = (START_FROM, index)
        try:
            params = _point(assembly, source)
            found.setdefault(params_key(params), params)
        except InputError as error:
            problems += _below(error.problems, key, source)
    if problems:
        raise assembly.located(InputError(problems=problems))
    return tuple(found.values())


def _point(assembly: Assembly, source: str | Mapping[str, Any]) -> Params:
    given = read_params_file(source) if isinstance(source, str) else source
    if is_policy(given):
        raise InputError("a policy has parameters by query type, and a study starts from one set")
    space = assembly.plan.space
    base = assembly.baseline if assembly.policy is None else None
    known = assembly.params({**(base or {}), **given})
    here = assembly.params({})
    refuse(
        Problem(
            f"it is {value!r} and not searched; in this study it is {here[name]!r}: leave it out, "
            "or search it",
            key=(name,),
        )
        for name, value in known.items()
        if name in given and name not in space.parameters and value != here[name]
    )
    params = space.canonical({n: value for n, value in known.items() if n in space.parameters})
    if not space.satisfies(params):
        broken = ", ".join(space.constraints)
        raise InputError(f"it breaks a rule of space_constraints ({broken})")
    return params


def _below(
    problems: Iterable[Problem], key: tuple[str | int, ...], source: str | Mapping[str, Any]
) -> list[Problem]:
    """Put problems below the place of what they are in, with its file's name where it has one."""
    found = []
    for problem in problems:
        name = problem.key[-1:]
        said = ""
        if isinstance(source, str) and not problem.message.startswith(source):
            said = f"{source}: "
        if isinstance(source, str) and name:
            said = f"{said}{name[0]}: "
        at = key if isinstance(source, str) else (*key, *name)
        found.append(replace(problem, message=f"{said}{problem.message}", key=at, file=None))
    return found
