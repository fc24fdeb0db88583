"""Mixed scores as lines in one weight, and which of them can be among the best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tuner.core.rankings import BoolArray, FloatArray, IntArray

# Weights at which the best are looked at, to leave out what never comes near them: few of all, then
# more of what is left.
_LOOKS = (4, 17)
# So near to an end, as a share of the range, nothing is looked for.
_MARGIN = 1e-8
# Queries that are looked at together: those with as many documents.
_BLOCK = 32
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
        """Return the lines that may be among the best ``depth`` of their query, and perhaps more.

        Between two weights the documents that are best at one stay above the lowest of their own
        scores at both; a line that is below that at both ends cannot be among the best between.
        """
        near = self
        for looks in _LOOKS:
            near = near._kept(near._is_near(depth, looks))
        return near

    def _is_near(self, depth: int, looks: int) -> BoolArray:
        # At an end a leg is left out, and all that only it found is equal: that is looked at apart.
        margin = _MARGIN * (self.high - self.low)
        weights = np.linspace(self.low + margin, self.high - margin, looks)
        counts = self.is_there.sum(axis=1)
        order = np.argsort(counts, kind="stable")
        is_near = np.zeros(self.is_there.shape, dtype=bool)
        for start in range(0, len(order), _BLOCK):
            rows = order[start : start + _BLOCK]
            width = self._reach(rows)
            if not width:
                continue
            is_there = self.is_there[rows, :width]
            usable = np.where(is_there, self.intercept[rows, :width], _NOWHERE)
            slope = np.where(is_there, self.slope[rows, :width], 0.0)
            found = _near_between(usable, slope, weights, min(depth, width))
            is_near[rows, :width] = found & is_there
        return is_near

    def _reach(self, rows: IntArray) -> int:
        """Return how many columns hold all that is there in some rows."""
        columns = np.flatnonzero(self.is_there[rows].any(axis=0))
        return int(columns[-1]) + 1 if columns.size else 0

    def _kept(self, is_near: BoolArray) -> Lines:
        """Return some of the lines, those of each query at the left of its row."""
        usable = np.where(self.is_there, self.intercept, _NOWHERE)
        slope = np.where(self.is_there, self.slope, 0.0)
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


def _near_between(
    intercept: FloatArray, slope: FloatArray, weights: FloatArray, depth: int
) -> BoolArray:
    """Say which lines may be among the best ``depth`` somewhere between the weights."""
    is_near = np.zeros(intercept.shape, dtype=bool)
    here = intercept + slope * weights[0]
    low_here = _least_of_best(here, depth)
    for weight in weights[1:]:
        there = intercept + slope * weight
        low_there = _least_of_best(there, depth)
        is_best_here, is_best_there = here >= low_here, there >= low_there
        later = np.where(is_best_here, there, np.inf).min(axis=1, keepdims=True)
        before = np.where(is_best_there, here, np.inf).min(axis=1, keepdims=True)
        is_near |= (is_best_here | (there >= later)) & ((here >= before) | is_best_there)
        here, low_here = there, low_there
    return is_near


def _least_of_best(scores: FloatArray, depth: int) -> FloatArray:
    """Return the lowest of the best ``depth`` scores of each row, shape (rows, 1)."""
    place = scores.shape[1] - depth
    least: FloatArray = np.partition(scores, place, axis=1)[:, place, None]
    return least
