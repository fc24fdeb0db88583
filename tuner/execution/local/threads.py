"""Evaluations in threads of this process: for evaluations that wait, or compute outside the GIL."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from tuner.core.shown import counted
from tuner.core.trial import Trial
from tuner.execution.base import Evaluate, FixedWorkers, Outcomes
from tuner.execution.call import calling
from tuner.execution.slots import run_in_slots


@dataclass(frozen=True)
class Threads(FixedWorkers):
    """Evaluates in ``workers`` threads that share one evaluate function, which must allow that.

    BLAS is held to one thread in the whole process while more than one worker runs. An evaluation
    past ``trial_timeout_s`` is abandoned and its trial failed, but its thread works on; C code that
    holds the GIL is not even noticed before it ends. A crash of the interpreter ends the run (the
    journal stays whole); ``processes`` contains both.
    """

    @property
    def choice(self) -> str:
        """Say where evaluations run."""
        return f"evaluations run in {counted(self.workers, 'thread')} of this process"

    def run(
        self,
        evaluate: Evaluate,
        trials: Iterable[Trial],
        *,
        suspects: Container[int] = (),  # noqa: ARG002  # the protocol's; all run in one place
    ) -> Outcomes:
        """Yield every trial with its outcome, in the order in which they end."""
        call = calling(evaluate, self.trial_timeout_s)
        if self.workers == 1:
            yield from run_in_slots(call, trials, slots=1)
            return
        from threadpoolctl import threadpool_limits

        with threadpool_limits(limits=1):
            yield from run_in_slots(call, trials, slots=self.workers)
