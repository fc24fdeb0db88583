"""What is asked of a system: told just before it is sent, and kept when the process that asks dies.

Who sends queries calls ``teller()`` once, in the thread that was asked, and what that returns just
before each is sent; and ``hearer()`` the same way, for answers as they come. So the count is the
system's own, to the query; where a process is killed it may have a query too many of each sender,
told and not yet sent, and never one too few.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuner.core.json_text import digest_of
from tuner.core.trial import Params

if TYPE_CHECKING:  # commands are listed without numpy
    from tuner.core.rankings import Rankings

Tell = Callable[[int], None]
Hear = Callable[["Rankings"], None]

# What is kept for which evaluation; of none in particular.
NO_KEY = "-"


def _untold(queries: int) -> None:  # noqa: ARG001  # the form of a Tell
    return None


def _unheard(answers: Rankings) -> None:  # noqa: ARG001  # the form of a Hear
    return None


# Not arguments: between who counts and who sends stand retrievers of others.
_TELL: ContextVar[Tell] = ContextVar("tell", default=_untold)
_HEAR: ContextVar[Hear] = ContextVar("hear", default=_unheard)
_KEY: ContextVar[str] = ContextVar("key", default=NO_KEY)


@contextmanager
def heard_by(tell: Tell) -> Iterator[None]:
    """Let ``tell`` hear of the queries that this thread, or who it asks, sends in the block."""
    token = _TELL.set(tell)
    try:
        yield
    finally:
        _TELL.reset(token)


def teller() -> Tell:
    """Return what to call with the number of queries just before they are sent.

    In the thread that was asked; what it returns may be called in any.
    """
    return _TELL.get()


@contextmanager
def hearing(hear: Hear) -> Iterator[None]:
    """Give ``hear`` the answers that this thread, or who it asks, gets in the block, as they come.

    Who heard of them before still does.
    """
    before = hearer()

    def both(answers: Rankings) -> None:
        hear(answers)
        before(answers)

    token = _HEAR.set(both)
    try:
        yield
    finally:
        _HEAR.reset(token)


def hearer() -> Hear:
    """Return what to call with answers as they come: see ``teller``."""
    return _HEAR.get()


@contextmanager
def evaluating(params: Params) -> Iterator[None]:
    """Let what this thread asks in the block be of the evaluation of these parameters."""
    token = _KEY.set(key_of_evaluation(params))
    try:
        yield
    finally:
        _KEY.reset(token)


def current_key() -> str:
    """Return by what the evaluation that goes on in this thread is told from others."""
    return _KEY.get()


def key_of_evaluation(params: Params) -> str:
    """Return by what an evaluation of these parameters is told from others."""
    return digest_of(params, 12)


@dataclass(frozen=True)
class Asked:
    """Queries that a system was asked.

    Attributes:
        sent: how many were sent; one that is tried again counts again.
        answered: how many came back with an answer.
        kept: how many were not sent, since their answers were kept.
        tokens: of the contexts of those that were answered, as far as the system tells.
    """

    sent: int = 0
    answered: int = 0
    kept: int = 0
    tokens: float = 0.0

    def __add__(self, other: Asked) -> Asked:
        """Add up."""
        return Asked(
            self.sent + other.sent,
            self.answered + other.answered,
            self.kept + other.kept,
            self.tokens + other.tokens,
        )

    def less(self, part: Asked) -> Asked:
        """Return what is left without a part of it."""
        return Asked(
            self.sent - part.sent,
            self.answered - part.answered,
            self.kept - part.kept,
            self.tokens - part.tokens,
        )


NOTHING_ASKED = Asked()


class Ledger:
    """Adds up what is asked, by what for and by evaluation; in a folder that processes share.

    Each process appends short lines to a file of its own, one write each, so a killed process loses
    none. Without a folder, or where that is not there (on another machine of a cluster), what this
    process asks is added up in memory alone, and a copy that another process gets begins anew.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._offsets: dict[str, int] = {}
        self._by_purpose: dict[str, Asked] = {}
        self._by_key: dict[str, Asked] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what was read: another process reads it again."""
        return {"folder": self.folder}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what ``__getstate__`` gave."""
        self.__dict__.update(state)
        self._begin()

    def add(self, purpose: str, asked: Asked, key: str = NO_KEY) -> None:
        """Add what was asked for a purpose, in an evaluation.

        Raises:
            OSError: the disk refuses.
        """
        if self.folder is None or not self.folder.is_dir():
            with self._lock:
                self._take(purpose, key, asked)
            return
        # A short write is whole or is not; and nobody else writes to this file.
        line = f"{purpose} {key} {asked.sent} {asked.answered} {asked.kept} {asked.tokens:.17g}\n"
        os.write(_opened(str(self.folder), os.getpid()), line.encode())

    def by_purpose(self) -> Mapping[str, Asked]:
        """Return what was asked so far, by all processes, by what for."""
        with self._lock:
            self._read()
            return dict(self._by_purpose)

    def by_key(self) -> Mapping[str, Asked]:
        """Return what was asked so far by evaluation, see ``key_of_evaluation``."""
        with self._lock:
            self._read()
            return dict(self._by_key)

    @property
    def total(self) -> Asked:
        """Return all that was asked so far."""
        return sum(self.by_purpose().values(), NOTHING_ASKED)

    @property
    def calls(self) -> dict[str, int]:
        """Return how many queries were sent, by what for; none by 0."""
        return {purpose: asked.sent for purpose, asked in self.by_purpose().items() if asked.sent}

    def _take(self, purpose: str, key: str, asked: Asked) -> None:
        self._by_purpose[purpose] = self._by_purpose.get(purpose, NOTHING_ASKED) + asked
        if key != NO_KEY:
            self._by_key[key] = self._by_key.get(key, NOTHING_ASKED) + asked

    def _read(self) -> None:
        """Take in the lines that were added since the last time."""
        if self.folder is None or not self.folder.is_dir():
            return
        for file in self.folder.iterdir():
            begin = self._offsets.get(file.name, 0)
            if file.stat().st_size <= begin:
                continue
            with file.open("rb") as stream:
                stream.seek(begin)
                whole, _, _ = stream.read().rpartition(b"\n")
            self._offsets[file.name] = begin + len(whole) + 1 if whole else begin
            for line in whole.splitlines():
                try:
                    purpose, key, *figures, tokens = line.decode().split(" ")
                    sent, answered, kept = map(int, figures)
                    asked = Asked(sent, answered, kept, float(tokens))
                except ValueError:  # damaged, as a full disk may leave it
                    continue
                self._take(purpose, key, asked)


@cache
def _opened(folder: str, process_id: int) -> int:
    """Return this process's descriptor of its file; a forked process has its own."""
    name = f"{socket.gethostname()}-{process_id}.txt"
    return os.open(Path(folder, name), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
