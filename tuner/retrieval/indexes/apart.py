"""Build one index in a process of its own, whose death or delay costs nothing else."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from tuner.core.corpus import Corpus
from tuner.core.errors import InputError, OutageError, Problem, TunerError, one_line
from tuner.core.logs import begin_as_told
from tuner.core.outages import is_outage
from tuner.core.steps import Advance, unheard
from tuner.retrieval.indexes.building import (
    Order,
    build_first,
    build_here,
    cannot_keep,
    prepare_here,
)
from tuner.retrieval.indexes.record import RECORD, IndexRecord, read_record

# A builder that was stopped is given so long to end.
_ENDING_S = 5.0
# What an index that was built just in time has left for preparing its queries.
_LEAST_S = 0.1
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from tuner.retrieval.indexes.apart import build_for_parent; build_for_parent(sys.argv[2])"
)
# How long the order is that follows on a builder's standard input.
_LENGTH_BYTES = 8


def build_apart(
    order: Order, *, timeout_s: float | None, spent_s: float = 0.0, advance: Advance = unheard
) -> tuple[IndexRecord, bool]:
    """Build the index in a process of its own, unless it is there; say whether it was built.

    The process ends with this one, whatever ends it, and leaves nothing that would be taken for an
    index. ``timeout_s`` counts from where it begins to build; ``spent_s`` of it are over by then.

    Raises:
        TunerError: why it could not be built; an OutageError where a system did not answer.
    """
    payload = _dumps(order)
    try:
        order.folder.parent.mkdir(parents=True, exist_ok=True)
        log = order.log.open("wb")
    except OSError as error:
        raise cannot_keep(order.folder, error) from error
    with log:
        builder = _start(order.log, log)
        told = _listen(builder, payload, timeout_s, spent_s, advance)
    with suppress(OSError):
        if "built" in told or not order.log.stat().st_size:
            order.log.unlink()
    if "built" in told:
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


def build_first_apart(order: Order, timeout_s: float, advance: Advance) -> tuple[IndexRecord, bool]:
    """Build the first index of a retriever as ``build_apart`` does; what fails ends a command.

    Raises:
        InputError: what its options are wrong in.
        TunerError: why it could not be built.
    """
    with _of_the_baseline():
        return build_apart(order, timeout_s=timeout_s, advance=advance)


def prepare_apart(
    order: Order, record: IndexRecord, timeout_s: float, advance: Advance
) -> IndexRecord:
    """Prepare the queries of a first index that was just built, in a process of its own.

    ``timeout_s`` is for both together. An index whose queries are not prepared in time has failed.

    Raises:
        TunerError: why they could not be prepared.
    """
    try:
        with _of_the_baseline():
            prepared, _ = build_apart(
                order, timeout_s=timeout_s, spent_s=record.seconds, advance=advance
            )
        return prepared
    except BaseException:
        with suppress(OSError):
            (order.folder / RECORD).unlink()  # found, it would be prepared without a limit
        raise


@contextmanager
def _of_the_baseline() -> Iterator[None]:
    try:
        yield
    except (InputError, OutageError):
        raise
    except TunerError as error:
        raise TunerError(f"the baseline's index could not be built: {error}") from error


def build_for_parent(log: str) -> None:
    """Build in this process, which is the builder's, and tell the parent how far it is.

    ``log`` is the file that holds what is printed. The order is read from standard input.
    """
    payload = _read(int.from_bytes(_read(_LENGTH_BYTES), "big"))
    tell = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the user's code prints goes to the log
    begin_as_told()
    os.environ.pop("PYTHONSAFEPATH", None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's: it decides
    threading.Thread(target=_end_with_parent, args=(Path(log),), daemon=True).start()

    def say(**message: Any) -> None:
        tell.write(json.dumps(message) + "\n")
        tell.flush()

    def advance(done: int, of: int) -> None:
        say(done=done, of=of)

    try:
        order: Order = pickle.loads(payload)
        say(begun=True)
        corpus: Corpus = pickle.loads(order.corpus.read_bytes())
        if order.is_there:
            build: Callable[..., tuple[Any, ...]] = prepare_here
        else:
            build = build_first if order.is_first else build_here
        *_, is_built = build(order, corpus, advance)
        say(built=is_built)
    except InputError as error:
        say(problems=[asdict(problem) for problem in error.problems])
        raise
    except BaseException as error:  # whatever the user's code raises, SystemExit too
        say(error=one_line(error), is_outage=is_outage(error))
        raise


def _start(name: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", _START, json.dumps(sys.path), str(name)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        # A group of its own: ending it also ends whatever the system started.
        start_new_session=True,
    )


def _listen(
    builder: subprocess.Popen[bytes],
    payload: bytes,
    timeout_s: float | None,
    spent_s: float,
    advance: Advance,
) -> dict[str, Any]:
    """Hand a builder its order; return the last that it tells.

    By then it has ended, or was ended at the time limit.
    """
    assert builder.stdout is not None
    assert builder.stdin is not None
    told: dict[str, Any] = {}
    is_late = threading.Event()

    def stop_late() -> None:
        is_late.set()
        _end(builder)

    limit = None
    if timeout_s is not None:
        limit = threading.Timer(max(timeout_s - spent_s, _LEAST_S), stop_late)
    try:
        with suppress(BrokenPipeError):  # it died early; how is told below
            builder.stdin.write(len(payload).to_bytes(_LENGTH_BYTES, "big") + payload)
            builder.stdin.flush()
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
        with suppress(BrokenPipeError):
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


def _read(count: int) -> bytes:
    """Return so many bytes of standard input, unbuffered: what follows is the parent's end."""
    found = bytearray()
    while len(found) < count:
        part = os.read(0, count - len(found))
        if not part:
            raise SystemExit("the process that wanted the index has ended")
        found += part
    return bytes(found)


def _end_with_parent(log: Path) -> None:
    """End this process, and what it started, when the parent is gone: its end of stdin closes.

    Nobody is left to read the log, which goes too.
    """
    with suppress(OSError):
        while os.read(0, 1024):
            pass
    with suppress(OSError):
        log.unlink()
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
    return f"{how}; what it printed is in {log}" if log.exists() else how


def _dumps(thing: object) -> bytes:
    # joblib's own pickler takes lambdas and functions of a notebook too.
    from joblib.externals.loky.backend.reduction import dumps

    return bytes(dumps(thing))
