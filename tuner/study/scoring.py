"""From an evaluation's outcome to a trial's result: a score, or the reason why there is none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

from tuner.core.errors import InputError
from tuner.core.trial import Outcome, TrialState


class Score(Protocol):
    """What an outcome is worth: higher is better; violation 0 where every constraint holds."""

    @property
    def objective(self) -> float:
        """Return what the study maximises."""
        ...

    @property
    def violation(self) -> float:
        """Return by how much constraints are broken."""
        ...


class Objective(Protocol):
    """Turns metrics into one score."""

    def score(self, metrics: Mapping[str, float], /) -> Score:
        """Return the score.

        Raises:
            InputError: a metric is missing or not finite.
        """
        ...


@dataclass(frozen=True)
class Result:
    """What a trial learned from its own evaluation, or from that of an equal trial."""

    state: TrialState
    objective: float | None
    violation: float
    metrics: Mapping[str, float]
    seconds: Mapping[str, float]
    error: str | None


def result_of(outcome: Outcome, objective: Objective) -> Result:
    """Score an outcome; FAILED with the reason where that cannot be done."""
    seconds = {str(stage): float(s) for stage, s in outcome.seconds.items() if math.isfinite(s)}
    error = outcome.error
    metrics: dict[str, float] = {}
    try:
        metrics = _numbers(outcome.metrics)
        if error is None:
            score = objective.score(metrics)
            value, violation = float(score.objective), float(score.violation)
            if not (math.isfinite(value) and math.isfinite(violation)):
                raise InputError(f"the objective is {value}, its violation {violation}")
            state = TrialState.FINISHED
            return Result(state, value, violation, _defined(metrics), seconds, None)
    except InputError as problem:
        error = error or " ".join(str(problem).split())
    except Exception as problem:  # whatever was evaluated or scored costs its own trial only
        error = error or f"cannot be scored: {type(problem).__name__}: {problem}"
    return Result(TrialState.FAILED, None, 0.0, _defined(metrics), seconds, error)


def _numbers(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Return the metrics as plain floats.

    Raises:
        InputError: one of them is not a number.
    """
    for name, value in metrics.items():
        if isinstance(value, bool) or not isinstance(value, Real):
            raise InputError(f"metric {name!r} is a {type(value).__name__}, not a number")
    return {str(name): float(value) for name, value in metrics.items()}


def _defined(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return what is not finite as NaN, undefined: the one such value that a journal can hold."""
    return {name: v if math.isfinite(v) else math.nan for name, v in metrics.items()}
