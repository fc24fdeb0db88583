"""Evaluations in worker processes: for evaluations that compute, or that may crash or hang."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from tuner.core.errors import InputError
from tuner.core.shown import counted
from tuner.core.trial import Outcome, Trial
from tuner.execution.base import Evaluate, FixedWorkers, Outcomes
from tuner.execution.call import readied
from tuner.execution.local.pool import CannotSendError, ProcessPool
from tuner.execution.slots import run_in_slots


@dataclass(frozen=True)
class Processes(FixedWorkers):
    """Evaluates in ``workers`` processes, each with one BLAS thread.

    The evaluate function is pickled once and loaded once by each worker. A worker that dies, or
    that is killed at ``trial_timeout_s``, costs the trial that it was evaluating, and no other is
    evaluated again.
    """

    @property
    def choice(self) -> str:
        """Say where evaluations run."""
        return f"evaluations run in {counted(self.workers, 'worker process')}"

    def run(
        self,
        evaluate: Evaluate,
        trials: Iterable[Trial],
        *,
        suspects: Container[int] = (),  # noqa: ARG002  # the protocol's; all run in one place
    ) -> Outcomes:
        """Yield every trial with its outcome, in the order in which they end.

        Raises:
            InputError: the evaluate function cannot be pickled.
        """
        try:
            pool = ProcessPool(evaluate, self.workers)
        except CannotSendError as error:
            message = f"the evaluate function cannot go to worker processes: {error}; use threads"
            raise InputError(message, key=("execution", "kind")) from error
        yield from run_in_pool(
            pool, evaluate, trials, slots=self.workers, timeout_s=self.trial_timeout_s
        )


def run_in_pool(
    pool: ProcessPool,
    evaluate: Evaluate,
    trials: Iterable[Trial],
    *,
    slots: int,
    timeout_s: float | None,
) -> Outcomes:
    """Evaluate trials in a pool's workers, and close the pool at the end."""

    def call(trial: Trial) -> Outcome:
        return pool.evaluate(trial, timeout_s)

    try:
        yield from run_in_slots(readied(evaluate, call), trials, slots=slots)
    finally:
        pool.close()
