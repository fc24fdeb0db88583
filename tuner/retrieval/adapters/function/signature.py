"""What a function of the user's takes: a query, parameters as one mapping or by their names."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from tuner.core.errors import InputError
from tuner.core.trial import Params, Scalar
from tuner.retrieval.adapters.function.loading import KEY

QUERY, PARAMS, INDEX = "query", "params", "index"
# What a function is given besides parameters; and what an object's ``build`` is.
GIVEN = (QUERY, PARAMS)
GIVEN_TO_SEARCH = (INDEX, QUERY, PARAMS)
GIVEN_TO_BUILD = ("documents", "corpus", "folder")
_WAYS = (
    "write f(query, params), f(query, top_k=10, …) with the parameters' names, or f(params) for a "
    "function that returns metrics"
)


@dataclass(frozen=True)
class Signature:
    """How a function wants to be called.

    Attributes:
        takes_query: whether it answers one query; else it measures itself.
        takes_params: whether it takes all parameters as one mapping.
        names: the parameters that it takes by name; None: any.
        spelled: those that it names.
        defaults: what it takes where such a parameter is left out.
        is_async: whether calling it gives an awaitable.
    """

    takes_query: bool
    takes_params: bool
    names: tuple[str, ...] | None
    defaults: Mapping[str, Scalar] = field(default_factory=dict)
    spelled: tuple[str, ...] = ()
    is_async: bool = False

    def arguments(self, params: Params) -> dict[str, Any]:
        """Return the keyword arguments for some parameters, beside the query."""
        given: dict[str, Any] = {PARAMS: dict(params)} if self.takes_params else {}
        if self.takes_params and self.names is None:
            return given
        return {**given, **{n: v for n, v in params.items() if self.takes(n)}}

    def takes(self, name: str) -> bool:
        """Say whether a parameter is handed over by its name."""
        return self.names is None or name in self.names

    @property
    def knob_names(self) -> tuple[str, ...] | None:
        """Return the only parameters that the function can be given; None: any."""
        return None if self.takes_params else self.names


def read_signature(
    function: Any, name: str, given: tuple[str, ...] = GIVEN, *, may_have_none: bool = False
) -> Signature:
    """Look at a function's parameters: ``query``, ``params``, and those named like a knob.

    ``given`` are those that are no knobs. ``may_have_none``: whether it may take no knob.

    Raises:
        InputError: parameters that can only be given by position, or no parameter at all.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise InputError(f"{name!r} does not tell its parameters; {_WAYS}", key=KEY) from error
    empty = inspect.Parameter.empty
    for parameter in parameters:
        if parameter.kind is parameter.POSITIONAL_ONLY and parameter.default is empty:
            shown = f"{name}{inspect.signature(function)}"
            raise InputError(f"{shown}: a parameter has no name to give it by; {_WAYS}", key=KEY)
    by_name = {
        parameter.name: parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    is_open = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    named = {n: p.default for n, p in by_name.items() if n not in given}
    if not named and PARAMS not in by_name and not is_open and not may_have_none:
        shown = f"{name}{inspect.signature(function)}"
        raise InputError(f"{shown} takes no parameter to tune; {_WAYS}", key=KEY)
    call = getattr(function, "__call__", None)  # noqa: B004  # an instance with an async __call__
    return Signature(
        takes_query=QUERY in by_name,
        takes_params=PARAMS in by_name,
        names=None if is_open else tuple(named),
        defaults={n: default for n, default in named.items() if _is_scalar(default)},
        spelled=tuple(named),
        is_async=inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call),
    )


def missing_names(
    function: Any, known: Collection[str], given: tuple[str, ...] = GIVEN
) -> list[str]:
    """Return the parameters without a default that no knob gives a value."""
    parameters = inspect.signature(function).parameters.values()
    return [
        parameter.name
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        and parameter.default is parameter.empty
        and parameter.name not in given
        and parameter.name not in known
    ]


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)
