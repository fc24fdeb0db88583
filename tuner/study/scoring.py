"""From an evaluation's outcome to a trial's result: a score, or the reason why there is none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from tuner.core.errors import InputError, one_line
from tuner.core.trial import Outcome, Trial, TrialState


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


def with_result(trial: Trial, outcome: Outcome, objective: Objective) -> Trial:
    """Return a trial with the result of a plain outcome; FAILED with the reason where it has none.

    One that was stopped early has no score, and its constraints are not judged.
    """
    trial = replace(
        trial,
        params=trial.params if outcome.params is None else outcome.params,
        metrics=_defined(outcome.metrics),
        seconds=outcome.seconds,
        index=outcome.index,
        profile=outcome.profile,
    )
    error = outcome.error
    try:
        if outcome.race is not None:
            return replace(trial, state=TrialState.RACED_OUT, race=outcome.race)
        if error is None:
            score = objective.score(outcome.metrics)
            value, violation = float(score.objective), float(score.violation)
            if not (math.isfinite(value) and math.isfinite(violation)):
                raise InputError(f"the objective is {value}, its violation {violation}")
            state = TrialState.FINISHED
            return replace(trial, state=state, objective=value, violation=violation)
    except InputError as problem:
        error = " ".join(str(problem).split())
    except Exception as problem:  # whatever was scored costs its own trial only
        error = f"cannot be scored: {one_line(problem)}"
    return replace(trial, state=TrialState.FAILED, error=error)


def with_shared_result(trial: Trial, first: Trial) -> Trial:
    """Return a trial with the result of an earlier one that was asked the same."""
    return replace(
        trial,
        params=first.params,
        profile=first.profile,
        state=TrialState.SHARED if first.is_scored else first.state,
        objective=first.objective,
        violation=first.violation,
        metrics=first.metrics,
        error=first.error,
        race=first.race,
        index=None if first.index is None else replace(first.index, is_new=False),
        shared_from=first.number,
    )


def _defined(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return what is not finite as NaN, undefined: the one such value that a journal can hold."""
    return {name: v if math.isfinite(v) else math.nan for name, v in metrics.items()}
