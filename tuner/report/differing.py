"""The queries in which a trial is furthest from the baseline, for its panel in the page."""

from __future__ import annotations

from typing import Any

import numpy as np

from tuner.core.journal import per_query_if_whole
from tuner.core.rankings import FloatArray
from tuner.core.run_files import JOURNAL_FILE
from tuner.core.shown import shortened
from tuner.core.trial import Trial
from tuner.evaluation.objective import composite_values
from tuner.report.places import worth
from tuner.report.review import Review

MOST_TRIALS = 150
"""Trials whose queries the page holds, best first."""
MOST_OF_A_TRIAL = 6
LONGEST_QUERY = 120
# Values of the same answers, added up in another order.
LEAST = 1e-9


def differing(review: Review) -> dict[str, Any] | None:
    """Return of the best trials the tune queries that differ most in the composite.

    ``{"queries": [[text, id], …], "trials": {number: [[place of the query, trial, baseline],
    …]}}``, the largest difference first; None where the baseline's values by query were not kept.
    An id is None where the page's list has no such query.
    """
    baseline = review.trial(review.baseline)
    theirs = None if baseline is None else _composite(review, baseline)
    if baseline is None or theirs is None:
        return None
    known = [t for t in review.trials if t.worth is not None and t.number != baseline.number]
    known.sort(key=lambda trial: (-worth(trial), trial.number))
    if review.chosen is not None:
        number = review.chosen.trial
        known.sort(key=lambda trial: trial.number != number)
    texts: dict[int, int] = {}
    trials: dict[str, list[list[float]]] = {}
    for trial in known[:MOST_TRIALS]:
        mine = _composite(review, trial)
        if mine is None or mine.shape != theirs.shape:
            continue
        gap = np.abs(np.nan_to_num(mine - theirs))
        order = np.argsort(-gap, kind="stable")[:MOST_OF_A_TRIAL]
        trials[str(trial.number)] = [
            [
                texts.setdefault(int(row), len(texts)),
                round(float(mine[row]), 4),
                round(float(theirs[row]), 4),
            ]
            for row in order
            if gap[row] > LEAST
        ]
    return (
        {"queries": [_called(review, row) for row in texts], "trials": trials} if trials else None
    )


def _composite(review: Review, trial: Trial) -> FloatArray | None:
    """Return a trial's composite by query; None where it was not kept, or is damaged."""
    values = per_query_if_whole(review.run_dir / JOURNAL_FILE, trial.evaluated_as)
    if not review.weights or any(name not in values for name in review.weights):
        return None
    return composite_values(values, review.weights)


def _called(review: Review, row: int) -> list[str | None]:
    rows = review.tune_rows
    if row >= len(rows):
        return [f"tune query {row + 1}", None]
    own = rows[row]
    return [shortened(own.query or own.query_id, LONGEST_QUERY), own.query_id]
