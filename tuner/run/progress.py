"""Progress for people: bars in a terminal or a notebook, plain lines elsewhere, or nothing."""

from __future__ import annotations

import html
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import click

from tuner.core.shown import shown
from tuner.core.steps import Step, duration
from tuner.run.how_far import SHOWN_AFTER_S, ArmCount, Stand

if TYPE_CHECKING:  # commands are listed without numpy
    from tuner.core.study_record import ArmRecord
    from tuner.core.trial import Trial
    from tuner.study.loop import Event

# In a log, one line a step of this share of an arm's budget is enough to follow a long run.
LINE_EVERY_SHARE = 0.25
# In a log, a phase that takes long has a line so often.
LINE_EVERY_S = 5.0
# A notebook's page is written anew so often at most.
PAGE_EVERY_S = 0.5
_TICK_S = 0.5
_BAR_WIDTH = 24


class Progress(Protocol):
    """Follows a command from phase to phase, and a study in it from trial to trial."""

    def __enter__(self) -> Self:
        """Begin to show."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End, leaving what was shown."""
        ...

    def follow(self, arms: Sequence[ArmRecord], trials: Sequence[Trial]) -> None:
        """Begin with a study's arms; those ``trials`` that are told are of an earlier run."""
        ...

    def watch(self, tell: Callable[[], str]) -> None:
        """Show, beside how far the arms are, what ``tell`` says; nothing where it says nothing."""
        ...

    def show(self, event: Event) -> None:
        """Show one event of the study's loop."""
        ...

    def step(self, step: Step) -> None:
        """Show where a phase stands."""
        ...

    def say(self, message: str) -> None:
        """Show one line of news without disturbing the rest."""
        ...


def progress_for(*, quiet: bool = False) -> Progress:
    """Choose how a command shows its progress."""
    if quiet:
        return Quiet()
    return Bars() if sys.stderr.isatty() else Lines()


def progress_here(*, is_wanted: bool) -> Progress:
    """Choose how a call from Python shows its progress: not at all in a script's log."""
    if is_wanted and sys.stderr.isatty():
        return Bars()
    return Page() if is_wanted and in_notebook() else Silent()


def in_notebook() -> bool:
    """Say whether a notebook runs this process."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"


def silence() -> str:
    """Say nothing."""
    return ""


class Quiet:
    """Shows nothing but news that needs attention."""

    tells_all: ClassVar[bool] = False

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """End."""

    def follow(self, arms: Sequence[ArmRecord], trials: Sequence[Trial]) -> None:
        """Show nothing."""

    def watch(self, tell: Callable[[], str]) -> None:
        """Show nothing."""

    def show(self, event: Event) -> None:
        """Count a told trial; show news, or only what needs attention."""
        if event.trial is not None:
            self._told(event.trial)
        elif self.tells_all or event.kind == "stopping":
            self.say(event.text)

    def step(self, step: Step) -> None:
        """Show nothing."""

    def _told(self, trial: Trial) -> None:
        """Show nothing."""

    def say(self, message: str) -> None:
        """Show one line."""
        click.echo(shown(message), err=True)


class Silent(Quiet):
    """Shows nothing at all."""

    def say(self, message: str) -> None:
        """Show nothing."""


@dataclass
class Lines(Quiet):
    """For logs and pipes: a line an arm whenever a quarter of its budget is done, and now and then
    one of a phase that takes long.
    """

    tells_all: ClassVar[bool] = True
    clock: Callable[[], float] = time.monotonic
    counts: Sequence[ArmCount] = ()
    begun: float = 0.0
    beside: Callable[[], str] = silence
    _stand: Stand = field(default_factory=Stand)
    _last_line: float = float("-inf")
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ticker: Ticker | None = None

    def __enter__(self) -> Self:
        """Begin to look at the clock: a phase that tells nothing has lines too."""
        self._ticker = Ticker(self.tick)
        self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        if self._ticker is not None:
            self._ticker.stop()

    def follow(self, arms: Sequence[ArmRecord], trials: Sequence[Trial]) -> None:
        """Begin to count."""
        self.counts = [ArmCount.of(arm, trials) for arm in arms]
        self.begun = self.clock()

    def watch(self, tell: Callable[[], str]) -> None:
        """Tell it at the end of each line of an arm."""
        self.beside = tell

    def step(self, step: Step) -> None:
        """Note where a phase stands, which the next line tells."""
        with self._lock:
            self._stand.take(step, self.clock())

    def tick(self) -> None:
        """Print where the phase stands, where it is long and the last line is not new."""
        now = self.clock()
        with self._lock:
            # Of what takes minutes, fewer lines tell as much.
            every_s = max(LINE_EVERY_S, 0.1 * (now - self._stand.began))
            if not self._stand.is_long(now) or now - self._last_line < every_s:
                return
            self._last_line = now
            line = f"{self._stand.phase}: {self._stand.text(now).strip()}"
        self.say(line)

    def _told(self, trial: Trial) -> None:
        for count in self.counts:
            if count.name != trial.arm:
                continue
            before = count.done / count.budget // LINE_EVERY_SHARE
            count.add(trial)
            if count.done / count.budget // LINE_EVERY_SHARE > before:
                beside = f"  {told}" if (told := self.beside()) else ""
                took = f"{self.clock() - self.begun:6.1f} s"
                self.say(f"{took}  {count.name:<10} {count.text}{beside}")


class Ticker:
    """Calls a function every half a second in a thread of its own."""

    def __init__(self, tick: Callable[[], None]) -> None:
        self._tick = tick
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tuner-progress", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for the last call."""
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(_TICK_S):
            self._tick()


class Bars(Quiet):
    """For a terminal: one bar an arm (done, best, rate and time left), and one of a long phase."""

    tells_all: ClassVar[bool] = True

    def __init__(self, *, shown_after_s: float = SHOWN_AFTER_S) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            TaskID,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Rich

        bar = BarColumn(bar_width=_BAR_WIDTH)
        self._bars = Rich(
            TextColumn("{task.description:<11}", markup=False),
            bar,
            MofNCompleteColumn(),
            TextColumn("best {task.fields[best]}"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
        )
        self._phase = Rich(
            TextColumn("{task.description:<11}", markup=False),
            bar,
            TextColumn("{task.fields[text]}"),
        )
        self._stand = Stand(shown_after_s=shown_after_s)
        self._task = self._phase.add_task("", total=None, text="")
        self._arms: dict[str, tuple[ArmCount, TaskID]] = {}
        self._begun = time.monotonic()
        self._beside: Callable[[], str] = silence
        console = Console(stderr=True, markup=False, emoji=False, highlight=False)
        self._live = Live(console=console, get_renderable=self._drawn_now, refresh_per_second=5)

    def __enter__(self) -> Self:
        """Start the display."""
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the display, leaving the arms' last state."""
        self._stand.phase = ""
        self._live.stop()

    def follow(self, arms: Sequence[ArmRecord], trials: Sequence[Trial]) -> None:
        """Add a bar an arm."""
        self._begun = time.monotonic()
        for arm in arms:
            count = ArmCount.of(arm, trials)
            task = self._bars.add_task(
                shown(arm.name),
                total=arm.budget,
                completed=count.done,
                best=count.best_text,
                rate="",
            )
            self._arms[arm.name] = (count, task)

    def watch(self, tell: Callable[[], str]) -> None:
        """Tell it in a line below the arms."""
        self._beside = tell

    def step(self, step: Step) -> None:
        """Note where a phase stands, which the display tells when it is drawn."""
        self._stand.take(step, time.monotonic())

    def _drawn_now(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        now, stand = time.monotonic(), self._stand
        drawn: list[Any] = [self._bars.get_renderable()] if self._arms else []
        if self._arms and (beside := self._beside()):
            drawn.append(Text(beside))
        if stand.is_long(now):
            self._phase.update(
                self._task,
                description=stand.phase,
                total=stand.of or None,
                completed=stand.done,
                text=stand.text(now),
            )
            drawn.append(self._phase.get_renderable())
        return Group(*drawn)

    def _told(self, trial: Trial) -> None:
        if trial.arm not in self._arms:
            return
        count, task = self._arms[trial.arm]
        count.add(trial)
        self._bars.update(
            task,
            completed=count.done,
            best=count.best_text,
            rate=f"{count.rate(self._begun, time.monotonic()):.1f}/s",
        )

    def say(self, message: str) -> None:
        """Show one line above the bars."""
        self._live.console.print(shown(message))


class Page(Quiet):
    """For a notebook: one output of a line an arm, written anew as trials are told.

    Not by rich, whose bars are empty in a notebook without ipywidgets.
    """

    def __init__(self) -> None:
        self._counts: list[ArmCount] = []
        self._beside: Callable[[], str] = silence
        self._begun = time.monotonic()
        self._drawn = float("-inf")
        self._output: Any = None

    def __exit__(self, *_: object) -> None:
        """Show the last state."""
        if self._counts:
            self._draw()

    def follow(self, arms: Sequence[ArmRecord], trials: Sequence[Trial]) -> None:
        """Show a bar an arm."""
        self._counts = [ArmCount.of(arm, trials) for arm in arms]
        self._begun = time.monotonic()
        self._draw()

    def watch(self, tell: Callable[[], str]) -> None:
        """Tell it in a line below the arms."""
        self._beside = tell

    def _told(self, trial: Trial) -> None:
        for count in self._counts:
            if count.name == trial.arm:
                count.add(trial)
        if time.monotonic() - self._drawn >= PAGE_EVERY_S:
            self._draw()

    def _draw(self) -> None:
        from IPython.display import display

        self._drawn = time.monotonic()
        lines = [*map(self._line, self._counts), self._beside()]
        text = "\n".join(filter(None, lines))
        content = {"text/plain": text, "text/html": f"<pre>{html.escape(text)}</pre>"}
        if self._output is None:
            self._output = display(content, raw=True, display_id=True)  # type: ignore[no-untyped-call]  # IPython's own
        else:
            self._output.update(content, raw=True)

    def _line(self, count: ArmCount) -> str:
        full = round(_BAR_WIDTH * min(1.0, count.done / count.budget))
        rate = count.rate(self._begun, self._drawn)
        left = (count.budget - count.done) / rate if rate else None
        return f"{count.name:<11}{'█' * full}{'░' * (_BAR_WIDTH - full)} {count.text}" + (
            f"  about {duration(left)} left" if left else ""
        )

    def say(self, message: str) -> None:
        """Print one line below the cell."""
        print(shown(message))
