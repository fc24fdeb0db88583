"""The indexes that a command builds while it does something else: shown, and timed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from tuner.core.ledger import Asked, Ledger
from tuner.core.shown import shortened
from tuner.core.steps import Step
from tuner.retrieval.indexes.building import Building

_LONGEST_LABEL = 60
# What a journal notes of an index.
BEGUN, BUILT = "index_begun", "index_built"
# What a build is counted as.
INDEXES = "indexes"


def unnoted(kind: str, name: str) -> None:
    """Take what nobody writes down of an index."""


class Builds:
    """Hears what is being built, by several threads perhaps, and tells it as steps of a command.

    Of several at a time the one that began first is told. The first index, which is built when the
    system is opened, is a phase of its own: the next one to be built is the second.
    """

    def __init__(
        self, listen: Callable[[Step], None], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._listen = listen
        # Is told of each one that it is begun, and that it is there now and was not before.
        self.note: Callable[[str, str], None] = unnoted
        self._clock = clock
        self._lock = threading.Lock()
        self._under_way: dict[str, Building] = {}
        self._numbers: dict[str, int] = {}
        self._since = 0.0
        self._seconds = 0.0
        # Adds up the builds that began, those that failed or were killed among them.
        self.ledger = Ledger()

    def take(self, told: Building) -> None:
        """Hear how far one is."""
        with self._lock:
            is_begun = told.name not in self._under_way
            if not self._under_way:
                self._since = self._clock()
            if told.name not in self._under_way:
                self.count()
            self._numbers.setdefault(told.name, len(self._numbers) + 2)
            self._under_way[told.name] = told
            steps = [self._step()]
            if is_begun or told.is_new:
                self.note(BUILT if told.is_new else BEGUN, told.name)
            if told.is_found:
                self.ledger.add(INDEXES, Asked(sent=-1))  # nothing was built, nor paid for
            if told.is_over:
                steps = [self._label(told, is_over=True)]
                del self._under_way[told.name]
                if self._under_way:
                    steps.append(self._step())
                else:
                    self._seconds += self._clock() - self._since
        for step in steps:
            self._listen(step)

    def count(self) -> None:
        """Count one that begins to be built."""
        self.ledger.add(INDEXES, Asked(sent=1))

    @property
    def seconds(self) -> float:
        """Return for how long at least one was being built."""
        with self._lock:
            going = self._clock() - self._since if self._under_way else 0.0
            return self._seconds + going

    def _step(self) -> Step:
        return self._label(next(iter(self._under_way.values())))

    def _label(self, told: Building, *, is_over: bool = False) -> Step:
        settings = ", ".join(f"{name}={value}" for name, value in told.settings.items())
        label = shortened(f"index {self._numbers[told.name]}: {settings}", _LONGEST_LABEL)
        return Step(label, told.done, told.of, is_over)
