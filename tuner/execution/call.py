"""One call of an evaluate function, where every failure is a value."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from tuner.core.errors import LONGEST_ERROR, InputError, NotBuiltError, one_line
from tuner.core.json_text import encodable
from tuner.core.outages import blame_of
from tuner.core.profile import Profile
from tuner.core.rankings import FloatArray
from tuner.core.shown import shortened
from tuner.core.steps import INDEX
from tuner.core.trial import Blame, IndexUse, Outcome, Params, Race, Trial
from tuner.execution.base import Evaluate


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


Holding = Callable[[Params], AbstractContextManager[IndexUse | None]]


def readied(evaluate: Evaluate, call: Callable[[Trial], Outcome]) -> Callable[[Trial], Outcome]:
    """Return ``call`` with what an evaluation needs made ready before it, here and in this thread.

    So it is not made by several workers, needs not be where they are, and its time does not count
    towards the limit of a trial; it is told as the stage ``"index"``, also where an index
    could not be built.
    """
    holding: Holding | None = getattr(evaluate, "holding", None)
    if holding is None:
        return call

    def ready_and_call(trial: Trial) -> Outcome:
        start = time.perf_counter()
        with ExitStack() as held:
            try:
                index = held.enter_context(holding(dict(trial.params)))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # as in `call`
                waited = time.perf_counter() - start
                outcome = failed(one_line(error), waited, blame=blame_of(error))
                if not isinstance(error, NotBuiltError):
                    return outcome
                return replace(outcome, seconds={**outcome.seconds, INDEX: waited})
            waited = time.perf_counter() - start
            outcome = call(replace(trial, index=index))
        if index is None or not index.is_new:
            return outcome
        return replace(outcome, index=index, seconds={**outcome.seconds, INDEX: waited})

    return ready_and_call


def calling(evaluate: Evaluate, timeout_s: float | None) -> Callable[[Trial], Outcome]:
    """Return what evaluates trials in this process, within a limit, their needs made ready."""

    def evaluate_here(trial: Trial) -> Outcome:
        return call_within(evaluate, trial, timeout_s)

    return readied(evaluate, evaluate_here)


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


# The names of per-query values become names of files in an archive.
LONGEST_NAME = 200

Value = TypeVar("Value")


def plain(outcome: Outcome) -> Outcome:
    """Return the outcome with plain floats, float64 arrays and text only; seconds are finite.

    What cannot be made plain is left out, and the outcome then has an error that says so.
    """
    problems: list[str] = []
    metrics = _each(outcome.metrics, "metric", _number, problems)
    per_query = _each(outcome.per_query, "per-query metric", _values, problems)
    seconds = _each(outcome.seconds, "stage", _number, problems)
    seconds = {stage: value for stage, value in seconds.items() if math.isfinite(value)}
    error = _text(outcome.error)
    if error is None and problems:
        error = problems[0]
    race = outcome.race if error is None and isinstance(outcome.race, Race) else None
    blame = outcome.blame if isinstance(outcome.blame, Blame) else Blame.PARAMS
    index = outcome.index if isinstance(outcome.index, IndexUse) else None
    profile = outcome.profile if isinstance(outcome.profile, Profile) else None
    params = None if profile is None else outcome.params
    return Outcome(metrics, per_query, seconds, error, race, blame, index, params, profile)


def _each(
    given: Any, what: str, read: Callable[[Any], Value], problems: list[str]
) -> dict[str, Value]:
    """Read every value of a mapping; add what is wrong to the problems, and leave it out."""
    if not isinstance(given, Mapping):
        kind = type(given).__name__
        problems.append(f"a mapping from each {what} to its value is needed, not a {kind}")
        return {}
    found: dict[str, Value] = {}
    try:
        for name, value in given.items():
            try:
                found[_name(name)] = read(value)
            except InputError as problem:
                problems.append(f"{what} {_quoted(name)} {problem}")
            except Exception as problem:
                problems.append(f"{what} {_quoted(name)}: {one_line(problem)}")
    except Exception as problem:  # a mapping, or a name, that breaks when it is looked at
        problems.append(f"every {what} must be readable: {one_line(problem)}")
    return found


def _quoted(name: object) -> str:
    return shortened(repr(name), LONGEST_NAME)


def _name(name: object) -> str:
    text = str(name)
    if len(text) > LONGEST_NAME or not text.isprintable():
        raise InputError(f"is no name: printable text of {LONGEST_NAME} characters at most is")
    return text


def _number(value: object) -> float:
    if value is None:
        return math.nan  # undefined
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"is a {type(value).__name__}, not a number")
    return float(value)


def _values(values: Any) -> FloatArray:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        form = f"{array.dtype} of shape {array.shape}"
        raise InputError(f"is {form}; one number for every query is needed")
    return np.asarray(array, dtype=np.float64)


def _text(error: object) -> str | None:
    if error is None:
        return None
    if isinstance(error, BaseException):
        return one_line(error)
    if not isinstance(error, str):
        return f"the outcome's error is a {type(error).__name__}; it must be text or None"
    words = encodable(" ".join(error.split()))
    return shortened(words, LONGEST_ERROR) or "failed without a reason"
