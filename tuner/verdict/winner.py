"""Which configuration to use: the cheapest of those that cannot be told from the best.

And which for each type of query, from what the trials have measured already.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tuner.core.rankings import FloatArray
from tuner.core.trial import Trial, best_trial
from tuner.evaluation.system_metrics import CONTEXT_TOKENS
from tuner.stats import Choose, Rows, standard_error, within_one_standard_error
from tuner.stats.pairs import ROUNDING
from tuner.study.results import BASELINE_ARM

_UNKNOWN = sys.float_info.max


def choose_winner(trials: Sequence[Trial], utilities: Mapping[int, FloatArray]) -> Trial | None:
    """Return the trial to use, by the tune queries alone; None where no trial is scored.

    ``utilities`` maps a trial's number to its objective on each query, shape (queries,). Among the
    feasible trials whose paired difference to the best is within one standard error, the one with
    the fewest context tokens is chosen, then the best, then the earliest; never one that is not
    above the baseline. The baseline is chosen only where nothing has a higher objective. Without
    utilities the best wins. A latency that was measured once for each trial decides nothing here:
    that of equals is chance, and would be another in a second run.
    """
    best = best_trial(list(trials))
    if best is None or best.number not in utilities or best.arm == BASELINE_ARM:
        return best
    objectives = [_number(trial.objective) for trial in trials]
    # Less than what sums differ by that are added up in another order.
    margin = ROUNDING * max(*(abs(one) for one in objectives if one > -math.inf), 1.0)
    at_least = max(
        (
            objective + margin
            for trial, objective in zip(trials, objectives, strict=True)
            if trial.arm == BASELINE_ARM and trial.is_feasible
        ),
        default=-math.inf,
    )
    candidates = [
        trial
        for trial in trials
        if trial.number in utilities
        and trial.is_feasible
        and trial.arm != BASELINE_ARM
        and _number(trial.objective) > at_least
    ]
    if best not in candidates:
        # Above the baseline by rounding alone is not above it.
        kept = (one for one in trials if one.arm == BASELINE_ARM and one.is_feasible)
        return best if _number(best.objective) > at_least else next(kept, best)
    matrix = np.stack([utilities[trial.number] for trial in candidates])
    is_as_good = within_one_standard_error(matrix, candidates.index(best))
    good = [trial for trial, is_in in zip(candidates, is_as_good, strict=True) if is_in]
    fewest = min(map(_tokens, good))
    cheapest = [trial for trial in good if _tokens(trial) == fewest]
    highest = max(_number(trial.objective) for trial in cheapest) - margin
    equals = (trial for trial in cheapest if _number(trial.objective) >= highest)
    return min(equals, key=lambda trial: trial.number)


def winner_rule(trials: Sequence[Trial]) -> Choose:
    """Return ``choose_winner`` for many draws of queries at once, for ``bootstrap_corrected``.

    The rows of its values are ``trials``, in the order of their numbers, with every value defined;
    a trial's objective in a draw is its mean over what was drawn. Tokens are those of the trials:
    they differ from one configuration to the next far more than from draw to draw.
    """
    tokens = np.array([_tokens(trial) for trial in trials])
    is_baseline = np.array([trial.arm == BASELINE_ARM for trial in trials], dtype=bool)
    is_feasible = np.array([trial.is_feasible for trial in trials], dtype=bool)
    baseline = np.flatnonzero(is_baseline & is_feasible)

    def choose(values: FloatArray, drawn: FloatArray) -> Rows:
        count = drawn.sum(axis=1, keepdims=True)
        means = drawn @ values.T / count
        margin = ROUNDING * np.maximum(np.abs(means).max(axis=1, keepdims=True), 1.0)
        may_win = np.broadcast_to(is_feasible & ~is_baseline, means.shape)
        if baseline.size:
            may_win = may_win & (means > means[:, baseline[:1]] + margin)
        objective = np.where(may_win, means, -np.inf)
        best = objective.argmax(axis=1)
        leader = values[best]
        # Of d = trial - best by query: the sums of d and of its square over what was drawn.
        difference = means - np.take_along_axis(means, best[:, None], axis=1)
        squares = (
            drawn @ (values**2).T
            - 2.0 * (drawn * leader) @ values.T
            + (drawn * leader**2).sum(axis=1, keepdims=True)
        )
        variance = np.maximum(squares - count * difference**2, 0.0) / np.maximum(count - 1.0, 1.0)
        is_good = may_win & (difference >= -np.sqrt(variance / count) - margin)
        cheapest = np.where(is_good, tokens, np.inf)
        is_chosen = is_good & (cheapest == cheapest.min(axis=1, keepdims=True))
        highest = np.where(is_chosen, means, -np.inf)
        chosen = (highest >= highest.max(axis=1, keepdims=True) - margin).argmax(axis=1)
        # Where nothing is above the baseline, it stays.
        nobody = int(baseline[0]) if baseline.size else 0
        return np.where(may_win.any(axis=1), chosen, nobody)

    return choose


def _tokens(trial: Trial) -> float:
    """Return what a trial's contexts cost; where that is not known, more than any."""
    tokens = trial.metrics.get(CONTEXT_TOKENS, math.nan)
    return _UNKNOWN if math.isnan(tokens) else tokens


def _number(objective: float | None) -> float:
    return -math.inf if objective is None else objective


# A type of so many queries counts as much as what all queries say together.
PRIOR_QUERIES = 20.0


@dataclass(frozen=True)
class TypeChoice:
    """What was chosen for one type.

    ``gain`` is the mean difference to the overall winner on the type's tune queries, optimistic
    since the same queries chose it. ``trial`` is the winner itself where nothing is clearly better.
    """

    query_type: str
    queries: int
    trial: Trial
    gain: float


def shrunk_to_all(
    of_type: FloatArray, of_all: FloatArray, queries: int, prior_queries: float
) -> FloatArray:
    """Return means over so many queries of a type, shrunk towards those over all queries."""
    share = queries / (queries + prior_queries)
    return share * of_type + (1 - share) * of_all


def choose_by_type(
    trials: Sequence[Trial],
    utilities: Mapping[int, FloatArray],
    query_types: Sequence[str],
    winner: Trial,
    *,
    prior_queries: float = PRIOR_QUERIES,
) -> tuple[TypeChoice, ...]:
    """Choose a feasible trial for each query type, types in alphabetical order.

    A trial's score for a type of n queries is shrunk towards its mean over all queries,
    ``(n * mean of type + prior * mean of all) / (n + prior)``: few queries decide little.
    It replaces the winner only if the paired difference to it within the type is more than one
    standard error.
    """
    known = [t for t in trials if t.number in utilities and t.is_feasible]
    if winner.number not in utilities or not known:
        return ()
    matrix = np.stack([utilities[trial.number] for trial in known])
    overall = np.nanmean(matrix, axis=1)
    base = utilities[winner.number]
    labels = np.asarray(query_types)
    choices = []
    for name in sorted(set(query_types)):
        rows = np.flatnonzero((labels == name) & ~np.isnan(base))
        if rows.size == 0:
            continue
        score = shrunk_to_all(matrix[:, rows].mean(axis=1), overall, rows.size, prior_queries)
        best = known[int(np.argmax(score))]
        difference = utilities[best.number][rows] - base[rows]
        spread = standard_error(difference)
        gain = float(difference.mean())
        is_clear = spread is not None and gain > spread
        choices.append(
            TypeChoice(name, rows.size, best if is_clear else winner, gain if is_clear else 0.0)
        )
    return tuple(choices)
