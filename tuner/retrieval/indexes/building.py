"""Build one index: here, or in a process of its own whose death or delay costs nothing else."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from filelock import FileLock

from tuner.core.corpus import Corpus, Query
from tuner.core.errors import InputError, OutageError, Problem, TunerError, one_line
from tuner.core.files import whole
from tuner.core.json_text import digest_of
from tuner.core.outages import is_outage
from tuner.core.steps import Advance, portion, unheard
from tuner.core.trial import Params
from tuner.retrieval.base import Retriever, TellsIndexCost, prepare
from tuner.retrieval.indexes.pickling import Pickler
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

# A builder that was stopped is given so long to end.
_ENDING_S = 5.0
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from tuner.retrieval.indexes.building import build_for_parent; build_for_parent(sys.argv[2])"
)


@dataclass(frozen=True)
class Building:
    """How far an index is that is being built; ``of`` is 0 as long as nobody knows.

    ``settings`` are those that differ from the first index of the retriever. ``is_new``: it is over
    and the index is there, which it was not before.
    """

    name: str
    settings: Params
    done: int = 0
    of: int = 0
    is_over: bool = False
    is_new: bool = False


Tell = Callable[[Building], None]


def untold(building: Building) -> None:
    """Take what nobody listens to."""


@dataclass(frozen=True)
class Order:
    """What it takes to build one index. Travels to the process that builds it.

    ``made_from`` is empty where the retriever's own fingerprint decides it, and that is still to be
    built. ``corpus`` is the file that holds the pickled corpus. ``is_first``: its kind finds out
    itself what of it is there.
    """

    folder: Path
    settings: Params
    made_from: str
    make: Make
    corpus: Path
    queries: Sequence[Query] = field(default=(), repr=False)
    is_first: bool = False

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


def prepared_first(folder: Path, record: IndexRecord, seconds: float) -> IndexRecord:
    """Return the record of the first index with what preparing its queries took, and write it.

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


def build_apart(
    order: Order, *, timeout_s: float | None, advance: Advance = unheard
) -> tuple[IndexRecord, bool]:
    """Build the index in a process of its own, unless it is there; say whether it was built.

    The process ends with this one, whatever ends it, and leaves nothing that would be taken for an
    index. ``timeout_s`` counts from where it begins to build.

    Raises:
        TunerError: why it could not be built; an OutageError where a system did not answer.
    """
    order.folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="index-") as scratch:
        payload = Path(scratch) / "order"
        payload.write_bytes(_dumps(order))
        with order.log.open("wb") as log:
            builder = _start(payload, log)
            told = _listen(builder, timeout_s, advance)
    if "built" in told:
        with suppress(OSError):
            order.log.unlink()
        record = read_record(order.folder)
        if record is not None and order.made_from in ("", record.made_from):
            return record, bool(told["built"])
        told = {"error": "it was deleted as soon as it was built"}
    if "problems" in told:
        raise InputError(
            problems=[Problem(**{**told, "key": tuple(told["key"])}) for told in told["problems"]]
        )
    kind = OutageError if told.get("is_outage") else TunerError
    raise kind(str(told["error"]) if "error" in told else _death(builder.returncode, order.log))


def build_for_parent(payload: str) -> None:
    """Build in this process, which is the builder's, and tell the parent how far it is."""
    tell = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the user's code prints goes to the log
    os.environ.pop("PYTHONSAFEPATH", None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's: it decides
    threading.Thread(target=_end_with_parent, daemon=True).start()

    def say(**message: Any) -> None:
        tell.write(json.dumps(message) + "\n")
        tell.flush()

    def advance(done: int, of: int) -> None:
        say(done=done, of=of)

    try:
        order: Order = pickle.loads(Path(payload).read_bytes())
        say(begun=True)
        corpus: Corpus = pickle.loads(order.corpus.read_bytes())
        build = build_first if order.is_first else build_here
        *_, is_built = build(order, corpus, advance)
        say(built=is_built)
    except InputError as error:
        say(problems=[asdict(problem) for problem in error.problems])
        raise
    except BaseException as error:  # whatever the user's code raises, SystemExit too
        say(error=one_line(error), is_outage=is_outage(error))
        raise


def _start(payload: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", _START, json.dumps(sys.path), str(payload)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        # A group of its own: ending it also ends whatever the system started.
        start_new_session=True,
    )


def _listen(
    builder: subprocess.Popen[bytes], timeout_s: float | None, advance: Advance
) -> dict[str, Any]:
    """Return the last that a builder tells, once it has ended, or was ended at the time limit."""
    assert builder.stdout is not None
    assert builder.stdin is not None
    told: dict[str, Any] = {}
    is_late = threading.Event()

    def stop_late() -> None:
        is_late.set()
        _end(builder)

    limit = None if timeout_s is None else threading.Timer(timeout_s, stop_late)
    try:
        for line in builder.stdout:
            message = json.loads(line)
            if "done" in message:
                advance(message["done"], message["of"])
            elif "begun" in message and limit is not None:
                limit.start()
            elif "begun" not in message:
                told = message
        builder.wait()
    finally:
        if limit is not None:
            limit.cancel()
        _end(builder)
        builder.stdin.close()
        builder.stdout.close()
    if is_late.is_set() and "built" not in told:
        return {"error": f"it was not built within {timeout_s:g} s (index.timeout_s)"}
    return told


def _end(builder: subprocess.Popen[bytes]) -> None:
    if builder.poll() is not None:
        return
    try:
        os.killpg(builder.pid, signal.SIGKILL)
    except (AttributeError, ProcessLookupError, PermissionError):
        builder.kill()
    with suppress(subprocess.TimeoutExpired):
        builder.wait(_ENDING_S)


def _end_with_parent() -> None:
    """End this process, and what it started, when the parent is gone: its end of stdin closes."""
    with suppress(OSError):
        while os.read(0, 1024):
            pass
    if hasattr(os, "killpg"):
        os.killpg(os.getpgid(0), signal.SIGKILL)
    os._exit(1)


def _death(code: int | None, log: Path) -> str:
    """Say how a builder died that told nothing."""
    how = f"its process ended with exit code {code}"
    if code is not None and code < 0:
        name = signal.Signals(-code).name if -code in signal.valid_signals() else f"signal {-code}"
        memory = ", as where memory runs out" if name == "SIGKILL" else ""
        how = f"its process was ended by {name}{memory}"
    return f"{how}; what it printed is in {log}"


def _dumps(thing: object) -> bytes:
    # joblib's own pickler takes lambdas and functions of a notebook too.
    from joblib.externals.loky.backend.reduction import dumps

    return bytes(dumps(thing))
