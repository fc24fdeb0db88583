"""The best configuration for each type of query, from what the trials have measured already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tuner.core.rankings import FloatArray
from tuner.core.trial import Trial
from tuner.stats import standard_error

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
        share = rows.size / (rows.size + prior_queries)
        score = share * matrix[:, rows].mean(axis=1) + (1 - share) * overall
        best = known[int(np.argmax(score))]
        difference = utilities[best.number][rows] - base[rows]
        spread = standard_error(difference)
        gain = float(difference.mean())
        is_clear = spread is not None and gain > spread
        choices.append(
            TypeChoice(name, rows.size, best if is_clear else winner, gain if is_clear else 0.0)
        )
    return tuple(choices)
