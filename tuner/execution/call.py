"""One call of an evaluate function, where every failure is a value."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace

from tuner.core.errors import one_line
from tuner.core.outages import blame_of
from tuner.core.trial import Blame, Outcome, Trial
from tuner.execution.base import Evaluate
from tuner.execution.plain import plain


def call(evaluate: Evaluate, trial: Trial) -> Outcome:
    """Evaluate; an exception or a wrong type becomes an outcome with the reason.

    The outcome is plain and its seconds hold ``"total"``. Only the user's KeyboardInterrupt passes
    through. A process that the evaluation forked ends where the call would return.
    """
    start = time.perf_counter()
    process_id = os.getpid()
    try:
        params = dict(trial.params)
        # Only an evaluation that may end early is told what there is to beat.
        rival = {} if trial.rival is None else {"rival": trial.rival}
        outcome: object = evaluate(params, **rival)
        if os.getpid() != process_id:
            os._exit(0)  # a forked child: it must not go on with the study of its parent
        if isinstance(outcome, Outcome):
            outcome = plain(outcome)
        else:
            kind = type(outcome).__name__
            outcome = Outcome(error=f"evaluate returned {kind}; it must return an Outcome")
    except BaseException as error:  # SystemExit too: a library's sys.exit() costs this trial only
        if os.getpid() != process_id:
            os._exit(_exit_code(error))
        if isinstance(error, KeyboardInterrupt) and _is_main_thread():
            raise  # the user's; in any other thread it can only be the evaluation's own
        outcome = Outcome(error=one_line(error), blame=blame_of(error))
    return _timed(outcome, time.perf_counter() - start)


def call_within(evaluate: Evaluate, trial: Trial, timeout_s: float | None) -> Outcome:
    """Evaluate, but wait ``timeout_s`` at most (None: for ever).

    With a limit the evaluation has a thread of its own. Python cannot stop a thread: past the limit
    it is abandoned, and works on unseen until it ends or the process does.
    """
    if timeout_s is None:
        return call(evaluate, trial)
    outcomes: list[Outcome] = []
    start = time.perf_counter()
    thread = threading.Thread(
        target=lambda: outcomes.append(call(evaluate, trial)), name="evaluation", daemon=True
    )
    thread.start()
    thread.join(min(timeout_s, threading.TIMEOUT_MAX))
    if outcomes:
        return outcomes[0]
    elapsed_s = time.perf_counter() - start
    return timed_out(timeout_s, elapsed_s, "its thread cannot be stopped and was abandoned")


def timed_out(timeout_s: float, elapsed_s: float, remark: str) -> Outcome:
    """Return the outcome of an evaluation that took too long."""
    error = f"no result within {timeout_s:g} s ({remark})"
    return failed(error, elapsed_s, blame=Blame.EITHER)


def failed(error: str, elapsed_s: float, *, blame: Blame = Blame.PARAMS) -> Outcome:
    """Return the outcome of an evaluation that gave none."""
    return Outcome(error=error, seconds={"total": elapsed_s}, blame=blame)


def _exit_code(error: BaseException) -> int:
    """Return what Python would end with; whatever is no number counts as a failure."""
    if not isinstance(error, SystemExit):
        return 1
    if error.code is None:
        return 0
    return error.code & 0xFF if isinstance(error.code, int) else 1


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _timed(outcome: Outcome, elapsed_s: float) -> Outcome:
    if "total" in outcome.seconds:
        return outcome
    return replace(outcome, seconds={**outcome.seconds, "total": elapsed_s})
