"""From what an evaluation returned to plain values that can be sent, scored and written down."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from tuner.core.errors import LONGEST_ERROR, InputError, one_line
from tuner.core.json_text import encodable
from tuner.core.rankings import FloatArray
from tuner.core.shown import shortened
from tuner.core.trial import Blame, Outcome, Race

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
    return Outcome(metrics, per_query, seconds, error, race, blame)


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
