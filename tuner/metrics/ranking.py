"""Ranking metrics: pure functions from a batch of judged rankings to one value a query.

Definitions and rounding follow trec_eval. A query without any relevant document is undefined (NaN).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tuner.core.errors import MetricError
from tuner.core.rankings import BoolArray, FloatArray
from tuner.metrics.base import Judged, MetricFamily


def recall(judged: Judged, cutoff: int) -> FloatArray:
    """Return the share of all relevant documents that are among the first ``cutoff``.

    With more relevant documents than ``cutoff`` it cannot reach 1; see ``recall_cap``.
    """
    return _found(judged, cutoff) / _relevant_count(judged)


def recall_cap(judged: Judged, cutoff: int) -> FloatArray:
    """Return found / min(cutoff, relevant): recall against what ``cutoff`` ranks could hold."""
    return _found(judged, cutoff) / np.minimum(_relevant_count(judged), cutoff)


def precision(judged: Judged, cutoff: int) -> FloatArray:
    """Return found / cutoff, also where fewer than ``cutoff`` documents were retrieved."""
    return np.where(judged.is_defined, _found(judged, cutoff) / cutoff, np.nan)


def f1(judged: Judged, cutoff: int) -> FloatArray:
    """Return 2PR / (P + R) of the query's own precision and recall; 0 where both are 0.

    In counts: 2 found / (cutoff + relevant).
    """
    return 2.0 * _found(judged, cutoff) / (_relevant_count(judged) + cutoff)


def success(judged: Judged, cutoff: int) -> FloatArray:
    """Return 1 where a relevant document is among the first ``cutoff``, else 0."""
    return np.where(judged.is_defined, _top_hits(judged, cutoff).any(axis=1), np.nan)


def mrr(judged: Judged, cutoff: int | None = None) -> FloatArray:
    """Return 1 / rank of the first relevant document; 0 if there is none up to ``cutoff``."""
    hits = _top_hits(judged, cutoff)
    first = hits.argmax(axis=1)
    has_hit = hits.any(axis=1)
    return _where_defined(judged, np.where(has_hit, 1.0 / (first + 1.0), 0.0))


def average_precision(judged: Judged, cutoff: int | None = None) -> FloatArray:
    """Return the sum of precision@rank over the ranks with a relevant document / all relevant.

    Its mean over queries is MAP.
    """
    hits = _top_hits(judged, cutoff)
    ranks = np.arange(1.0, hits.shape[1] + 1.0)
    return _total(hits * np.cumsum(hits, axis=1) / ranks) / _relevant_count(judged)


def ndcg(judged: Judged, cutoff: int | None = None) -> FloatArray:
    """Return DCG / ideal DCG with gain = grade and discount 1 / log2(rank + 1).

    The ideal ranking comes from all judgements of the query, cut at ``cutoff`` (Jarvelin and
    Kekalainen 2002 with trec_eval's discount): [0, 3, 0] retrieved where three documents have
    grade 3 gives (3 * .631) / (3 * 2.131) = .296.
    """
    gains = _top(judged, judged.gains, cutoff)
    return _normalised_dcg(judged, gains, judged.ideal[:, :cutoff])


def ndcg_exp(judged: Judged, cutoff: int | None = None) -> FloatArray:
    """Return nDCG with gain = 2^grade - 1 (Burges et al. 2005)."""
    gains = _top(judged, judged.gains, cutoff)
    ideal = judged.ideal[:, :cutoff]
    # Both sums are divided by 2^(highest grade): exact, and no overflow for grades above 1,023.
    highest = ideal[:, :1]
    least = np.exp2(-highest)
    return _normalised_dcg(
        judged, np.exp2(gains - highest) - least, np.exp2(ideal - highest) - least
    )


METRICS: Mapping[str, MetricFamily] = {
    "recall": MetricFamily(recall, "required", "share of the relevant documents found"),
    "recall_cap": MetricFamily(
        recall_cap, "required", "recall against the most that k ranks can hold"
    ),
    "precision": MetricFamily(precision, "required", "share of the k ranks that are relevant"),
    "f1": MetricFamily(f1, "required", "harmonic mean of precision@k and recall@k"),
    "success": MetricFamily(success, "required", "1 if any relevant document was found"),
    "mrr": MetricFamily(mrr, "optional", "1 / rank of the first relevant document"),
    "map": MetricFamily(average_precision, "none", "mean of the precisions at the relevant ranks"),
    "ndcg": MetricFamily(ndcg, "optional", "discounted gain against the ideal, gain = grade"),
    "ndcg_exp": MetricFamily(
        ndcg_exp, "optional", "discounted gain against the ideal, gain = 2^grade - 1"
    ),
}


def _top(judged: Judged, values: FloatArray, cutoff: int | None) -> FloatArray:
    """Return the first ``cutoff`` columns, at least one, after checking that they are known."""
    _check_cutoff(judged, cutoff)
    return values[:, :cutoff] if values.shape[1] else np.zeros((len(values), 1))


def _top_hits(judged: Judged, cutoff: int | None) -> BoolArray:
    _check_cutoff(judged, cutoff)
    hits = judged.hits
    return hits[:, :cutoff] if hits.shape[1] else np.zeros((len(hits), 1), dtype=np.bool_)


def _check_cutoff(judged: Judged, cutoff: int | None) -> None:
    if cutoff is not None and cutoff < 1:
        raise MetricError(f"the cut-off is {cutoff}; it must be at least 1")
    if judged.cut is not None and (cutoff is None or cutoff > judged.cut):
        asked = "the whole ranking" if cutoff is None else f"a cut-off of {cutoff}"
        raise MetricError(
            f"the rankings were judged down to rank {judged.cut} only, "
            f"too short for {asked}; judge them with a greater depth"
        )


def _found(judged: Judged, cutoff: int) -> FloatArray:
    found: FloatArray = np.count_nonzero(_top_hits(judged, cutoff), axis=1).astype(np.float64)
    return found


def _relevant_count(judged: Judged) -> FloatArray:
    return _where_defined(judged, judged.relevant_count.astype(np.float64))


def _where_defined(judged: Judged, values: FloatArray) -> FloatArray:
    return np.where(judged.is_defined, values, np.nan)


def _total(values: FloatArray) -> FloatArray:
    # Strictly left to right, unlike sum() and dot products: zeros at the end or the shape of the
    # batch then change no bit, so a perfect ranking is exactly 1 and equal rankings tie exactly.
    total: FloatArray = np.cumsum(values, axis=1)[:, -1]
    return total


def _normalised_dcg(judged: Judged, gains: FloatArray, ideal: FloatArray) -> FloatArray:
    width = max(gains.shape[1], ideal.shape[1])
    discounts = 1.0 / np.log2(np.arange(2.0, width + 2.0))
    dcg = _total(gains * discounts[: gains.shape[1]])
    ideal_dcg = _total(ideal * discounts[: ideal.shape[1]])
    # Fractional grades in a nearly ideal order can round to an ulp above 1.
    return np.minimum(dcg / _where_defined(judged, ideal_dcg), 1.0)
