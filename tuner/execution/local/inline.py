"""Evaluations one after the other in this process: no start-up cost, nothing to pickle."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from tuner.core.trial import Trial
from tuner.execution.base import Evaluate, FixedWorkers, Outcomes
from tuner.execution.call import calling


@dataclass(frozen=True)
class Inline(FixedWorkers):
    """Evaluates in the calling process, one trial at a time, whatever ``workers`` says.

    An evaluation past ``trial_timeout_s`` is abandoned and its trial failed, but its thread works
    on; C code that holds the GIL is not even noticed before it ends. A crash of the interpreter
    ends the run (the journal stays whole); ``processes`` contains both.
    """

    workers: int = 1

    @property
    def slots(self) -> int:
        """Return 1."""
        return 1

    @property
    def choice(self) -> str:
        """Say where evaluations run."""
        return "evaluations run in this process, one at a time"

    def run(
        self,
        evaluate: Evaluate,
        trials: Iterable[Trial],
        *,
        suspects: Container[int] = (),  # noqa: ARG002  # the protocol's; all run in one place
    ) -> Outcomes:
        """Yield every trial with its outcome; the next is pulled after that."""
        call = calling(evaluate, self.trial_timeout_s)
        for trial in trials:
            yield trial, call(trial)
