"""How far the arms of a study are, and the phase of a command that goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tuner.core.shown import as_percent, figure
from tuner.core.steps import SEARCH, Step, duration

if TYPE_CHECKING:  # commands are listed without numpy
    from tuner.core.study_record import ArmRecord
    from tuner.core.trial import Trial

# What is over sooner needs no progress.
SHOWN_AFTER_S = 2.0


@dataclass
class ArmCount:
    """How far one arm is; ``before`` counts what an earlier run has done."""

    name: str
    budget: int
    before: int = 0
    done: int = 0
    failed: int = 0
    best: float | None = None

    @classmethod
    def of(cls, arm: ArmRecord, trials: Sequence[Trial]) -> ArmCount:
        """Count those of an arm's trials that are told."""
        count = cls(arm.name, arm.budget)
        for trial in trials:
            if trial.arm == arm.name and trial.is_told:
                count.add(trial)
        count.before = count.done
        return count

    def add(self, trial: Trial) -> bool:
        """Count one told trial; say whether it is the arm's new best."""
        from tuner.core.trial import TrialState

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
        return figure(self.best)

    @property
    def text(self) -> str:
        """Return how far the arm is for people."""
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.done}/{self.budget}  best {self.best_text}{failed}"

    def rate(self, begun: float, now: float) -> float:
        """Return how many trials a second were told since a run began."""
        return (self.done - self.before) / max(now - begun, 1e-9)


@dataclass
class Stand:
    """Where the phase that goes on stands, and since when; none goes on where it has no name."""

    phase: str = ""
    began: float = 0.0
    done: int = 0
    of: int = 0
    shown_after_s: float = SHOWN_AFTER_S

    def take(self, step: Step, now: float) -> None:
        """Take a step; of a search the trials tell more."""
        if step.is_over or step.phase == SEARCH:
            self.phase = ""
            return
        if step.phase != self.phase:
            self.phase, self.began = step.phase, now
        self.done, self.of = step.done, step.of

    def is_long(self, now: float) -> bool:
        """Say whether the phase takes long enough to be shown."""
        return self.phase != "" and now - self.began >= self.shown_after_s

    def text(self, now: float) -> str:
        """Return how far it is: a share and the time left where they are known."""
        if not self.of or not self.done or self.done >= self.of:
            return f"{duration(now - self.began)} so far"
        left = (now - self.began) * (self.of - self.done) / self.done
        return (
            f"{as_percent(min(1.0, self.done / self.of)):>5}, about {duration(max(left, 0.0))} left"
        )
