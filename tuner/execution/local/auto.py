"""The default: short evaluations stay in this process, long ones go to worker processes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Container, Iterable
from contextlib import closing

from tuner.core.shown import counted
from tuner.core.trial import Outcome, Trial
from tuner.execution.base import Evaluate, Outcomes, check_options
from tuner.execution.call import calling, readied
from tuner.execution.local.pool import CannotSendError, ProcessPool
from tuner.execution.local.processes import run_in_pool
from tuner.execution.local.threads import Threads

# Below it, starting workers and bringing params and outcomes across costs more than it gains.
SHORT_MS = 50.0
# So many in a row must be long, since the first may fill caches ...
LONG_IN_A_ROW = 3
# ... but nobody waits three times for one that takes minutes.
VERY_LONG_MS = 5_000.0

LONG = f"they take more than {SHORT_MS:g} ms"
CRASHED = "one of them crashes its process"


class Auto:
    """Evaluates in this process until evaluations turn out to be long, then in workers.

    Long: three in a row took more than 50 ms each, or one took more than 5 s. Failed evaluations do
    not count, except at ``trial_timeout_s``. Then ``processes`` takes over, or ``threads`` where
    the evaluate function cannot go to another process; ``choice`` says so. With one worker the same
    holds: a worker process contains crashes. The place depends on the clock, the trials do not.

    A crash while evaluations are in this process ends the run (the journal stays whole), and C code
    that holds the GIL is not noticed at ``trial_timeout_s`` before it ends. The trials that were
    under way then are the resumed run's suspects: each is evaluated in a worker process of its own,
    and if one of them crashes it, all others go to workers too.
    """

    def __init__(self, workers: int, trial_timeout_s: float | None = None) -> None:
        check_options(workers, trial_timeout_s)
        self.workers = workers
        self.trial_timeout_s = trial_timeout_s
        self._choice = "the first evaluations run in this process, to see how long they take"

    @property
    def slots(self) -> int:
        """Return the number of workers."""
        return self.workers

    @property
    def choice(self) -> str:
        """Say where evaluations run, and why."""
        return self._choice

    def run(
        self, evaluate: Evaluate, trials: Iterable[Trial], *, suspects: Container[int] = ()
    ) -> Outcomes:
        """Yield every trial with its outcome, in the order in which they end."""
        remaining = iter(trials)
        recent_ms: deque[float] = deque(maxlen=LONG_IN_A_ROW)
        call = calling(evaluate, self.trial_timeout_s)
        for trial in remaining:
            is_crash = False
            begin = time.perf_counter()
            if trial.number in suspects:
                outcome, begin, is_crash = self._evaluate_apart(evaluate, trial)
            else:
                outcome = call(trial)
            # What was made ready before it is not the evaluation's.
            readying = outcome.seconds.get("index", 0.0)
            elapsed_ms = 1000 * (time.perf_counter() - begin - readying)
            if outcome.error is None or self._is_timeout(elapsed_ms):
                recent_ms.append(elapsed_ms)
                self._judge(recent_ms)
            yield trial, outcome
            if is_crash or self._is_long(recent_ms):
                why = CRASHED if is_crash else LONG
                yield from self._in_workers(evaluate, remaining, why=why)
                return

    def _evaluate_apart(self, evaluate: Evaluate, trial: Trial) -> tuple[Outcome, float, bool]:
        """Return the outcome, when its evaluation began, and whether it crashed its process."""
        here = calling(evaluate, self.trial_timeout_s)
        try:
            pool = ProcessPool(evaluate, 1)
        except CannotSendError:  # then there is no other place
            begin = time.perf_counter()
            return here(trial), begin, False
        with closing(pool):
            try:
                pool.check()
            except CannotSendError:
                begin = time.perf_counter()
                return here(trial), begin, False
            begin = time.perf_counter()
            apart = readied(evaluate, lambda trial: pool.evaluate(trial, self.trial_timeout_s))
            return apart(trial), begin, pool.has_crashed

    def _judge(self, recent_ms: deque[float]) -> None:
        if min(recent_ms) <= SHORT_MS:
            self._choice = (
                f"evaluations run in this process: they take less than {SHORT_MS:g} ms, too short "
                "for workers to gain anything"
            )

    def _is_timeout(self, elapsed_ms: float) -> bool:
        # Clocks differ by a little: what took nearly all of its time counts too.
        return self.trial_timeout_s is not None and elapsed_ms >= 900 * self.trial_timeout_s

    def _is_long(self, recent_ms: deque[float]) -> bool:
        if not recent_ms:
            return False
        is_long_enough = recent_ms[-1] > VERY_LONG_MS or self._is_timeout(recent_ms[-1])
        return is_long_enough or (len(recent_ms) == LONG_IN_A_ROW and min(recent_ms) > SHORT_MS)

    def _in_workers(self, evaluate: Evaluate, trials: Iterable[Trial], *, why: str) -> Outcomes:
        pool = None
        try:
            pool = ProcessPool(evaluate, self.workers)
            pool.check()
        except CannotSendError as error:
            if pool is not None:
                pool.close()
            self._choice = (
                f"evaluations run in {counted(self.workers, 'thread')}: "
                f"{why}, but the evaluate function cannot go to worker processes ({error})"
            )
            threads = Threads(self.workers, trial_timeout_s=self.trial_timeout_s)
            yield from threads.run(evaluate, trials)
            return
        except BaseException:
            if pool is not None:
                pool.close()
            raise
        self._choice = f"evaluations run in {counted(self.workers, 'worker process')}: {why}"
        yield from run_in_pool(
            pool, evaluate, trials, slots=self.workers, timeout_s=self.trial_timeout_s
        )
