"""Which of many settings that one answer tells of: by the rule that winners are chosen by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tuner.core.rankings import BoolArray, FloatArray
from tuner.stats.pairs import ROUNDING


@dataclass(frozen=True, eq=False)
class Table:
    """What settings are worth; every array has shape (settings,), or (settings, queries).

    Attributes:
        objective: higher is better.
        violation: by how much constraints are broken; 0: not.
        tokens: of the contexts, the mean over queries; 0 throughout where that is not known.
        by_query: the objective of each query, NaN where undefined.
    """

    objective: FloatArray
    violation: FloatArray
    tokens: FloatArray
    by_query: FloatArray

    def errors(self, at: int) -> FloatArray:
        """Return the standard errors of the paired differences to one setting; NaN below two."""
        return paired_errors(self.by_query, self.by_query[at])

    @property
    def is_allowed(self) -> BoolArray:
        """Return which settings break constraints least: not at all, where that can be had."""
        return np.asarray(self.violation <= max(float(self.violation.min()), 0.0))


def paired_errors(values: FloatArray, reference: FloatArray) -> FloatArray:
    """Return sd(d) / sqrt(n) of d = values - reference over the queries that have both."""
    difference = values - reference
    is_known = ~np.isnan(difference)
    count = is_known.sum(axis=-1)
    known = np.where(is_known, difference, 0.0)
    mean = known.sum(axis=-1) / np.maximum(count, 1)
    squares = (np.where(is_known, known - mean[..., None], 0.0) ** 2).sum(axis=-1)
    errors = np.sqrt(squares / np.maximum(count - 1, 1) / np.maximum(count, 1))
    return np.where(count > 1, errors, np.nan)


def choose(table: Table) -> int:
    """Return the setting to use: of those that cannot be told from the best, the cheapest.

    Cannot be told: the paired difference to the best is within one standard error. Cheapest: the
    fewest context tokens, then the highest objective, then the first: as ``choose_winner`` does
    with trials.
    """
    objective = np.where(table.is_allowed, table.objective, -np.inf)
    best = int(objective.argmax())
    margin = ROUNDING * max(abs(float(objective[best])), 1.0)
    reach = np.nan_to_num(table.errors(best)) + margin
    is_good = objective >= objective[best] - reach
    cheapest = np.where(is_good, table.tokens, np.inf)
    is_chosen = is_good & (cheapest <= cheapest.min() * (1 + ROUNDING))
    return int(np.where(is_chosen, objective, -np.inf).argmax())
