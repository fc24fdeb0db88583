"""From an evaluation's outcome to a trial's result: a score, or the reason why there is none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from tuner.core.errors import InputError, one_line
from tuner.core.trial import Outcome, Race, TrialState


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
    race: Race | None = None


def result_of(outcome: Outcome, objective: Objective) -> Result:
    """Score a plain outcome; FAILED with the reason where that cannot be done.

    One that was stopped early has no score, and its constraints are not judged.
    """
    error, metrics, seconds = outcome.error, outcome.metrics, outcome.seconds
    try:
        if outcome.race is not None:
            raced_out = TrialState.RACED_OUT
            return Result(raced_out, None, 0.0, _defined(metrics), seconds, None, outcome.race)
        if error is None:
            score = objective.score(metrics)
            value, violation = float(score.objective), float(score.violation)
            if not (math.isfinite(value) and math.isfinite(violation)):
                raise InputError(f"the objective is {value}, its violation {violation}")
            state = TrialState.FINISHED
            return Result(state, value, violation, _defined(metrics), seconds, None)
    except InputError as problem:
        error = " ".join(str(problem).split())
    except Exception as problem:  # whatever was scored costs its own trial only
        error = f"cannot be scored: {one_line(problem)}"
    return Result(TrialState.FAILED, None, 0.0, _defined(metrics), seconds, error)


def _defined(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return what is not finite as NaN, undefined: the one such value that a journal can hold."""
    return {name: v if math.isfinite(v) else math.nan for name, v in metrics.items()}
