"""Tests and intervals of a mean that draw signs or queries at random."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np

from tuner.core.rankings import FloatArray
from tuner.stats.pairs import VALUES_AT_ONCE, is_constant, largest

_BELOW = "scipy.stats."


def whole_stats() -> Any:
    """Return scipy.stats; where an earlier import of it ended half way, import it anew.

    Python forgets a package whose import ends early, as by Ctrl-C in a notebook, but not those of
    its modules that were ready. At the next import they become part of the new package and still
    hold the old half: "module 'scipy.stats' has no attribute 'quantile'", when a search was paid.
    """
    import scipy.stats

    below = [name for name in list(sys.modules) if name.startswith(_BELOW)]
    own = (name.removeprefix(_BELOW) for name in below)
    # A module that was imported together with its package is an attribute of it.
    if all(hasattr(scipy.stats, name) for name in own if "." not in name):
        return scipy.stats
    for name in (*below, "scipy.stats"):
        sys.modules.pop(name, None)
    del scipy.stats
    return importlib.import_module("scipy.stats")


Interval = tuple[float, float]


def sign_flip_p(difference: FloatArray, *, seed: int, permutations: int = 9_999) -> float | None:
    """Return the two-sided p-value of the sign-flip permutation test of a mean of 0.

    If neither system is better, each difference could as well have had the other sign. Of all 2^m
    signs of the m differences other than 0 (the others do not change a sum), the p-value is twice
    the share whose sum is at least as extreme, on the more extreme side. All are tried where
    2^m <= ``permutations``; otherwise that many are drawn and the observed signs count as one more
    (Phipson and Smyth 2010). None where there is no difference to flip or ``permutations`` is 0.

    d = 1, 2, 3: of 8 sums only +6 reaches +6, so p = 2 * 1/8.

    >>> sign_flip_p(np.array([1.0, 2.0, 3.0]), seed=0)
    0.25
    """
    if permutations == 0 or difference.size == 0:
        return None
    moved = difference[difference != 0.0]
    if moved.size < 2:
        return 1.0  # With one difference both of its signs are as extreme.
    stats = whole_stats()
    result = stats.permutation_test(
        (moved,),
        _mean,
        permutation_type="samples",
        vectorized=True,
        n_resamples=permutations,
        batch=_batch(moved.size),
        rng=np.random.default_rng(seed),
    )
    return float(result.pvalue)


def bca_interval(
    values: FloatArray, *, seed: int, confidence: float = 0.95, resamples: int = 9_999
) -> Interval | None:
    """Return the BCa bootstrap interval of the mean of ``values``, shape (n,).

    Efron 1987, by scipy. None where ``resamples`` is 0, n < 2 or all values are the same: a
    resample of equal values shows no spread.
    """
    if resamples == 0 or values.size < 2 or is_constant(values, magnitude=largest(values)):
        return None
    stats = whole_stats()
    interval = stats.bootstrap(
        (values,),
        _mean,
        method="BCa",
        vectorized=True,
        n_resamples=resamples,
        confidence_level=confidence,
        batch=_batch(values.size),
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return float(interval.low), float(interval.high)


def _mean(values: FloatArray, axis: int) -> FloatArray:
    return np.asarray(values.mean(axis=axis))


def _batch(size: int) -> int:
    return max(1, VALUES_AT_ONCE // size)
