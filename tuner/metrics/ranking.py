"""Ranking metrics: pure functions from a batch of judged rankings to one value a query.

Definitions and rounding follow trec_eval. A query without any relevant document is undefined (NaN).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tuner.core.rankings import FloatArray
from tuner.metrics.base import Judged, MetricFamily
from tuner.metrics.judgements import relevant_count, top_gains, top_hits, total, where_defined


def recall(judged: Judged, cutoff: int | None) -> FloatArray:
    """Return the share of all relevant documents that are among the first ``cutoff``.

    With more relevant documents than ``cutoff`` it cannot reach 1; see ``recall_cap``.
    """
    return _found(judged, cutoff) / relevant_count(judged)


def recall_cap(judged: Judged, cutoff: int) -> FloatArray:
    """Return found / min(cutoff, relevant): recall against what ``cutoff`` ranks could hold."""
    return _found(judged, cutoff) / np.minimum(relevant_count(judged), cutoff)


def precision(judged: Judged, cutoff: int) -> FloatArray:
    """Return found / cutoff, also where fewer than ``cutoff`` documents were retrieved."""
    return np.where(judged.is_defined, _found(judged, cutoff) / cutoff, np.nan)


def f1(judged: Judged, cutoff: int) -> FloatArray:
    """Return 2PR / (P + R) of the query's own precision and recall; 0 where both are 0.

    In counts: 2 found / (cutoff + relevant).
    """
    return 2.0 * _found(judged, cutoff) / (relevant_count(judged) + cutoff)


def success(judged: Judged, cutoff: int) -> FloatArray:
    """Return 1 where a relevant document is among the first ``cutoff``, else 0."""
    return np.where(judged.is_defined, top_hits(judged, cutoff).any(axis=1), np.nan)


def mrr(judged: Judged, cutoff: int | None = None) -> FloatArray:
    """Return 1 / rank of the first relevant document; 0 if there is none up to ``cutoff``."""
    hits = top_hits(judged, cutoff)
    first = hits.argmax(axis=1)
    has_hit = hits.any(axis=1)
    return where_defined(judged, np.where(has_hit, 1.0 / (first + 1.0), 0.0))


def average_precision(judged: Judged, cutoff: int | None = None) -> FloatArray:
    """Return the sum of precision@rank over the ranks with a relevant document / all relevant.

    Its mean over queries is MAP.
    """
    hits = top_hits(judged, cutoff)
    ranks = np.arange(1.0, hits.shape[1] + 1.0)
    return total(hits * np.cumsum(hits, axis=1) / ranks) / relevant_count(judged)


def ndcg(judged: Judged, cutoff: int | None = None) -> FloatArray:
    """Return DCG / ideal DCG with gain = grade and discount 1 / log2(rank + 1).

    The ideal ranking comes from all judgements of the query, cut at ``cutoff`` (Jarvelin and
    Kekalainen 2002 with trec_eval's discount): [0, 3, 0] retrieved where three documents have
    grade 3 gives (3 * .631) / (3 * 2.131) = .296.
    """
    gains = top_gains(judged, cutoff)
    return _normalised_dcg(judged, gains, judged.ideal[:, :cutoff])


def ndcg_exp(judged: Judged, cutoff: int | None = None) -> FloatArray:
    """Return nDCG with gain = 2^grade - 1 (Burges et al. 2005)."""
    gains = top_gains(judged, cutoff)
    ideal = judged.ideal[:, :cutoff]
    # Both sums are divided by 2^(highest grade): exact, and no overflow for grades above 1,023.
    highest = ideal[:, :1]
    least = np.exp2(-highest)
    return _normalised_dcg(
        judged, np.exp2(gains - highest) - least, np.exp2(ideal - highest) - least
    )


METRICS: Mapping[str, MetricFamily] = {
    "recall": MetricFamily(
        recall, "required", "share of the relevant documents that are among the first k"
    ),
    "recall_cap": MetricFamily(
        recall_cap,
        "required",
        "like recall@k, but of the most that k ranks can hold: found / min(k, relevant)",
    ),
    "precision": MetricFamily(
        precision, "required", "share of the k ranks that hold a relevant document"
    ),
    "f1": MetricFamily(f1, "required", "harmonic mean of precision@k and recall@k"),
    "success": MetricFamily(
        success, "required", "1 if a relevant document is among the first k, else 0"
    ),
    "mrr": MetricFamily(
        mrr, "optional", "1 / rank of the first relevant document; 0 if none was found"
    ),
    "map": MetricFamily(
        average_precision,
        "none",
        "mean of precision@rank over the relevant documents; one that was not found counts 0",
    ),
    "ndcg": MetricFamily(
        ndcg, "optional", "sum of grade / log2(rank + 1), divided by that of the best ranking"
    ),
    "ndcg_exp": MetricFamily(
        ndcg_exp, "optional", "like ndcg, with 2^grade - 1 in place of the grade"
    ),
}


def _found(judged: Judged, cutoff: int | None) -> FloatArray:
    found: FloatArray = np.count_nonzero(top_hits(judged, cutoff), axis=1).astype(np.float64)
    return found


def _normalised_dcg(judged: Judged, gains: FloatArray, ideal: FloatArray) -> FloatArray:
    width = max(gains.shape[1], ideal.shape[1])
    discounts = 1.0 / np.log2(np.arange(2.0, width + 2.0))
    dcg = total(gains * discounts[: gains.shape[1]])
    ideal_dcg = total(ideal * discounts[: ideal.shape[1]])
    # Fractional grades in a nearly ideal order can round to an ulp above 1.
    return np.minimum(dcg / where_defined(judged, ideal_dcg), 1.0)
