"""Which configuration to use: the cheapest of those that cannot be told from the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tuner.core.rankings import FloatArray
from tuner.core.trial import Trial, best_trial
from tuner.evaluation.system_metrics import CONTEXT_TOKENS
from tuner.stats import within_one_standard_error
from tuner.study.results import BASELINE_ARM

LATENCY = "latency_p95_ms"


def choose_winner(trials: Sequence[Trial], utilities: Mapping[int, FloatArray]) -> Trial | None:
    """Return the trial to use, by the tune queries alone; None where no trial is scored.

    ``utilities`` maps a trial's number to its objective on each query, shape (queries,). Among the
    feasible trials whose paired difference to the best is within one standard error, the one with
    the fewest context tokens is chosen, then the one with the lowest latency, then the best; never
    one that is not above the baseline. The baseline is chosen only where nothing has a higher
    objective. Without utilities the best wins.
    """
    best = best_trial(list(trials))
    if best is None or best.number not in utilities or best.arm == BASELINE_ARM:
        return best
    at_least = max(
        (trial.objective for trial in trials if trial.arm == BASELINE_ARM and trial.is_feasible),
        default=None,
        key=_number,
    )
    candidates = [
        trial
        for trial in trials
        if trial.number in utilities
        and trial.is_feasible
        and trial.arm != BASELINE_ARM
        and (at_least is None or _number(trial.objective) > at_least)
    ]
    if best not in candidates:
        return best
    matrix = np.stack([utilities[trial.number] for trial in candidates])
    is_as_good = within_one_standard_error(matrix, candidates.index(best))
    good = [trial for trial, is_in in zip(candidates, is_as_good, strict=True) if is_in]
    return min(good, key=_cost)


def _cost(trial: Trial) -> tuple[float, float, float, int]:
    return (
        trial.metrics.get(CONTEXT_TOKENS, 0.0),
        trial.metrics.get(LATENCY, 0.0),
        -_number(trial.objective),
        trial.number,
    )


def _number(objective: float | None) -> float:
    return -float("inf") if objective is None else objective
