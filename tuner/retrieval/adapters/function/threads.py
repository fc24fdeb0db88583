"""Calls side by side in threads of this process: a limited number at once, each within its time."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from tuner.core.errors import OutageError, TunerError
from tuner.retrieval.adapters.event_loop import once

Result = TypeVar("Result")
# A signal's handler runs between two instructions, so no wait is longer than this.
LONGEST_WAIT_S = 0.2


def run_in_threads(
    calls: Sequence[Callable[[], Result]],
    *,
    names: Sequence[str],
    limit: int,
    timeout_s: float | None,
    shared_by: str,
) -> list[Result]:
    """Call each in a thread and return the results in order.

    At most ``limit`` run at once among all threads of the process that give the same ``shared_by``.
    After the first failure no further call begins; it is raised when those under way have ended. A
    call that takes longer than ``timeout_s`` is left behind: Python cannot stop a thread, so it
    works on unseen, and another takes its place.

    Raises:
        OutageError: a call took too long; ``names`` holds what each is called.
    """
    return _Run(calls, names, _slots(os.getpid(), shared_by, limit), limit, timeout_s).results()


class _Run(Generic[Result]):
    """Some calls, the threads that make them, and what came back."""

    def __init__(
        self,
        calls: Sequence[Callable[[], Result]],
        names: Sequence[str],
        slots: threading.Semaphore,
        limit: int,
        timeout_s: float | None,
    ) -> None:
        self._calls = calls
        self._names = names
        self._slots = slots
        self._threads = min(limit, len(calls))
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._waiting = iter(range(len(calls)))
        self._is_over = False
        # When each call that is under way began.
        self._began: dict[int, float] = {}
        self._ended: queue.SimpleQueue[tuple[int, list[Result], BaseException | None]] = (
            queue.SimpleQueue()
        )

    def results(self) -> list[Result]:
        """Make all calls, and return their results in order."""
        for _ in range(self._threads):
            threading.Thread(target=self._work, name="retrieval", daemon=True).start()
        found: dict[int, Result] = {}
        failure: BaseException | None = None
        try:
            while len(found) < len(self._calls) and not (failure and not self._is_under_way()):
                late = self._leave_behind()
                if late:
                    reason = f"{self._names[late[0]]}: no answer within {self._timeout_s:g} s"
                    failure = failure or OutageError(reason)
                    self._end()
                try:
                    number, result, error = self._ended.get(timeout=LONGEST_WAIT_S)
                except queue.Empty:
                    continue
                if error is None:
                    found[number] = result[0]
                else:
                    failure = failure or error
                    self._end()
        finally:  # also where Ctrl-C ends the wait
            self._end()
        if failure is not None:
            raise failure
        return [found[number] for number in range(len(self._calls))]

    def _end(self) -> None:
        with self._lock:
            self._is_over = True

    def _is_under_way(self) -> bool:
        with self._lock:
            return bool(self._began) or not self._ended.empty()

    def _leave_behind(self) -> list[int]:
        """Return the calls that take too long, which from here on are not waited for."""
        if self._timeout_s is None:
            return []
        with self._lock:
            now = time.monotonic()
            late = [n for n, began in self._began.items() if now - began > self._timeout_s]
            for number in late:
                del self._began[number]
                self._slots.release()
        return late

    def _work(self) -> None:
        while True:
            self._slots.acquire()
            with self._lock:
                number = None if self._is_over else next(self._waiting, None)
                if number is None:
                    self._slots.release()
                    return
                self._began[number] = time.monotonic()
            result: list[Result] = []
            error: BaseException | None = None
            try:
                result.append(self._calls[number]())
            except BaseException as raised:  # handed to who waits, as a failure of this call
                name = type(raised).__name__
                error = raised if isinstance(raised, Exception) else TunerError(f"{name}: {raised}")
            with self._lock:
                if self._began.pop(number, None) is None:
                    return  # left behind, and its slot is another's
                self._slots.release()
                self._ended.put((number, result, error))


@once(kept=32)
def _slots(process_id: int, shared_by: str, limit: int) -> threading.Semaphore:  # noqa: ARG001
    """Return what all threads of a process share; a forked process has its own."""
    return threading.Semaphore(limit)
