"""Every trial of a study as a row of a table among its artifacts, for MLflow's own pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tuner.core.study_record import StudyHeader
from tuner.core.trial import Trial


def trial_table(header: StudyHeader, trials: Iterable[Trial]) -> dict[str, list[Any]]:
    """Return columns and data: the trials that are told, best first, those without a score last."""
    told = sorted((one for one in trials if one.is_told), key=_best_first)
    params = _names(header.space, [trial.params for trial in told])
    metrics = _names(header.objective.get("maximize", ()), [trial.metrics for trial in told])
    columns = ["trial", "arm", "state", "objective", *params, *metrics, "seconds", "error"]
    return {
        "columns": columns,
        "data": [
            [
                *(trial.number, trial.arm, trial.state.value, trial.objective),
                *(trial.params.get(name) for name in params),
                *(trial.metrics.get(name) for name in metrics),
                *(trial.seconds.get("total"), trial.error),
            ]
            for trial in told
        ],
    }


def _names(first: Iterable[str], found: Sequence[Iterable[str]]) -> list[str]:
    """Return all names, those that the study is about first."""
    there = dict.fromkeys(name for names in found for name in names)
    return [*(name for name in first if name in there), *(n for n in there if n not in set(first))]


def _best_first(trial: Trial) -> tuple[bool, bool, float, int]:
    objective = trial.objective
    is_scored = objective is not None and objective == objective
    return (not is_scored, trial.violation > 0, -(objective or 0.0), trial.number)
