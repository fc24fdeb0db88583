"""Progress of a running study: bars in a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import ClassVar, Protocol, Self

from tuner.cli._out import echo
from tuner.core.shown import shown
from tuner.core.study_record import ArmRecord
from tuner.core.trial import Trial, TrialState
from tuner.study.loop import Event

# In a log, one line a step of this share of an arm's budget is enough to follow a long run.
LINE_EVERY_SHARE = 0.25


class Progress(Protocol):
    """Follows a study from trial to trial."""

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

    def show(self, event: Event) -> None:
        """Show one event of the study's loop."""
        ...

    def say(self, message: str) -> None:
        """Show one line of news without disturbing the rest."""
        ...


def progress_for(arms: Sequence[ArmRecord], told: Sequence[Trial], *, quiet: bool) -> Progress:
    """Choose how to show progress; ``told`` are the trials of an earlier, resumed run."""
    if quiet:
        return Quiet()
    counts = [ArmCount.of(arm, told) for arm in arms]
    return Bars(counts) if sys.stderr.isatty() else Lines(counts)


@dataclass
class ArmCount:
    """How far one arm is."""

    name: str
    budget: int
    done: int = 0
    failed: int = 0
    best: float | None = None

    @classmethod
    def of(cls, arm: ArmRecord, told: Sequence[Trial]) -> ArmCount:
        """Count an arm's earlier trials."""
        count = cls(arm.name, arm.budget)
        for trial in told:
            if trial.arm == arm.name:
                count.add(trial)
        return count

    def add(self, trial: Trial) -> bool:
        """Count one told trial; say whether it is the arm's new best."""
        self.done += 1
        self.failed += trial.state is TrialState.FAILED
        is_better = trial.is_feasible and (
            self.best is None or (trial.objective is not None and trial.objective > self.best)
        )
        if is_better:
            self.best = trial.objective
        return is_better

    @property
    def best_text(self) -> str:
        """Return the best so far for people."""
        return "–" if self.best is None else f"{self.best:.4f}"


class Quiet:
    """Shows nothing but news that needs attention."""

    tells_all: ClassVar[bool] = False

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """End."""

    def show(self, event: Event) -> None:
        """Count a told trial; show news, or only what needs attention."""
        if event.trial is not None:
            self._told(event.trial)
        elif self.tells_all or event.kind == "stopping":
            self.say(event.text)

    def _told(self, trial: Trial) -> None:
        """Show nothing."""

    def say(self, message: str) -> None:
        """Show one line."""
        echo(message, err=True)


@dataclass
class Lines(Quiet):
    """One line an arm whenever a quarter of its budget is done: for logs and pipes."""

    tells_all: ClassVar[bool] = True
    counts: Sequence[ArmCount]
    begun: float = field(default_factory=time.monotonic)

    def _told(self, trial: Trial) -> None:
        for count in self.counts:
            if count.name != trial.arm:
                continue
            before = count.done / count.budget // LINE_EVERY_SHARE
            count.add(trial)
            if count.done / count.budget // LINE_EVERY_SHARE > before:
                failed = f", {count.failed} failed" if count.failed else ""
                echo(
                    f"{time.monotonic() - self.begun:6.1f} s  {count.name:<10} "
                    f"{count.done}/{count.budget}  best {count.best_text}{failed}",
                    err=True,
                )


class Bars(Quiet):
    """One bar an arm: done, best, rate and time left."""

    tells_all: ClassVar[bool] = True

    def __init__(self, counts: Sequence[ArmCount]) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Rich

        from tuner.cli._console import plain_console

        self._rich = Rich(
            TextColumn("{task.description:<10}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("best {task.fields[best]}"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=plain_console(stderr=True),
        )
        self._arms = {
            count.name: (
                count,
                self._rich.add_task(
                    shown(count.name),
                    total=count.budget,
                    completed=count.done,
                    best=count.best_text,
                    rate="",
                ),
            )
            for count in counts
        }
        self._begun = time.monotonic()
        self._new = dict.fromkeys(self._arms, 0)

    def __enter__(self) -> Self:
        """Start the display."""
        self._rich.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the display, leaving its last state."""
        self._rich.stop()

    def _told(self, trial: Trial) -> None:
        if trial.arm not in self._arms:
            return
        count, task = self._arms[trial.arm]
        count.add(trial)
        self._new[trial.arm] += 1
        elapsed = max(time.monotonic() - self._begun, 1e-9)
        self._rich.update(
            task,
            completed=count.done,
            best=count.best_text,
            rate=f"{self._new[trial.arm] / elapsed:.1f}/s",
        )

    def say(self, message: str) -> None:
        """Show one line above the bars."""
        self._rich.console.print(shown(message))
