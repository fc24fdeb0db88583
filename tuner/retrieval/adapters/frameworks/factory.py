"""The user's factory by its name: what it takes, and what it made in this process."""

from __future__ import annotations

import inspect
import os
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from tuner.core.corpus import Corpus, Document
from tuner.core.errors import InputError, OutageError, TunerError, one_line
from tuner.core.files import whole
from tuner.core.outages import is_outage
from tuner.core.space import SearchSpace
from tuner.core.trial import Params, Scalar
from tuner.retrieval.adapters.event_loop import once, run_concurrently
from tuner.retrieval.adapters.frameworks.settings import Setting, hints_of, knob_of
from tuner.retrieval.adapters.function.loading import find_object, source_digest
from tuner.retrieval.indexes.building import cannot_keep
from tuner.retrieval.knobs import Knob, space_knobs

KEY = ("make",)
# What a factory may name besides parameters of its index.
DOCUMENTS, CORPUS, FOLDER = "documents", "corpus", "folder"
GIVEN = (DOCUMENTS, CORPUS, FOLDER)
_CORPUS_FILE = "corpus.pickle"
# As many as the frame keeps open, and the first one.
_MOST_KEPT = 5
# Where no data set is at hand, as for `tuner knobs`. Some objects lower their depth to the number
# of documents, and say that as their setting: so there are more of them than anybody's depth.
STAND_INS = tuple(Document(f"{n}", f"Lima {n}", f"Lima {n} lies in Peru.") for n in range(1, 301))


@dataclass(frozen=True)
class Factory:
    """A function of the user's that makes a framework's object; each process imports it for itself.

    A process that it is brought to does so at once: where the module is missing, that is known
    before the first trial comes there.
    """

    name: str
    search_path: tuple[str, ...]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the names, and import the function."""
        self.__dict__.update(state)
        find_object(self.name, self.search_path, key=KEY)

    @classmethod
    def read(cls, make: Any, search_path: Any = None) -> Self:
        """Check the options that name it.

        Raises:
            InputError: it is no function, or does not name what it takes.
        """
        if not isinstance(make, str):
            raise InputError("write it as my_package.module:function", key=KEY)
        folders = ["."] if search_path is None else search_path
        if not isinstance(folders, list | tuple) or not all(isinstance(f, str) for f in folders):
            raise InputError("must be a list of folders", key=("search_path",))
        factory = cls(make, tuple(str(Path(f).expanduser().resolve()) for f in folders))
        if not callable(factory.function):
            kind = type(factory.function).__name__
            module, _, thing = make.partition(":")
            raise InputError(
                f"{make!r} is of type {kind}, no function. Write one into {module}.py that makes "
                f"it, and name that: def make_{thing}(): return …; each process calls it once",
                key=KEY,
            )
        _ = factory.parameters
        return factory

    @property
    def function(self) -> Any:
        """Return the function of this process."""
        return find_object(self.name, self.search_path, key=KEY)

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Return what it takes, by name.

        Raises:
            InputError: it takes anything, or something by position alone.
        """
        try:
            parameters = inspect.signature(self.function).parameters
        except (TypeError, ValueError) as error:
            message = f"{self.name!r} does not tell its parameters: write a function around it"
            raise InputError(message, key=KEY) from error
        for one in parameters.values():
            if one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL, one.POSITIONAL_ONLY):
                raise InputError(
                    f"{self.name!r} takes {one}: name each parameter that shapes the index, such "
                    "as chunk_tokens=300, so that it is known which those are",
                    key=KEY,
                )
        return parameters

    @property
    def takes_data(self) -> bool:
        """Say whether it is given documents, or a folder to keep something in."""
        return any(name in self.parameters for name in GIVEN)

    def knobs(self, space: SearchSpace | None, baseline: Params | None) -> tuple[Knob, ...]:
        """Return its parameters as knobs of the index.

        Raises:
            InputError: one has no value.
        """
        own = {n: p for n, p in self.parameters.items() if n not in GIVEN}
        hints = hints_of(self.function)
        defaults = {n: p.default for n, p in own.items() if _is_scalar(p.default)}
        if space is None and baseline is None:
            declared = (
                knob_of(Setting(n, defaults.get(n), hints.get(n), "a parameter of the factory"))
                for n in own
            )
            return tuple(replace(knob, stage="index") for knob in declared if knob is not None)
        found = space_knobs(space, baseline, defaults=defaults, names=own)
        told = {knob.name for knob in found}
        missing = [n for n, p in own.items() if p.default is p.empty and n not in told]
        if missing:
            names = ", ".join(map(repr, missing))
            raise InputError(
                f"{self.name!r} needs {names}: name it in the space, in the baseline, or give it "
                "a default",
                key=KEY,
            )
        return tuple(replace(knob, stage="index") for knob in found)

    def fingerprint(self) -> str:
        """Return a hash of the file that holds the function."""
        return source_digest(self.name, self.search_path)

    def write_data(self, folder: Path, corpus: Corpus) -> None:
        """Write what other processes give the function: the documents, and a folder of its own.

        Raises:
            TunerError: the folder cannot be written.
        """
        try:
            if {DOCUMENTS, CORPUS} & set(self.parameters):
                with whole(folder / _CORPUS_FILE) as stream:
                    pickle.dump(corpus, stream, protocol=pickle.HIGHEST_PROTOCOL)
            if FOLDER in self.parameters:
                (folder / FOLDER).mkdir()
        except OSError as error:
            raise cannot_keep(folder, error) from error

    def made(self, params: Params, folder: Path | None) -> Any:
        """Return what it makes with parameters of the index; each process calls it once for them.

        ``folder`` is where ``write_data`` wrote; None where the function takes no data.

        Raises:
            OutageError: a system that it needs does not answer.
            TunerError: it raised.
        """
        return _made(self, tuple(sorted(params.items())), folder, os.getpid())

    def made_of_stand_ins(self) -> Any:
        """Return what it makes with its own defaults, of made-up documents where it takes any.

        Raises:
            InputError: a parameter has no default, or a folder is needed.
        """
        missing = [n for n, p in self.parameters.items() if p.default is p.empty and n not in GIVEN]
        if missing or FOLDER in self.parameters:
            name = (missing or [FOLDER])[0]
            message = f"{self.name!r} needs {name!r}, so it cannot be called without a data set"
            raise InputError(message, key=KEY)
        known = {DOCUMENTS: STAND_INS, CORPUS: Corpus(STAND_INS)}
        return _called(self, {n: thing for n, thing in known.items() if n in self.parameters})


@once(kept=_MOST_KEPT)
def _made(
    factory: Factory,
    params: tuple[tuple[str, Scalar], ...],
    folder: Path | None,
    process: int,  # noqa: ARG001  # a fork has connections of its own
) -> Any:
    given: dict[str, Any] = {}
    if {DOCUMENTS, CORPUS} & set(factory.parameters) and folder is not None:
        corpus = _read_corpus(folder / _CORPUS_FILE)
        known = {DOCUMENTS: corpus.documents, CORPUS: corpus}
        given = {name: thing for name, thing in known.items() if name in factory.parameters}
    if FOLDER in factory.parameters and folder is not None:
        given[FOLDER] = folder / FOLDER
    return _called(factory, {**given, **dict(params)})


def _called(factory: Factory, arguments: Mapping[str, Any]) -> Any:
    try:
        made = factory.function(**arguments)
        if inspect.iscoroutine(made):
            coroutine = made
            (made,) = run_concurrently([lambda: coroutine], limit=1, shared_by=factory.name)
    except TunerError:
        raise
    except (Exception, SystemExit) as error:  # its sys.exit() is not to end ours
        kind = OutageError if is_outage(error) else TunerError
        raise kind(f"{factory.name} raised {one_line(error)}") from error
    return made


def _read_corpus(path: Path) -> Corpus:
    try:
        corpus: Corpus = pickle.loads(path.read_bytes())
    except Exception as error:  # whatever another version of this package wrote
        raise TunerError(f"the documents in {path} cannot be read: {one_line(error)}") from error
    return corpus


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)
