"""What a job tells whoever listens: news, and, by phases with a clock, how far it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

Item = TypeVar("Item")

# Told how much is done, and of how much; both in whatever unit the work has.
Advance = Callable[[int, int], None]
# Told a line of news, for people.
Say = Callable[[str], None]

# The phases of a command, as they are told, in their usual order.
START = "start"
READING = "reading"
INDEX = "index"
PREPARATION = "preparation"
SEARCH = "search"
VERDICT = "verdict"
REPORT = "report"
TRACKING = "MLflow"

# A smaller share of the whole is not worth a reader's time.
SMALLEST_SHARE = 0.05
# A rest of less would be shown as none.
SMALLEST_SHOWN_S = 0.05
_TELLS = 100
_LOOK_EVERY_S = 0.2


@dataclass(frozen=True)
class Step:
    """Where a phase stands; ``of`` is 0 as long as nobody knows how much there is to do."""

    phase: str
    done: int = 0
    of: int = 0
    is_over: bool = False


def unheard(done: int, of: int) -> None:
    """Take what nobody listens to."""


def unsaid(message: str) -> None:
    """Take a line that nobody is to read."""


def unheard_step(step: Step) -> None:
    """Take a step that nobody listens to."""


@dataclass(frozen=True)
class Phases:
    """The clock of a job: ``seconds`` by phase, and each phase told to ``listen`` as it goes on.

    >>> told = []
    >>> phases = Phases(told.append)
    >>> with phases.phase("reading") as advance:
    ...     advance(1, 2)
    >>> told[1], list(phases.seconds)
    (Step(phase='reading', done=1, of=2, is_over=False), ['reading'])
    """

    listen: Callable[[Step], None] = unheard_step
    seconds: dict[str, float] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    @contextmanager
    def phase(self, name: str) -> Iterator[Advance]:
        """Count the block's time as the phase's; what it yields tells how far the block is."""
        begin = time.monotonic()
        self.listen(Step(name))
        try:
            yield lambda done, of: self.listen(Step(name, done, of))
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - begin
            self.listen(Step(name, is_over=True))

    @property
    def total(self) -> float:
        """Return the seconds since the job began, in phases or not."""
        return time.monotonic() - self.began


@contextmanager
def watched(how_far: Callable[[], tuple[int, int]], advance: Advance) -> Iterator[None]:
    """Tell, from a thread, how far the block is, where its parts cannot."""
    is_over = threading.Event()

    def tell() -> None:
        while not is_over.wait(_LOOK_EVERY_S):
            advance(*how_far())

    thread = threading.Thread(target=tell, name="tuner-steps", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def followed(items: Sequence[Item], advance: Advance) -> Iterator[Item]:
    """Yield the items, and tell a hundred times or so how many are done."""
    every = max(1, len(items) // _TELLS)
    for number, item in enumerate(items):
        if number % every == 0:
            advance(number, len(items))
        yield item
    advance(len(items), len(items))


def portion(advance: Advance, begin: float, end: float) -> Advance:
    """Return what tells of a part of the work, from one share of its time to another.

    >>> told = []
    >>> portion(lambda done, of: told.append((done, of)), 0.2, 0.6)(5, 10)
    >>> told
    [(400, 1000)]
    """

    def tell(done: int, of: int) -> None:
        advance(round(1000 * (begin + (end - begin) * (done / of if of else 0.0))), 1000)

    return tell


def where_it_went(
    seconds: Mapping[str, float],
    total: float,
    *,
    of_it: Mapping[str, tuple[float, str]] | None = None,
) -> str:
    """Return the phases that took more than a twentieth of the whole, and the rest, for people.

    ``of_it`` holds a part of a phase, and what for; it is told where it is as large.

    >>> where_it_went({"reading": 3.1, "search": 2.0, "verdict": 0.1}, 6.0)
    'reading 3.1 s, search 2.0 s, the rest 0.9 s'
    >>> where_it_went({"search": 40.0}, 40.0, of_it={"search": (25.0, "for indexes")})
    'search 40.0 s (of it 25.0 s for indexes)'
    """
    parts = {name: spent for name, spent in seconds.items() if spent > SMALLEST_SHARE * total}
    rest = total - sum(parts.values())
    if rest >= SMALLEST_SHOWN_S:
        parts["the rest"] = rest
    told = {
        name: f" (of it {duration(part)} {why})"
        for name, (part, why) in (of_it or {}).items()
        if part > SMALLEST_SHARE * total
    }
    return ", ".join(f"{name} {duration(n)}{told.get(name, '')}" for name, n in parts.items())


def duration(seconds: float) -> str:
    """Return a time span for people.

    >>> duration(19.52), duration(575.0), duration(7300.0)
    ('19.5 s', '9 min 35 s', '2 h 1 min')
    """
    if seconds < 100.0:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 100:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
