"""What many settings that one answer tells of are worth, evaluated one by one.

The best is taken. Rules that look for a safer one (the middle of a plateau, a mean over neighbours,
what is best when queries are drawn anew, the cheapest within a standard error) lose as much or more
on queries that were held out: see experiments/search_quality, free_choice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tuner.core.rankings import FloatArray

# So often queries are drawn anew, to see what chance has a part in.
DRAWS = 200


@dataclass(frozen=True, eq=False)
class Table:
    """What settings are worth; every array has shape (settings,), or (settings, queries).

    Attributes:
        objective: higher is better.
        violation: by how much constraints are broken; 0: not.
        by_query: the objective of each query, NaN where undefined.
    """

    objective: FloatArray
    violation: FloatArray
    by_query: FloatArray

    def errors(self, at: int) -> FloatArray:
        """Return the standard errors of the paired differences to one setting; NaN below two."""
        return paired_errors(self.by_query, self.by_query[at])

    @property
    def best(self) -> int:
        """Return the best of those that break constraints least: not at all, where there are such.

        The first of equals, which for prefixes is the one that returns least.
        """
        is_allowed = self.violation <= max(float(self.violation.min()), 0.0)
        return int(np.where(is_allowed, self.objective, -np.inf).argmax())


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


def luck_of(values: FloatArray, draws: int = DRAWS) -> float:
    """Return by how much the best of many settings is worth less on other queries than on its own.

    ``values`` has shape (settings, queries). As many queries as there are are drawn anew, the best
    setting by them is looked up on those that were not drawn, and that is taken off what the best
    is worth on all (BBC-CV, Tsamardinos, Greasidou and Borboudakis 2018). At least 0.
    """
    known = values[:, ~np.isnan(values).any(axis=0)]
    n = known.shape[1]
    if n < 2 or len(known) < 2:
        return 0.0
    drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1.0 / n), size=draws)
    left = (drawn == 0).astype(np.float64)
    left = left[left.any(axis=1)]
    drawn = drawn[(drawn == 0).any(axis=1)]
    best = (drawn @ known.T).argmax(axis=1)
    elsewhere = (left * known[best]).sum(axis=1) / left.sum(axis=1)
    return max(float(known.mean(axis=1).max() - elsewhere.mean()), 0.0)
