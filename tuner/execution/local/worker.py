"""What runs inside a worker process: it loads the evaluate function once and then only calls it."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import threading
import time
from pathlib import Path
from typing import Any

from tuner.core.errors import one_line
from tuner.core.logs import adopt, begin_as_told
from tuner.core.trial import Outcome, Trial
from tuner.execution.call import call, failed

PARENT_CHECK_S = 1.0


class Worker:
    """One worker process seen from inside. It is made in the parent and travels to the process.

    ``file`` holds the pickled evaluate function. ``started`` is a semaphore that the parent reads
    when the process died: it tells an evaluation that killed its process from one that had not
    begun.
    """

    def __init__(self, file: str, started: Any) -> None:
        self.file = file
        self.started = started
        self.parent_pid = os.getpid()


# A worker process serves one study and is told once whom it works for, so here, and only here,
# state belongs to the process.
_process: dict[str, Any] = {}


def enter(worker: Worker) -> None:
    """Set the process up; runs once, before anything else."""
    from joblib.externals.loky import process_executor

    _process["worker"] = worker
    begin_as_told()
    # For this process only: a program that an evaluation starts finds its modules as ever.
    os.environ.pop("PYTHONSAFEPATH", None)
    # loky ends a worker whose memory grew by 300 MB, in order to outlive leaks. Here that is the
    # index of a system, which the next process would read again, and so on.
    process_executor._USE_PSUTIL = False
    if hasattr(os, "setsid"):
        # A group of its own: Ctrl-C in the terminal reaches the study only, which then lets the
        # evaluations end; and killing the group also ends whatever an evaluation started.
        with contextlib.suppress(PermissionError):  # leads a group already
            os.setsid()
        _hear_interrupts_again()
        threading.Thread(target=_follow, args=(worker.parent_pid,), daemon=True).start()
    else:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _hear_interrupts_again() -> None:
    """Take SIGINT again, which this process was started without, and forget one that came since."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGINT, before)


def load() -> tuple[int, str | None]:
    """Load the evaluate function; return the process id, and why it cannot be loaded or None."""
    if "evaluate" not in _process:
        try:
            _process["evaluate"] = pickle.loads(Path(_process["worker"].file).read_bytes())
            adopt()
        except BaseException as error:  # whatever the import of the user's modules raises
            return os.getpid(), one_line(error)
    return os.getpid(), None


def evaluate_here(trial: Trial) -> Outcome:
    """Evaluate in this process."""
    _process["worker"].started.release()
    begin = time.perf_counter()
    _, problem = load()  # loaded already, unless loky has replaced the process by itself
    if problem is not None:
        return failed(problem, time.perf_counter() - begin)
    try:
        return call(_process["evaluate"], trial)
    except KeyboardInterrupt as error:  # the user's does not come here, so it is the evaluation's
        return failed(one_line(error), time.perf_counter() - begin)


def _follow(parent_pid: int) -> None:
    """End this process soon after its parent was killed, together with what it started."""
    while os.getppid() == parent_pid:
        time.sleep(PARENT_CHECK_S)
    os.killpg(os.getpgid(0), signal.SIGKILL)
