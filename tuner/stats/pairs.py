"""Two arrays of per-query values, matched query by query and checked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.core.errors import InputError
from tuner.core.rankings import FloatArray

# Sums in another order differ in the last digits, and trec_eval itself is only known to 1e-9.
ROUNDING = 1e-12

# What a resampling step holds at once: 16 MB of float64 whatever the number of queries.
VALUES_AT_ONCE = 2_000_000


@dataclass(frozen=True, eq=False)
class Pairs:
    """Queries for which both systems have a value, in the order given.

    Attributes:
        treatment: shape (queries,).
        control: shape (queries,).
        difference: ``treatment - control``, exactly 0 where the two differ by rounding only.
        undefined: how many queries were left out because a value is NaN.
    """

    treatment: FloatArray
    control: FloatArray
    difference: FloatArray
    undefined: int

    @property
    def n(self) -> int:
        """Return the number of queries with two values."""
        return int(self.difference.size)


def defined_pairs(treatment: npt.ArrayLike, control: npt.ArrayLike) -> Pairs:
    """Match ``treatment[i]`` with ``control[i]`` and leave out each pair that has a NaN.

    Two values closer than 1e-12, or than 1e-12 of the larger one, are equal: the rest is rounding.

    >>> pairs = defined_pairs([0.1 + 0.2, 0.5, float("nan")], [0.3, 0.25, 1.0])
    >>> pairs.difference.tolist(), pairs.undefined
    ([0.0, 0.25], 1)

    Raises:
        InputError: an array is not one-dimensional or holds an infinity, or the lengths differ.
    """
    left = _values(treatment, "treatment")
    right = _values(control, "control")
    if left.size != right.size:
        raise InputError(
            f"the treatment has {left.size} values and the control {right.size}; give one value a "
            "query for the same queries in the same order, NaN where a metric is undefined"
        )
    is_defined = ~(np.isnan(left) | np.isnan(right))
    left, right = left[is_defined], right[is_defined]
    difference = without_rounding(left - right, left, right)
    return Pairs(left, right, difference, int(np.count_nonzero(~is_defined)))


def without_rounding(difference: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
    """Return ``difference``, exactly 0 where ``left`` and ``right`` differ by rounding only."""
    magnitude = np.maximum(np.maximum(np.abs(left), np.abs(right)), 1.0)
    return np.where(np.abs(difference) <= ROUNDING * magnitude, 0.0, difference)


def is_constant(values: FloatArray, *, magnitude: float) -> bool:
    """Say whether all values are the same but for rounding in numbers of size ``magnitude``."""
    return values.size == 0 or float(np.ptp(values)) <= ROUNDING * max(magnitude, 1.0)


def largest(*arrays: FloatArray) -> float:
    """Return the largest absolute value in any of the arrays; 0 where all are empty."""
    return max((float(np.abs(array).max()) for array in arrays if array.size), default=0.0)


def check_share(name: str, value: float) -> None:
    """Refuse a value that is not strictly between 0 and 1.

    Raises:
        InputError: it is not.
    """
    if not 0.0 < value < 1.0:
        raise InputError(f"{name}={value!r} must lie between 0 and 1, such as 0.95 or 0.05")


def check_draws(name: str, count: int) -> None:
    """Refuse a number of random draws that is neither 0 (leave it out) nor at least 100.

    Raises:
        InputError: so few draws would be noise.
    """
    if count != 0 and count < 100:
        raise InputError(f"{name}={count}: give at least 100, or 0 to leave that part out")


def _values(values: npt.ArrayLike, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise InputError(
            f"the {name} has shape {array.shape}; give a one-dimensional array, one value a query"
        )
    if np.isinf(array).any():
        raise InputError(
            f"the {name} holds an infinite value for query {int(np.isinf(array).argmax())} "
            "(counted from 0); write NaN where a value is undefined"
        )
    return array
