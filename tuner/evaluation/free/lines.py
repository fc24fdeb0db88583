"""Mixed scores as lines in one weight, and which of them can be among the best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tuner.core.rankings import BoolArray, FloatArray

# Weights at which the best are looked at, to leave out what never comes near them: few of all, then
# more of what is left.
_LOOKS = (4, 17)
# Below all scores, for what is not there; its line crosses no other.
_NOWHERE = -1e12


@dataclass(frozen=True, eq=False)
class Lines:
    """Scores that are lines in one weight: ``score = intercept + slope * weight``.

    Attributes:
        intercept, slope: shape (queries, pool); of equal scores the first column is ranked first.
        is_there: same shape, which columns hold a document.
        gains: same shape, their grades; 0 for those that are not relevant.
        tokens: same shape, those of each passage.
        low, high: the range of the weight.
    """

    intercept: FloatArray
    slope: FloatArray
    is_there: BoolArray
    gains: FloatArray
    tokens: FloatArray
    low: float
    high: float

    def near_the_top(self, depth: int) -> Lines:
        """Return the lines that may be among the best ``depth``; see ``nearer_the_top``."""
        near = self
        for looks in _LOOKS:
            near = near.nearer_the_top(depth, looks)
        return near

    def nearer_the_top(self, depth: int, looks: int) -> Lines:
        """Return the lines that may be among the best ``depth`` of their query, and perhaps more.

        Between two weights the documents that are best at one stay above the lowest of their own
        scores at both; a line that is below that at both ends cannot be among the best between.
        """
        usable = np.where(self.is_there, self.intercept, _NOWHERE)
        slope = np.where(self.is_there, self.slope, 0.0)
        depth = min(depth, usable.shape[1])
        weights = np.linspace(self.low, self.high, looks)
        scores = [usable + slope * weight for weight in weights]
        least = [_least_of_best(one, depth) for one in scores]
        is_near = np.zeros(usable.shape, dtype=bool)
        for place in range(looks - 1):
            here, there = scores[place], scores[place + 1]
            low_here, low_there = least[place], least[place + 1]
            later = np.where(here >= low_here, there, np.inf).min(axis=1, keepdims=True)
            before = np.where(there >= low_there, here, np.inf).min(axis=1, keepdims=True)
            is_near |= ((here >= low_here) | (there >= later)) & (
                (here >= before) | (there >= low_there)
            )
        is_near &= self.is_there
        width = max(int(is_near.sum(axis=1).max(initial=0)), 1)
        columns = np.argsort(~is_near, axis=1, kind="stable")[:, :width]
        kept = np.take_along_axis(is_near, columns, axis=1)

        def pick(values: FloatArray, fill: float) -> FloatArray:
            return np.where(kept, np.take_along_axis(values, columns, axis=1), fill)

        return Lines(
            pick(usable, _NOWHERE),
            pick(slope, 0.0),
            kept,
            pick(self.gains, 0.0),
            pick(self.tokens, 0.0),
            self.low,
            self.high,
        )


def _least_of_best(scores: FloatArray, depth: int) -> FloatArray:
    """Return the lowest of the best ``depth`` scores of each row, shape (rows, 1)."""
    place = scores.shape[1] - depth
    least: FloatArray = np.partition(scores, place, axis=1)[:, place, None]
    return least
