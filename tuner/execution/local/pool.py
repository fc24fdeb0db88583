"""A fixed number of worker processes, each of which can die or be killed without harm to others."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from queue import LifoQueue
from typing import Any

from tuner.core.errors import one_line
from tuner.core.trial import Blame, Outcome, Trial
from tuner.execution.base import Evaluate
from tuner.execution.call import failed, timed_out
from tuner.execution.local.worker import Worker, enter, evaluate_here, load

# One thread each in the numerical libraries: as many workers as cores are there already.
ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "NUMBA_NUM_THREADS",
    ),
    "1",
)
# Starting a process and importing the evaluate function's modules is not part of a trial's time.
START_TIMEOUT_S = 300.0
# An idle process that was killed from outside is replaced and its trial evaluated, so many times.
STARTS_PER_TRIAL = 3
# How long idle workers may take to end; a thread that an evaluation left behind keeps one alive.
CLOSE_GRACE_S = 5.0

# Python then does not look into the working folder first, where a numpy.py may lie.
SAFE_PATH = "PYTHONSAFEPATH"
# At most so long is waited for a dying worker to be gone.
_ENDING_S = 30.0
_TRACKER = threading.Lock()


class CannotSendError(Exception):
    """The evaluate function cannot be brought into a worker process; the message says why."""


class ProcessPool:
    """Worker processes for one evaluate function, started when they are first needed."""

    def __init__(
        self, evaluate: Evaluate, workers: int, *, close_grace_s: float = CLOSE_GRACE_S
    ) -> None:
        # Not among the arguments of a worker: loky writes those into a pipe whose other end it
        # holds too, and so waits for ever where a worker dies before it has read them.
        descriptor, file = tempfile.mkstemp(prefix="tuner-evaluate-")
        self._remove = weakref.finalize(self, _remove, file, os.getpid())
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(_pickled(evaluate))
        self._close_grace_s = close_grace_s
        self._all = [_Process(file) for _ in range(workers)]
        self._idle: LifoQueue[_Process] = LifoQueue()
        for process in self._all:
            self._idle.put(process)

    def check(self) -> None:
        """Start one worker and load the evaluate function there.

        Raises:
            CannotSendError: it cannot be loaded.
        """
        process = self._idle.get()
        try:
            process.start()
        finally:
            self._idle.put(process)

    def evaluate(self, trial: Trial, timeout_s: float | None) -> Outcome:
        """Evaluate in a worker that is idle; as many calls at once as there are workers."""
        process = self._idle.get()
        try:
            return process.evaluate(trial, timeout_s)
        finally:
            self._idle.put(process)

    def close(self) -> None:
        """End every worker, at once where it is busy; evaluations under way end as failures.

        Idle workers that have not ended after the grace are killed.
        """
        killer = threading.Timer(self._close_grace_s, self._kill_all)
        killer.daemon = True
        killer.start()
        try:
            for process in self._all:
                process.close()
        finally:
            killer.cancel()
            self._remove()

    @property
    def has_crashed(self) -> bool:
        """Say whether an evaluation was the death of its worker, apart from its time limit."""
        return any(process.has_crashed for process in self._all)

    def _kill_all(self) -> None:
        for process in self._all:
            process.kill_group()


class _Process:
    """One worker process behind an executor of its own.

    joblib's executors (loky) break as a whole when one process dies, with everything that is under
    way in them. With one process each, the trial that did it is known and the others go on.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._executor: Any = None
        self._pid = 0
        self._started: Any = None
        self._process: Any = None
        # The thread that evaluates and the one that closes may both come to kill.
        self._killing = threading.Lock()
        self._is_busy = False
        self._is_closed = False
        self.has_crashed = False

    def start(self) -> None:
        """Start the process, unless it runs, and load the evaluate function.

        Raises:
            CannotSendError: the function cannot be loaded, or the process dies of it.
        """
        if self._executor is not None:
            return
        from joblib.externals.loky.backend.context import get_context
        from joblib.externals.loky.process_executor import ProcessPoolExecutor

        context = get_context("loky")
        _start_trackers()
        self._started = context.Semaphore(0)
        self._executor = ProcessPoolExecutor(
            max_workers=1,
            context=context,
            initializer=enter,
            initargs=(Worker(self._file, self._started),),
            env={**ONE_THREAD, SAFE_PATH: "1"},
        )
        try:
            if self._is_closed:  # in another thread, perhaps since this one looked
                raise CannotSendError("the workers were told to end")
            with _out_of_reach():
                loading = self._executor.submit(load)
            self._process = _leave_results_to_the_worker(self._executor)
            self._pid, problem = loading.result(START_TIMEOUT_S)
        except TimeoutError:
            problem = f"it was not loaded within {START_TIMEOUT_S:g} s"
        except CannotSendError as error:
            problem = str(error)
        except Exception as error:
            problem = _death(error, self._process)
        if problem is not None:
            self._kill()
            raise CannotSendError(problem)

    def evaluate(self, trial: Trial, timeout_s: float | None) -> Outcome:
        """Evaluate in the process; its death, or the end of its time, is an outcome."""
        begin = time.perf_counter()
        self._is_busy = True
        try:
            for _ in range(STARTS_PER_TRIAL):
                if self._is_closed:
                    break
                self.start()
                begin = time.perf_counter()
                outcome = self._attempt(trial, timeout_s, begin)
                if outcome is not None:
                    return outcome
            elapsed_s = time.perf_counter() - begin
            reason = "worker processes die before they begin to evaluate"
            return failed(reason, elapsed_s, blame=Blame.SYSTEM)
        except CannotSendError as error:
            reason = f"the evaluate function cannot be loaded in a worker process: {error}"
            return failed(reason, time.perf_counter() - begin)
        finally:
            self._is_busy = False

    def close(self) -> None:
        """End the process, and start no other."""
        self._is_closed = True
        executor = self._executor
        if executor is None:
            return
        if self._is_busy:
            self._kill()
        else:
            self._executor = None
            executor.shutdown(wait=True)
            self._pid = 0

    def _attempt(self, trial: Trial, timeout_s: float | None, begin: float) -> Outcome | None:
        """Return the outcome; None where the process was dead before the evaluation began."""
        future, process = None, self._process
        try:
            future = self._executor.submit(evaluate_here, trial)
            outcome: Outcome = future.result(timeout_s)
        except TimeoutError:
            if future is not None and future.done() and future.exception() is None:
                return future.result()  # type: ignore[no-any-return]  # in the last moment
            self._kill()
            elapsed_s = time.perf_counter() - begin
            return timed_out(timeout_s or elapsed_s, elapsed_s, "its worker process was killed")
        except BrokenProcessPool as error:
            has_begun = self._started.acquire(block=False)
            self._kill()
            if not has_begun:
                return None
            self.has_crashed = True
            reason = (
                f"the worker process died while it evaluated this trial: {_death(error, process)}"
            )
            return failed(reason, time.perf_counter() - begin)
        except Exception as error:  # such as an outcome that cannot be pickled
            self._started.acquire(block=False)
            reason = f"the outcome cannot be brought back from the worker: {one_line(error)}"
            return failed(reason, time.perf_counter() - begin)
        self._started.acquire(block=False)
        return outcome

    def _kill(self) -> None:
        with self._killing:
            executor, self._executor = self._executor, None
        if executor is None:
            return
        self.kill_group()
        self._pid = 0
        executor.shutdown(wait=True, kill_workers=True)

    def kill_group(self) -> None:
        """Kill the process and all that it started, where it runs and the system has groups."""
        if self._pid and hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)


def _leave_results_to_the_worker(executor: Any) -> Any:
    """Close this process's own end of the pipe of results, and return the worker process.

    This process never writes there. As long as it could, loky would wait for ever for the rest of a
    result whose worker died in the middle of it. The end is taken over by another file and not
    closed, since loky's thread closes it as well.
    """
    results, workers = executor._result_queue, list(executor._processes.values())
    if results is not None and os.name == "posix":
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, results._writer.fileno(), inheritable=False)
        finally:
            os.close(nowhere)
    return workers[0] if workers else None


@contextlib.contextmanager
def _out_of_reach() -> Iterator[None]:
    """Start processes that no Ctrl-C reaches until they have a group of their own; see ``enter``.

    It would end them in the middle of Python's own start, with a traceback on the terminal.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _remove(file: str, process_id: int) -> None:
    if os.getpid() == process_id:  # not in a child that the evaluation forked
        with contextlib.suppress(FileNotFoundError):
            os.unlink(file)


def _start_trackers() -> None:
    """Start the helper processes of loky and of Python beforehand.

    They, too, are not to run what only has the name of a module that they import; and each of them,
    when it starts, lets Ctrl-C through again that ``_out_of_reach`` holds back.
    """
    from multiprocessing import resource_tracker as of_python

    from joblib.externals.loky.backend import resource_tracker as of_loky

    with _TRACKER:
        is_safe = SAFE_PATH in os.environ
        os.environ[SAFE_PATH] = os.environ.get(SAFE_PATH, "1")
        try:
            of_loky.ensure_running()
            if os.name == "posix":
                of_python.ensure_running()
        finally:
            if not is_safe:
                os.environ.pop(SAFE_PATH, None)


def _pickled(evaluate: Evaluate) -> bytes:
    # joblib's own pickler takes lambdas and functions of a notebook too.
    from joblib.externals.loky.backend.reduction import dumps

    try:
        return bytes(dumps(evaluate))
    except Exception as error:  # anything that the user's objects raise
        raise CannotSendError(f"it cannot be pickled: {one_line(error)}") from error


def _death(error: Exception, process: Any) -> str:
    """Say how a process ended, where that is known: ``exit code 3``, ``SIGKILL``."""
    code = None
    if process is not None:
        process.join(_ENDING_S)  # its pipe is closed a moment before its code is known
        code = process.exitcode
    if code is not None and code < 0:
        return signal.Signals(-code).name
    if code:
        return f"exit code {code}"
    codes = re.findall(r"(?:EXIT\((\d+)\)|(SIG\w+)\(-?\d+\))", str(error))
    if not codes:
        return one_line(error)
    number, name = codes[0]
    return f"exit code {number}" if number else str(name)
