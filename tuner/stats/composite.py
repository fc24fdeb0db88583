"""The weights of a mean of metrics that goes best with a quality: fitted, and tested elsewhere."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from tuner.core.errors import InputError
from tuner.core.rankings import BoolArray, FloatArray
from tuner.stats.paired import PairedComparison, compare_paired
from tuner.stats.pairs import ROUNDING
from tuner.stats.rank_correlation import by_cluster, constant_over_configurations, tau_b


def fit_weights(metrics: FloatArray, quality: FloatArray) -> FloatArray | None:
    """Return weights from 0 up whose sum is 1, shape (metrics,); None where no metric helps.

    ``metrics`` has shape (metrics, configurations, queries), ``quality`` (configurations, queries);
    a query with an undefined value is left out. Least squares without negative weights (Lawson and
    Hanson 1974), each value less its query's mean over configurations: an easy query tells nothing.

    >>> one, other = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> fit_weights(np.stack([one, other]), 0.2 * one + 0.6 * other + [5.0, 7.0]).round(3).tolist()
    [0.25, 0.75]

    Raises:
        InputError: the shapes do not fit.
    """
    from scipy.optimize import nnls

    metrics, quality = (np.asarray(one, dtype=np.float64) for one in (metrics, quality))
    if metrics.ndim != 3 or metrics.shape[1:] != quality.shape:
        raise InputError(
            "metrics must have the shape (metrics, configurations, queries), and quality the last "
            f"two of it; got {metrics.shape} and {quality.shape}"
        )
    is_whole = ~(np.isnan(metrics).any(axis=(0, 1)) | np.isnan(quality).any(axis=0))
    if not is_whole.any():
        return None
    metrics, quality = metrics[:, :, is_whole], quality[:, is_whole]
    centred = metrics - metrics.mean(axis=1, keepdims=True)
    centred[np.abs(centred) <= ROUNDING] = 0.0  # rounding could be given any weight
    wanted = quality - quality.mean(axis=0)
    found = nnls(centred.reshape(len(metrics), -1).T, wanted.ravel())[0]
    total = float(found.sum())
    return None if total <= ROUNDING else np.asarray(found / total)


def query_taus(metric: FloatArray, quality: FloatArray) -> FloatArray:
    """Return tau-b of each query, shape (queries,), to compare metrics by on the same queries.

    NaN where the quality does not vary or a value is undefined; 0 where the metric alone does not
    vary: it says nothing then.
    """
    taus = tau_b(metric, quality)
    is_whole = ~np.isnan(metric + quality).any(axis=0)
    says_nothing = is_whole & np.isnan(taus)
    says_nothing[is_whole] &= ~constant_over_configurations(quality[:, is_whole])
    return np.where(says_nothing, 0.0, taus)


def compare_taus(
    first: FloatArray,
    second: FloatArray,
    quality: FloatArray,
    clusters: Sequence[Hashable],
    *,
    seed: int,
    confidence: float = 0.95,
) -> PairedComparison:
    """Compare two metrics by ``query_taus``, paired; queries of one cluster count as one.

    All three have shape (configurations, queries).
    """
    values = [by_cluster(query_taus(one, quality), clusters) for one in (first, second)]
    compared = compare_paired(
        *values, seed=seed, confidence=confidence, permutations=0, resamples=0
    )
    return compared.within(2.0)


@dataclass(frozen=True)
class Halves:
    """Which queries weights are fitted on, shape (queries,); the others are to test them."""

    is_to_fit: BoolArray

    @classmethod
    def drawn(cls, clusters: Sequence[Hashable], *, seed: int) -> Halves:
        """Draw halves of equally many clusters; those of one cluster stay together."""
        units = list(dict.fromkeys(clusters))
        order = np.random.default_rng(seed).permutation(len(units))
        fitted = {units[place] for place in order[: len(units) // 2]}
        return cls(np.array([cluster in fitted for cluster in clusters], dtype=bool))
