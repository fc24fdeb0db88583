"""The user's function or object by its name, and what can be known of it without asking it.

A function takes a query, parameters as one mapping, or parameters by their names.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tuner.core.checks import option_problems
from tuner.core.errors import InputError, OutageError, Problem, refuse
from tuner.core.json_text import text_digest
from tuner.core.registry import call_problem
from tuner.core.space import SearchSpace
from tuner.core.trial import Params, Scalar
from tuner.retrieval.adapters.event_loop import run_concurrently
from tuner.retrieval.adapters.function.loading import KEY, load_object, source_digest
from tuner.retrieval.adapters.function.threads import run_in_threads
from tuner.retrieval.knobs import Knob, space_knobs

QUERY, PARAMS = "query", "params"
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
        defaults: what it takes where such a parameter is left out.
        is_async: whether calling it gives an awaitable.
    """

    takes_query: bool
    takes_params: bool
    names: tuple[str, ...] | None
    defaults: Mapping[str, Scalar] = field(default_factory=dict)
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


def read_signature(function: Any, name: str) -> Signature:
    """Look at a function's parameters: ``query``, ``params``, and those named like a knob.

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
    named = {n: p.default for n, p in by_name.items() if n not in (QUERY, PARAMS)}
    if not named and PARAMS not in by_name and not is_open:
        shown = f"{name}{inspect.signature(function)}"
        raise InputError(f"{shown} takes no parameter to tune; {_WAYS}", key=KEY)
    call = getattr(function, "__call__", None)  # noqa: B004  # an instance with an async __call__
    return Signature(
        takes_query=QUERY in by_name,
        takes_params=PARAMS in by_name,
        names=None if is_open else tuple(named),
        defaults={n: default for n, default in named.items() if _is_scalar(default)},
        is_async=inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call),
    )


def missing_names(function: Any, known: tuple[str, ...]) -> list[str]:
    """Return the parameters without a default that no knob gives a value."""
    parameters = inspect.signature(function).parameters.values()
    return [
        parameter.name
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        and parameter.default is parameter.empty
        and parameter.name not in (QUERY, PARAMS, *known)
    ]


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


ASYNC_CONCURRENCY = 8
ASYNC_TIMEOUT_S = 60.0
_LOWS: dict[str, float] = {"concurrency": 1, "timeout_s": 0}


@dataclass(frozen=True)
class Target:
    """The user's object by name; each process imports it for itself, so it need not be pickled.

    A process that it is brought to imports the object at once: where the module is missing, that is
    known before the first trial comes there.
    """

    name: str
    search_path: tuple[str, ...]
    concurrency: int | None
    timeout_s: float | None

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the options, and import the object."""
        self.__dict__.update(state)
        load_object(self.name, self.search_path)

    @classmethod
    def read(
        cls, name: Any, search_path: Any = None, concurrency: Any = None, timeout_s: Any = None
    ) -> Self:
        """Check the options that every use of a function has; None: not given.

        Raises:
            InputError: an option of the wrong kind, or one that would have no effect.
        """
        if not isinstance(name, str):
            raise InputError("write it as my_package.module:thing", key=KEY)
        folders = ["."] if search_path is None else search_path
        if not isinstance(folders, list | tuple) or not all(isinstance(f, str) for f in folders):
            raise InputError("must be a list of folders", key=("search_path",))
        options = {"concurrency": concurrency, "timeout_s": timeout_s}
        given = {option: value for option, value in options.items() if value is not None}
        lows = {option: low for option, low in _LOWS.items() if option in given}
        problems = list(option_problems(given, lows, whole=("concurrency",)))
        refuse(problems)
        absolute = tuple(str(Path(folder).expanduser().resolve()) for folder in folders)
        target = cls(
            name,
            absolute,
            None if concurrency is None else int(concurrency),
            None if timeout_s is None else float(timeout_s),
        )
        if target.answers_batches:
            target.check_batches()
        if given and target.answers_batches:
            message = "is for functions that answer one query; leave it out"
            raise InputError(problems=[Problem(message, key=(option,)) for option in given])
        return target

    @property
    def calls_at_once(self) -> int:
        """Return how many calls may run at once: as given; by default 8 if async, else 1."""
        if self.concurrency is not None:
            return self.concurrency
        return ASYNC_CONCURRENCY if self.is_async else 1

    @property
    def is_async(self) -> bool:
        """Say whether calls are awaited: of an object with ``retrieve`` they may be."""
        return self.answers_batches or self.signature().is_async

    @property
    def object(self) -> Any:
        """Return the object of this process."""
        return load_object(self.name, self.search_path)

    @property
    def answers_batches(self) -> bool:
        """Say whether it is an object with ``retrieve(queries, params)``."""
        return callable(getattr(self.object, "retrieve", None))

    def check_batches(self) -> None:
        """Refuse an object whose ``retrieve`` is another library's, which answers one query.

        Raises:
            InputError: what it takes, and the function to write instead.
        """
        retrieve = self.object.retrieve
        problem = call_problem(retrieve, "queries", "params")
        names = _positional(retrieve)[:2]
        if not problem and len(names) == 2 and names[0] in _ONE_QUERY and names[1] != "params":
            problem = f"takes ({', '.join(names)}): one query, and not a batch with its parameters"
        prepare = getattr(self.object, "prepare", None)
        if not problem and callable(prepare) and (other := call_problem(prepare, "queries")):
            raise InputError(f"{self.name}.prepare {other}", key=KEY)
        if problem:
            module, _, thing = self.name.partition(":")
            raise InputError(
                f"{self.name}.retrieve {problem}; a `retrieve` is asked with a batch of queries "
                f"and their parameters. Where {thing} is another library's retriever, name a "
                f"function in {module}.py instead: def search(query, top_k): "
                f"return [(n.node.node_id, n.score) for n in {thing}.retrieve(query)[:top_k]]",
                key=KEY,
            )

    def signature(self) -> Signature:
        """Look at what the function takes.

        Raises:
            InputError: it is no function, or one that cannot be tuned.
        """
        if not callable(self.object):
            kind = type(self.object).__name__
            message = (
                f"{self.name!r} is of type {kind}: neither a function nor an object with `retrieve`"
            )
            if callable(getattr(self.object, "invoke", None)):
                module, _, thing = self.name.partition(":")
                message += (
                    f", but one with `invoke`, as LangChain's retrievers are. Put a function "
                    f"around it into {module}.py, and name that:\n"
                    f"    def {'find' if thing == 'search' else 'search'}(query, top_k=10):\n"
                    f"        documents = {thing}.invoke(query)\n"
                    '        return [document.metadata["id"] for document in documents[:top_k]]'
                )
            raise InputError(message, key=KEY)
        return read_signature(self.object, self.name)

    def knobs(self, space: SearchSpace | None, baseline: Params | None) -> tuple[Knob, ...]:
        """Return the object's own knobs; else what the space, the baseline and defaults name.

        Raises:
            InputError: its ``knobs`` are no Knob records, or a parameter gets no value.
        """
        own = getattr(self.object, "knobs", None)
        if own is not None:
            if not isinstance(own, list | tuple) or not all(isinstance(k, Knob) for k in own):
                message = f"{self.name}.knobs must be a list of tuner.retrieval.base.Knob"
                raise InputError(message, key=KEY)
            return tuple(own)
        if self.answers_batches:
            return space_knobs(space, baseline)
        signature = self.signature()
        names = signature.knob_names
        defaults = {} if names is None else signature.defaults
        knobs = space_knobs(space, baseline, defaults=defaults, names=names)
        missing = missing_names(self.object, tuple(knob.name for knob in knobs))
        if missing and space is not None:
            message = f"{self.name!r} needs {', '.join(map(repr, missing))}: name it in the space"
            raise InputError(f"{message}, in the baseline, or give it a default", key=KEY)
        return knobs

    def fingerprint(self) -> str:
        """Return a hash of the file that holds the object, and of its own fingerprint if any."""
        own = getattr(self.object, "fingerprint", "")
        text = f"{source_digest(self.name, self.search_path)} {own}"
        return text_digest(text)

    def run(self, calls: Sequence[Callable[[], Awaitable[Any]]]) -> list[Any]:
        """Run calls of an async object in this process's event loop, and wait for all."""
        return run_concurrently(calls, limit=self.calls_at_once, shared_by=self.name)

    def call(self, calls: Sequence[Callable[[], Any]], names: Sequence[str]) -> list[Any]:
        """Make calls of a function that is not async: here, or in threads where it has limits."""
        if self.calls_at_once == 1 and self.timeout_s is None:
            return [call() for call in calls]
        return run_in_threads(
            calls,
            names=names,
            limit=self.calls_at_once,
            timeout_s=self.timeout_s,
            shared_by=self.name,
        )


# What other libraries call the one query that they take.
_ONE_QUERY = frozenset(
    {"query", "question", "text", "str_or_query_bundle", "query_bundle", "input"}
)


def _positional(function: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in parameters if parameter.kind in kinds]


async def within(timeout_s: float, call: Callable[[], Awaitable[Any]]) -> Any:
    """Await a call for ``timeout_s`` seconds at most.

    Raises:
        OutageError: it took longer.
    """
    try:
        async with asyncio.timeout(timeout_s) as limit:
            return await call()
    except TimeoutError as error:
        if limit.expired():
            raise OutageError(f"no answer within {timeout_s:g} s") from error
        raise
