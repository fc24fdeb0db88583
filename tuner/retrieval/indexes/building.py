"""Build one index in this process: what it takes, and who is alone with its folder."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from filelock import FileLock

from tuner.core.corpus import Corpus, Query
from tuner.core.errors import TunerError
from tuner.core.files import whole
from tuner.core.json_text import digest_of
from tuner.core.steps import Advance, portion, unheard
from tuner.core.trial import Params
from tuner.retrieval.base import Retriever, TellsIndexCost, prepare
from tuner.retrieval.indexes.pickling import Pickler, open_pickle
from tuner.retrieval.indexes.record import (
    RECORD,
    RETRIEVER,
    IndexRecord,
    files_of,
    read_record,
    write_record,
)

Make = Callable[[Corpus, Path, Params, Advance], Retriever]
"""Builds a retriever: over a corpus, into a folder, with parameters of stage ``"index"``."""


@dataclass(frozen=True)
class Building:
    """How far an index is that is being built; ``of`` is 0 as long as nobody knows.

    ``settings`` are those that differ from the first index of the retriever. ``is_new``: it is over
    and the index is there, which it was not before. ``is_found``: it is there, as another study had
    built it meanwhile.
    """

    name: str
    settings: Params
    done: int = 0
    of: int = 0
    is_over: bool = False
    is_new: bool = False
    is_found: bool = False


Tell = Callable[[Building], None]


def untold(building: Building) -> None:
    """Take what nobody listens to."""


@dataclass(frozen=True)
class Order:
    """What it takes to build one index. Travels to the process that builds it.

    ``made_from`` is empty where the retriever's own fingerprint decides it, and that is still to be
    built. ``corpus`` is the file that holds the pickled corpus. ``is_first``: its kind finds out
    itself what of it is there. ``is_there``: only its queries are to be prepared.
    """

    folder: Path
    settings: Params
    made_from: str
    make: Make
    corpus: Path
    queries: Sequence[Query] = field(default=(), repr=False)
    is_first: bool = False
    is_there: bool = False

    @property
    def log(self) -> Path:
        """Return the file that holds what a builder printed."""
        return self.folder.with_name(f"{self.folder.name}.log")

    def found(self, folder: Path | None = None) -> IndexRecord | None:
        """Return the record of the index where it is there, whole, and of this order."""
        record = read_record(folder or self.folder)
        return record if record is not None and record.made_from == self.made_from else None

    def of(self, built: Retriever) -> Order:
        """Return the same with what the built retriever says that it is made from."""
        if self.made_from:
            return self
        return replace(self, made_from=made_from(built.fingerprint, self.settings))


def made_from(own: str, settings: Params) -> str:
    """Return what an index is made from: what its kind says of it, and its settings."""
    return digest_of([own, settings], 24)


def build_here(
    order: Order, corpus: Corpus, advance: Advance = unheard
) -> tuple[IndexRecord, bool]:
    """Build the index in this process, unless it is there; say whether it was built.

    Of several processes that want it one builds, and the others wait.

    Raises:
        TunerError: the folder cannot be written.
        Exception: whatever the system raises.
    """
    with alone(order.folder):
        found = order.found()
        if found is not None:
            return found, False
        empty(order.folder)
        begin = time.perf_counter()
        built = order.make(corpus, order.folder, order.settings, portion(advance, 0.0, 0.7))
        prepare(built, order.queries, portion(advance, 0.7, 1.0))
        seconds = time.perf_counter() - begin
        return _write(order, built, len(corpus.documents), seconds), True


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Be the only one that builds the index in ``folder`` while the block runs.

    Raises:
        TunerError: the folder cannot be written.
    """
    lock = FileLock(f"{folder}.lock")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except OSError as error:
        raise cannot_keep(folder, error) from error
    try:
        yield
    finally:
        lock.release()


def empty(folder: Path) -> None:
    """Make an empty folder, whatever was there.

    Raises:
        TunerError: it cannot be written.
    """
    try:
        if folder.exists():
            with suppress(OSError):
                (folder / RECORD).unlink()  # from now on nobody takes it for whole
            shutil.rmtree(folder)
        folder.mkdir()
    except OSError as error:
        raise cannot_keep(folder, error) from error


def cannot_keep(folder: Path, error: OSError) -> TunerError:
    """Return the error of an index that a disk does not take."""
    return TunerError(
        f"the index cannot be kept in {folder}: {error.strerror or error}; give access and "
        "room there, or name another folder in TUNER_CACHE_DIR"
    )


def build_first(
    order: Order, corpus: Corpus, advance: Advance = unheard
) -> tuple[Retriever, IndexRecord, bool]:
    """Have the kind build the first index of a retriever, or find it; say whether it was built.

    Raises:
        TunerError: the folder cannot be written.
        Exception: whatever the system raises.
    """
    is_there = read_record(order.folder) is not None
    with nullcontext() if is_there else alone(order.folder):  # another study may build it too
        order.folder.mkdir(parents=True, exist_ok=True)
        begin = time.perf_counter()
        built = order.make(corpus, order.folder, order.settings, advance)
        seconds = time.perf_counter() - begin
        order = order.of(built)
        found = order.found()
        if found is not None:
            return built, found, False
        return built, _write(order, built, len(corpus.documents), seconds), True


def prepare_here(
    order: Order,
    corpus: Corpus,  # noqa: ARG001  # as in build_here
    advance: Advance = unheard,
) -> tuple[IndexRecord, bool]:
    """Prepare the queries of an index that is there, in this process; return its record.

    Raises:
        TunerError: it is gone, or the folder cannot be written.
        Exception: whatever the system raises.
    """
    with alone(order.folder):
        found = order.found()
        if found is None:
            raise TunerError("it was deleted as soon as it was built")
        begin = time.perf_counter()
        prepare(open_pickle(order.folder / RETRIEVER), order.queries, advance)
        return prepared(order.folder, found, time.perf_counter() - begin), True


def prepared(folder: Path, record: IndexRecord, seconds: float) -> IndexRecord:
    """Return the record of an index with what preparing its queries took, and write it.

    Raises:
        TunerError: the folder cannot be written.
    """
    whole_record = replace(record, seconds=record.seconds + seconds, files=files_of(folder))
    try:
        write_record(folder, whole_record)
    except OSError as error:
        raise cannot_keep(folder, error) from error
    return whole_record


def _write(order: Order, built: Retriever, documents: int, seconds: float) -> IndexRecord:
    folder = order.folder
    cost = built.index_cost if isinstance(built, TellsIndexCost) else {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with whole(folder / RETRIEVER) as stream:
            Pickler(stream, folder).dump(built)
        record = IndexRecord(
            made_from=order.made_from,
            settings=order.settings,
            seconds=seconds,
            documents=documents,
            tokens=None if "tokens" not in cost else int(cost["tokens"]),
            money=None if "money" not in cost else float(cost["money"]),
            files=files_of(folder),
        )
        write_record(folder, record)
    except OSError as error:
        raise cannot_keep(folder, error) from error
    return record
