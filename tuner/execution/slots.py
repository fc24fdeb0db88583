"""Keeps a fixed number of evaluations under way: each slot pulls a trial as soon as it is free."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from queue import Empty, SimpleQueue
from typing import Protocol

from tuner.core.trial import Outcome, Trial
from tuner.execution.base import Outcomes

Call = Callable[[Trial], Outcome]
# Python runs a signal's handler between two instructions, and a signal that comes just before the
# consumer begins to wait does not end that wait: so no wait for a result is longer than this.
LONGEST_WAIT_S = 0.2


class Pool(Protocol):
    """Workers that come and go: says when one more trial has a slot on one of them."""

    def wait_for_slot(self, is_over: Callable[[], bool]) -> bool:
        """Wait for a slot, and take it; False where ``is_over`` comes true before."""
        ...

    def give_back(self) -> None:
        """Let another trial have the slot."""
        ...

    def wake(self) -> None:
        """Let everybody who waits look whether it is over."""
        ...


def run_in_slots(
    call: Call, trials: Iterable[Trial], *, slots: int, pool: Pool | None = None
) -> Outcomes:
    """Yield every trial with the outcome of ``call``, in the order in which they end.

    A slot pulls its next trial once the consumer has taken its last result and come back for more.
    A pull that has to wait for results keeps no other slot from handing its own over. Letting
    joblib pull a lazy input instead costs one result more, or any number where the consumer is
    slower than the evaluations, and an input that fails hangs it. Where workers come and go,
    ``pool`` tells of them: a slot here pulls only when it has one there.
    """
    if slots == 1 and pool is None:
        for trial in trials:
            yield trial, call(trial)
        return
    under_way = _Slots(call, iter(trials), pool)
    # joblib runs the slots, so that an evaluation which uses joblib itself is nested in it and does
    # not start processes in every slot. The call returns when the last slot has ended, hence a
    # thread for it; a daemon, since an abandoned evaluation must not keep the interpreter alive.
    threading.Thread(target=under_way.work, args=(slots,), name="slots", daemon=True).start()
    try:
        yield from under_way.results()
    finally:
        under_way.close()


class _Slots:
    def __init__(self, call: Call, trials: Iterator[Trial], pool: Pool | None) -> None:
        self._call = call
        self._trials = trials
        self._pool = pool
        self._is_used_up = threading.Event()
        self._pulling = threading.Lock()
        self._is_closed = threading.Event()
        # A result with the event that says it was consumed, an error, or None: all slots ended.
        self._results: SimpleQueue[
            tuple[Trial, Outcome, threading.Event] | BaseException | None
        ] = SimpleQueue()

    def work(self, slots: int) -> None:
        """Run the slots until the trials are used up."""
        try:
            from joblib import Parallel, delayed

            parallel = Parallel(n_jobs=slots, backend="threading", batch_size=1)
            parallel(delayed(self._slot)() for _ in range(slots))
        except BaseException as error:  # not lost in this thread, but raised by the consumer
            self._results.put(error)
        self._results.put(None)

    def results(self) -> Outcomes:
        while True:
            try:
                result = self._results.get(timeout=LONGEST_WAIT_S)
            except Empty:
                continue
            if result is None:
                return
            if isinstance(result, BaseException):
                raise result
            trial, outcome, is_consumed = result
            try:
                yield trial, outcome
            finally:
                is_consumed.set()

    def close(self) -> None:
        """Let every slot end after what it is doing now."""
        self._is_closed.set()
        if self._pool is not None:
            self._pool.wake()
        while True:
            try:
                result = self._results.get_nowait()
            except Empty:
                return
            if isinstance(result, tuple):
                result[2].set()

    def _slot(self) -> None:
        while not self._is_over():
            if self._pool is None:
                if not self._one():
                    return
            elif self._pool.wait_for_slot(self._is_over):
                try:
                    if not self._one():
                        return
                finally:
                    self._pool.give_back()

    def _is_over(self) -> bool:
        return self._is_closed.is_set() or self._is_used_up.is_set()

    def _one(self) -> bool:
        """Pull a trial, evaluate it, and hand it over; False where that was the last one."""
        with self._pulling:
            trial = next(self._trials, None)
        if trial is None:
            self._is_used_up.set()
            if self._pool is not None:
                self._pool.wake()
            return False
        is_consumed = threading.Event()
        self._results.put((trial, self._call(trial), is_consumed))
        if self._is_closed.is_set():  # then nobody may be left to consume it
            return False
        is_consumed.wait()
        return True
