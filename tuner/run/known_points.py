"""Known points: sets of parameters that a study asks before it searches, and learns from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tuner.config import START_FROM
from tuner.config.params import is_point, read_params_file
from tuner.core.errors import InputError, Problem, refuse
from tuner.core.policy import is_policy
from tuner.core.space import SearchSpace
from tuner.core.study_record import StudyHeader
from tuner.core.trial import Params, params_key
from tuner.run.assembly import Assembly
from tuner.run.baseline import origin_of


def known_points(
    assembly: Assembly, sources: Sequence[str | Mapping[str, Any]]
) -> tuple[Params, ...]:
    """Return the points of the space among what a study starts from, each once.

    What a set leaves out is as in the baseline, else the retriever's default. What is not searched
    may be in it with the value that it has in this study, as in any ``best.yaml``.

    Raises:
        InputError: a set that is no point of the space: every parameter that is wrong; or, where
            all queries decide part by part, a file that says it was tuned on some of them.
    """
    given = {index: source for index, source in enumerate(sources) if is_point(source)}
    try:
        return _each(given, partial(_from_source, assembly))
    except InputError as error:
        raise assembly.located(error) from None


def starting_points(given: Any, space: SearchSpace) -> tuple[Params, ...]:
    """Return the points that a study from Python starts from, a list of mappings, each once.

    Raises:
        InputError: what is no list, and what is no point of the space: every parameter that is
            wrong.
    """
    if isinstance(given, str) or not isinstance(given, Sequence):
        message = f"write a list of sets of parameters, such as [{{'x': 1}}], got {given!r}"
        raise InputError(message, key=(START_FROM,))
    return _each(dict(enumerate(given)), partial(_own_point, space))


def check_same_start(header: StudyHeader, points: Sequence[Params]) -> None:
    """Check that a study from Python that goes on is given the points that it began with.

    Raises:
        InputError: they are others, so that its trials would be others too.
    """
    begun = header.config.get(START_FROM, [])
    if begun != list(points):
        message = f"the study in run_dir began with {begun}; give the same, or another run_dir"
        raise InputError(message, key=(START_FROM,))


def _each(given: Mapping[int, Any], read: Callable[[Any], Params]) -> tuple[Params, ...]:
    """Read points, each once, by their places; every problem is told by its place."""
    found: dict[str, Params] = {}
    problems: list[Problem] = []
    for index, source in given.items():
        try:
            params = read(source)
            found.setdefault(params_key(params), params)
        except InputError as error:
            place = (START_FROM, index)
            problems += (replace(p, key=(*place, *p.key[-1:]), file=None) for p in error.problems)
    refuse(problems)
    return tuple(found.values())


def _own_point(space: SearchSpace, params: Any) -> Params:
    if not isinstance(params, Mapping):
        raise InputError(f"write a set of parameters, such as {{'x': 1}}, got {params!r}")
    return _in_space(space, params)


def _from_source(assembly: Assembly, source: str | Mapping[str, Any]) -> Params:
    if not isinstance(source, str):
        return _point(assembly, source)
    try:
        params = read_params_file(source)
        _check_unseen(assembly, source)
        return _point(assembly, params)
    except InputError as error:
        raise InputError(problems=[_of_file(p, source) for p in error.problems]) from None


def _check_unseen(assembly: Assembly, source: str) -> None:
    """Refuse what was chosen on parts of the queries that a search is to do without."""
    origin = origin_of(source) if assembly.parts else None
    if origin is None:
        return
    remark = origin.remark("it", assembly.dataset, assembly.tune_queries)
    if remark is not None:
        raise InputError(
            "no search without a part of the queries may start from what they have chosen; leave "
            f"it out, or hold queries out: {remark}"
        )


def _of_file(problem: Problem, file: str) -> Problem:
    """Tell a problem with its file's name, and of which of the file's keys it is."""
    name = "".join(f"{part}: " for part in problem.key[-1:])
    begin = "" if problem.message.startswith(file) else f"{file}: "
    return Problem(f"{begin}{name}{problem.message}")


def _point(assembly: Assembly, given: Mapping[str, Any]) -> Params:
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
    return _in_space(space, {n: value for n, value in known.items() if n in space.parameters})


def _in_space(space: SearchSpace, params: Mapping[str, Any]) -> Params:
    point = space.canonical(params)
    if not space.satisfies(point):
        raise InputError(f"it breaks a rule of the space ({', '.join(space.constraints)})")
    return point
