"""From a kind's name to its implementation, imported only when it is used.

A family is a package, and the table ``KINDS`` in its ``base.py`` names each kind's implementation:
``{"tpe": "tuner.backends.tpe:Tpe"}``. So a new kind is one new file and one line. Outside code is
named in full in the same way: ``my_package.module:Thing``.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from tuner.core.errors import InputError, Problem, did_you_mean, one_line, refuse
from tuner.core.shown import counted

_ONE_OF = {"backends": "backend", "retrieval": "retriever", "datasets": "data set format"}


def kinds(family: str) -> list[str]:
    """List the kinds that ship with a family such as ``"backends"``, in alphabetical order."""
    return sorted(_table(family))


def load(family: str, kind: str) -> Any:
    """Import the implementation of ``kind``, or of ``"module:Thing"`` from outside.

    Raises:
        InputError: no such kind, module or attribute.
    """
    if ":" in kind:
        return load_outside(_ONE_OF.get(family, family), kind)
    table = _table(family)
    if kind not in table:
        hint = did_you_mean(kind, sorted(table))
        raise InputError(f"unknown {_ONE_OF.get(family, family)} {kind!r}{hint}")
    module_name, _, attribute = table[kind].partition(":")
    return getattr(importlib.import_module(module_name), attribute)


def load_outside(what: str, name: str, *, key: Sequence[str] = ()) -> Any:
    """Import the ``what`` that is named as ``package.module:function``.

    Raises:
        InputError: it is named in another way, or there is no such module or thing.
    """
    module_name, _, thing = name.partition(":")
    if not (module_name and thing):
        raise InputError(f"{name!r} must name the {what} as package.module:function", key=key)
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # whatever the module does when it is imported
        reason = str(error) if isinstance(error, ImportError) else one_line(error)
        raise InputError(f"cannot import the {what} {name!r}: {reason}", key=key) from error
    try:
        return attrgetter(thing)(module)
    except AttributeError as error:
        raise InputError(f"module {module_name!r} has no {thing!r}", key=key) from error


def call_problem(thing: Any, *positional: str, named: Sequence[str] = ()) -> str:
    """Say why something cannot be called with such arguments; empty where it can.

    What does not tell its parameters, as some that are written in C, is taken as it is.

    >>> call_problem(lambda query: query, "queries", "params")
    'takes (query), and would be given 2 arguments: queries, params'
    """
    if not callable(thing):
        return f"is of type {type(thing).__name__}, which cannot be called"
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    try:
        signature.bind(*positional, **dict.fromkeys(named))
    except TypeError:
        given = [*positional, *(f"{name}=…" for name in named)]
        takes = str(signature).partition(" -> ")[0]
        many = counted(len(given), "argument")
        return f"takes {takes}, and would be given {many}: {', '.join(given)}"
    return ""


def check_can(
    thing: Any, called: str, calls: Mapping[str, tuple[Sequence[str], Sequence[str]]], *, see: str
) -> None:
    """Refuse an object that lacks a method, or whose method takes other arguments.

    ``calls`` holds the positional and the named arguments that each method will be given.

    Raises:
        InputError: every method that is missing or different, and where the protocol stands.
    """
    problems = []
    for method, (positional, named) in calls.items():
        found = getattr(thing, method, None)
        if found is None:
            problems.append(f"{called} has no method `{method}`")
        elif problem := call_problem(found, *positional, named=named):
            problems.append(f"{called}: `{method}` {problem}")
    if problems:
        raise InputError(problems=[Problem(f"{one}; see {see}") for one in problems])


def construct(make: Any, options: Mapping[str, Any], **given: Any) -> Any:
    """Call ``make(**given, **options)`` after checking that it knows every option.

    Raises:
        InputError: an option that does not exist or that is missing, with the option as its key;
            or whatever ``make`` finds wrong with the values.
    """
    if not callable(make):
        kind = type(make).__name__
        raise InputError(f"a class is needed, or a function that makes one; got a {kind}")
    try:
        parameters = inspect.signature(make).parameters
    except (TypeError, ValueError) as error:  # as of some that are written in C
        name = getattr(make, "__name__", make)
        raise InputError(f"{name!r} does not tell which options it takes") from error
    is_open = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    known = [
        name
        for name, p in parameters.items()
        if p.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        and name not in given
    ]
    problems = [
        Problem(f"unknown option{did_you_mean(name, known)}", key=(name,))
        for name in options
        if not is_open and name not in known
    ]
    problems += [
        Problem("this option is required", key=(name,))
        for name in known
        if parameters[name].default is inspect.Parameter.empty and name not in options
    ]
    refuse(problems)
    return make(
        **{name: value for name, value in given.items() if name in parameters or is_open}, **options
    )


def _table(family: str) -> Mapping[str, str]:
    table: Mapping[str, str] = importlib.import_module(f"tuner.{family}.base").KINDS
    return table
