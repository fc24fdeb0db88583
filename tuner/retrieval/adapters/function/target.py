"""The user's function or object by its name, and what can be known of it without asking it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from tuner.core.checks import option_problems
from tuner.core.errors import InputError, OutageError, Problem, did_you_mean, refuse
from tuner.core.json_text import text_digest
from tuner.core.registry import call_problem
from tuner.core.space import SearchSpace
from tuner.core.trial import Params
from tuner.retrieval.adapters.event_loop import run_concurrently
from tuner.retrieval.adapters.frameworks.recognised import framework_hint
from tuner.retrieval.adapters.frameworks.settings import Setting, hints_of, knob_of
from tuner.retrieval.adapters.function.loading import KEY, load_object, source_digest
from tuner.retrieval.adapters.function.signature import (
    GIVEN,
    GIVEN_TO_BUILD,
    GIVEN_TO_SEARCH,
    INDEX,
    QUERY,
    Signature,
    missing_names,
    read_signature,
)
from tuner.retrieval.adapters.function.threads import run_in_threads
from tuner.retrieval.knobs import Knob, space_knobs

ASYNC_CONCURRENCY = 8
ASYNC_TIMEOUT_S = 60.0
_LOWS: dict[str, float] = {"concurrency": 1, "timeout_s": 0}


@dataclass(frozen=True)
class Target:
    """The user's object by name; each process imports it for itself, so it need not be pickled.

    A process that it is brought to imports the object at once: where the module is missing, that is
    known before the first trial comes there.

    Attributes:
        index: the parameters of the index that the function keeps for itself.
    """

    name: str
    search_path: tuple[str, ...]
    concurrency: int | None
    timeout_s: float | None
    index: tuple[str, ...] = ()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the options, and import the object."""
        self.__dict__.update(state)
        load_object(self.name, self.search_path)

    @classmethod
    def read(
        cls,
        name: Any,
        search_path: Any = None,
        concurrency: Any = None,
        timeout_s: Any = None,
        index: Any = None,
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
        names = () if index is None else index
        if not isinstance(names, list | tuple) or not all(isinstance(n, str) for n in names):
            raise InputError("must be a list of parameters", key=(INDEX,))
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
            tuple(names),
        )
        if hint := framework_hint(target.object, name):
            raise InputError(hint, key=KEY)
        if target.answers_batches:
            target.check_batches()
        if target.builds:
            refuse(target.build_problems())
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

    @property
    def builds(self) -> bool:
        """Say whether it is an object with ``build(documents, …)`` and ``search(index, query)``."""
        methods = (getattr(self.object, name, None) for name in ("build", "search"))
        return not self.answers_batches and all(map(callable, methods))

    @property
    def called(self) -> Any:
        """Return what answers a query: the object's ``search`` where it builds an index."""
        return self.object.search if self.builds else self.object

    def build_signature(self) -> Signature:
        """Look at what the object's ``build`` takes."""
        build, name = self.object.build, f"{self.name}.build"
        return read_signature(build, name, GIVEN_TO_BUILD, may_have_none=True)

    def build_problems(self) -> Iterator[Problem]:
        """Yield why it cannot be told what ``build`` and ``search`` take."""
        if self.build_signature().names is None:
            message = (
                f"{self.name}.build takes any parameters: name each one that shapes the index, "
                "so that it is known which those are"
            )
            yield Problem(message, key=KEY)
        building = tuple(inspect.signature(self.object.build).parameters)
        if not {"documents", "corpus"} & set(building):
            shown = f"({', '.join(building)})"
            message = (
                f"{self.name}.build takes {shown}: it needs `documents`, those of the data set, or "
                "`corpus`, which has their facts too"
            )
            yield Problem(message, key=KEY)
        takes = inspect.signature(self.object.search).parameters
        is_open = any(parameter.kind is parameter.VAR_KEYWORD for parameter in takes.values())
        if not is_open and not {INDEX, QUERY} <= set(takes):
            shown = f"({', '.join(takes)})"
            message = (
                f"{self.name}.search takes {shown}: it needs `index`, what `build` returned, and "
                "`query`, the text"
            )
            yield Problem(message, key=KEY)
        if self.index:
            message = f"leave it out: the parameters of {self.name}.build are those of the index"
            yield Problem(message, key=(INDEX,))

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
        if self.builds:
            search, name = self.object.search, f"{self.name}.search"
            return read_signature(search, name, GIVEN_TO_SEARCH, may_have_none=True)
        if not callable(self.object):
            kind = type(self.object).__name__
            message = (
                f"{self.name!r} is of type {kind}: neither a function nor an object with `retrieve`"
                ", or with `build` and `search`"
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
            found = tuple(own)
        elif self.answers_batches:
            found = space_knobs(space, baseline)
        else:
            parts = [(self.called, self.signature(), GIVEN_TO_SEARCH if self.builds else GIVEN)]
            if self.builds:
                parts.append((self.object.build, self.build_signature(), GIVEN_TO_BUILD))
            found = self._told(space, baseline, parts)
        refuse(self._index_problems([knob.name for knob in found], has_space=space is not None))
        shaping = {*self.index, *(self.build_signature().spelled if self.builds else ())}
        return tuple(replace(k, stage="index") if k.name in shaping else k for k in found)

    def suggested(self) -> tuple[Knob, ...]:
        """Return the knobs where no configuration tells any, with ranges to begin with.

        They are made of defaults and annotations; a parameter with a text for a default has that
        value only.

        Raises:
            InputError: as ``knobs``.
        """
        own = getattr(self.object, "knobs", None)
        found = self.knobs(None, None)
        if own is not None or self.answers_batches:
            return found
        hints = hints_of(self.called) | (hints_of(self.object.build) if self.builds else {})
        made = ((k, knob_of(Setting(k.name, k.default, hints.get(k.name)))) for k in found)
        return tuple(k if new is None else replace(new, stage=k.stage) for k, new in made)

    def _index_problems(self, known: Sequence[str], *, has_space: bool) -> Iterator[Problem]:
        """Yield which names of ``index`` are no parameters, or have no value."""
        takes = None if self.answers_batches else self.signature().knob_names
        for name in self.index:
            if takes is not None and name not in takes:
                message = f"{self.name!r} has no parameter {name!r}{did_you_mean(name, takes)}"
                yield Problem(message, key=(INDEX,))
            elif has_space and name not in known:
                message = f"{name!r} has no value: name it in the space, or in the baseline"
                yield Problem(message, key=(INDEX,))

    def _told(
        self,
        space: SearchSpace | None,
        baseline: Params | None,
        parts: Sequence[tuple[Any, Signature, tuple[str, ...]]],
    ) -> tuple[Knob, ...]:
        """Return the knobs that a configuration, and the defaults of functions, name.

        Raises:
            InputError: a parameter of one of the functions gets no value.
        """
        found: dict[str, Knob] = {}
        for _, signature, _ in parts:
            names = signature.knob_names
            defaults = {} if names is None else signature.defaults
            knobs = space_knobs(space, baseline, defaults=defaults, names=names)
            found |= {knob.name: knob for knob in knobs}
        missing = [n for called, _, given in parts for n in missing_names(called, found, given)]
        if missing and space is not None:
            told = ", ".join(map(repr, dict.fromkeys(missing)))
            message = f"{self.name!r} needs {told}: name it in the space"
            raise InputError(f"{message}, in the baseline, or give it a default", key=KEY)
        return tuple(found.values())

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
