"""Weights of ranks from an ablation by position, with their uncertainty."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from tuner.core.errors import InputError
from tuner.core.rankings import FloatArray
from tuner.stats.paired import degrees_of_freedom
from tuner.stats.pairs import check_share, is_constant, largest
from tuner.stats.rank_correlation import by_cluster
from tuner.stats.resampling import Interval


@dataclass(frozen=True)
class FittedDiscount:
    """What a relevant passage is worth at each rank, in units of what it is at rank 1.

    Attributes:
        ranks: those that were tried, rising, the first is 1; ``gains`` the mean gain at each, and
            ``gain_intervals`` where it lies.
        weights: of every rank from 1 to the last that was tried, from 0 up; the first is 1. Those
            between lie on a line. Empty where the gain at rank 1 is not clearly above 0.
        intervals: of each weight; that of the first has no width, as it is the unit.
        queries: how many clusters of queries.
    """

    ranks: tuple[int, ...]
    gains: tuple[float, ...]
    gain_intervals: tuple[Interval, ...]
    weights: tuple[float, ...]
    intervals: tuple[Interval, ...]
    queries: int


def fit_discount_with_intervals(
    gains: FloatArray,
    ranks: Sequence[int],
    *,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> FittedDiscount:
    """Fit weights to ``gains``, shape (queries, ranks): what each query gains at each rank.

    A weight is the ratio of two means over queries, that of its rank's gains and of rank 1's; its
    interval is Fieller's (1954), which is exact for normal means and knows that both are of the
    same queries: all w for which mean(gain - w * gain at 1) cannot be told from 0 by a t-test, with
    the degrees of freedom of ``degrees_of_freedom``. Ends below 0 are 0. Queries of one of
    ``clusters`` count as one.

    >>> gains = np.array([[1.0, 0.4], [0.8, 0.6], [1.2, 0.5], [1.0, 0.5]])
    >>> fitted = fit_discount_with_intervals(gains, [1, 3])
    >>> [round(weight, 3) for weight in fitted.weights]
    [1.0, 0.75, 0.5]

    Raises:
        InputError: the shapes do not fit, rank 1 is not the first, or there is one query only.
    """
    check_share("confidence", confidence)
    gains = np.asarray(gains, dtype=np.float64)
    if gains.ndim != 2 or gains.shape[1] != len(ranks):
        raise InputError(f"gains of shape {gains.shape} for {len(ranks)} ranks")
    if list(ranks) != sorted(set(ranks)) or not ranks or ranks[0] != 1:
        raise InputError(f"ranks {list(ranks)}: they must rise, and the first must be 1")
    if not np.isfinite(gains).all():
        raise InputError("a gain is not a finite number; leave that query out")
    if clusters is not None:
        gains = np.stack([by_cluster(column, clusters) for column in gains.T], axis=1)
    if len(gains) < 2:
        raise InputError(f"{len(gains)} query with a value at each rank; at least 2 are needed")
    means = gains.mean(axis=0)
    around = tuple(_mean_interval(column, confidence) for column in gains.T)
    weights: tuple[float, ...] = ()
    intervals: tuple[Interval, ...] = ()
    if around[0][0] > 0.0:
        every = np.arange(1.0, ranks[-1] + 1.0)
        fitted = np.interp(every, ranks, np.maximum(means, 0.0) / means[0])
        weights = tuple(map(float, fitted))
        at_each = np.stack([np.interp(every, ranks, row) for row in gains])
        intervals = tuple(
            (1.0, 1.0) if place == 0 else _fieller(at_each[:, place], gains[:, 0], confidence)
            for place in range(len(every))
        )
    return FittedDiscount(
        tuple(ranks), tuple(map(float, means)), around, weights, intervals, len(gains)
    )


def _mean_interval(values: FloatArray, confidence: float) -> Interval:
    """Return Student's interval of a mean, shape (n,); of no width where all are the same."""
    from scipy import stats

    mean = float(values.mean())
    if is_constant(values, magnitude=largest(values)):
        return mean, mean
    error = float(values.std(ddof=1)) / math.sqrt(values.size)
    t = float(stats.t.ppf(0.5 + confidence / 2.0, degrees_of_freedom(values)))
    return mean - t * error, mean + t * error


def _fieller(above: FloatArray, below: FloatArray, confidence: float) -> Interval:
    """Return the interval of mean(above) / mean(below), cut at 0; the second is clearly positive.

    The ends solve (b^2 - c s_bb) w^2 - 2 (a b - c s_ab) w + a^2 - c s_aa = 0, with means a and b,
    and c = t^2 / n.
    """
    from scipy import stats

    n = below.size
    a, b = float(above.mean()), float(below.mean())
    left = above - a / b * below
    if is_constant(left, magnitude=largest(above, below)):
        return max(a / b, 0.0), max(a / b, 0.0)
    t = float(stats.t.ppf(0.5 + confidence / 2.0, degrees_of_freedom(left)))
    covariance = np.cov(above, below)
    c = t**2 / n
    square = b**2 - c * covariance[1, 1]
    if square <= 0.0:  # by the degrees of freedom here the unit itself may be 0
        return 0.0, math.inf
    middle = a * b - c * covariance[0, 1]
    root = math.sqrt(max(middle**2 - square * (a**2 - c * covariance[0, 0]), 0.0))
    return max((middle - root) / square, 0.0), max((middle + root) / square, 0.0)
