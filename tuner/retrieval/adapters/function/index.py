"""An index that an object of the user's builds of documents: built once, kept, opened once."""

from __future__ import annotations

import asyncio
import errno
import inspect
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tuner.core.corpus import Corpus
from tuner.core.errors import InputError, OutageError, TunerError, one_line
from tuner.core.files import whole
from tuner.core.json_text import digest_of
from tuner.core.outages import is_outage
from tuner.core.trial import Params
from tuner.retrieval.adapters.event_loop import once
from tuner.retrieval.adapters.function.loading import KEY
from tuner.retrieval.adapters.function.target import Target
from tuner.retrieval.adapters.own_index import made_once, place_of
from tuner.retrieval.indexes.building import cannot_keep
from tuner.retrieval.indexes.pickling import Pickler, open_pickle

_PICKLE = "index.pickle"
# What ``build`` wrote itself, if it names ``folder``; and what it returned, if anything.
_FOLDER = "folder"
# As many as the frame keeps open of other kinds, and the first one.
_MOST_OPEN = 5
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class OwnIndex:
    """An index in ``folder``. ``params`` is what it was built with; ``made_from`` tells its code.

    A ``Path`` stays one when this travels: where the folder was brought, it is found.
    """

    folder: Path
    made_from: str
    params: Params

    def opened(self) -> Any:
        """Return what ``build`` returned, or the folder that it wrote to where that is nothing.

        Raises:
            TunerError: it cannot be read.
        """
        return _opened(self.folder, self.made_from)


def own_index(target: Target, corpus: Corpus, cache_dir: Path, params: Params) -> OwnIndex:
    """Have the target's object build its index, unless it is there.

    Raises:
        InputError: what it returns cannot be pickled.
        OutageError: a system that it needs does not answer.
        TunerError: it raised, or the folder cannot be written.
    """
    folder = place_of(cache_dir, "function", target.name, corpus, params)
    made_from = digest_of([target.fingerprint(), corpus.fingerprint, dict(params)], 24)
    build = partial(_build, target, corpus, folder, params)
    made_once(folder, made_from, build)
    return OwnIndex(folder, made_from, params)


def _build(target: Target, corpus: Corpus, folder: Path, params: Params) -> str:
    own = folder / _FOLDER
    known = {"documents": corpus.documents, "corpus": corpus, "folder": own}
    given = {name: thing for name, thing in known.items() if name in _names(target.object.build)}
    try:
        if "folder" in given:
            own.mkdir()
    except OSError as error:
        raise cannot_keep(own, error) from error
    try:
        built = target.object.build(**given, **params)
        if asyncio.iscoroutine(built):
            coroutine = built
            (built,) = target.run([lambda: coroutine])
    except TunerError:
        raise
    except (Exception, SystemExit) as error:  # its sys.exit() is not to end ours
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            raise cannot_keep(folder, error) from error
        kind = OutageError if is_outage(error) else TunerError
        raise kind(f"{target.name}.build raised {one_line(error)}") from error
    if built is None and "folder" not in given:
        raise InputError(
            f"{target.name}.build returned nothing: let it return the index, or name `folder` "
            "and write to that folder",
            key=KEY,
        )
    if built is not None:
        _write(target, built, folder)
    return ""


def _write(target: Target, built: object, folder: Path) -> None:
    try:
        with whole(folder / _PICKLE) as stream:
            Pickler(stream, folder).dump(built)
    except OSError as error:
        raise cannot_keep(folder, error) from error
    except Exception as error:  # whatever the user's objects raise when they are pickled
        raise InputError(
            f"what {target.name}.build returns cannot be kept, as it cannot be pickled "
            f"({one_line(error)}): let it name `folder`, write there what search needs, and "
            "return nothing; search is then given the folder",
            key=KEY,
        ) from error


@once(kept=_MOST_OPEN)
def _opened(folder: Path, made_from: str) -> Any:  # noqa: ARG001  # rebuilt, it is another one
    path = folder / _PICKLE
    if not path.is_file():
        if (folder / _FOLDER).is_dir():
            return folder / _FOLDER
        raise TunerError(f"the index in {folder} is gone; run again, and it is built anew")
    try:
        return open_pickle(path)
    except Exception as error:  # whatever the user's modules raise
        raise TunerError(f"the index in {folder} cannot be opened: {one_line(error)}") from error


def _names(build: Any) -> tuple[str, ...]:
    return tuple(inspect.signature(build).parameters)
