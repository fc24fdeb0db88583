"""Context precision: how early in the context the relevant passages stand.

Two different things go by that name; here each has its own. ``context_precision`` (RAGAS) averages
the precisions at the relevant ranks, so it does not ask for what was missed.
``discounted_precision`` compares with a context whose every passage is of the highest grade, so
even a perfect ranking can score below 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from tuner.core.errors import MetricError, did_you_mean
from tuner.core.rankings import FloatArray
from tuner.metrics.base import Judged, MetricFamily
from tuner.metrics.judgements import top_gains, top_hits, total, where_defined

Relevance = Literal["graded", "binary"]
Discount = str | Callable[[FloatArray], npt.ArrayLike] | Sequence[float] | FloatArray

DISCOUNTS: Mapping[str, Callable[[FloatArray], FloatArray]] = {
    "log": lambda ranks: 1.0 / np.log2(ranks + 1.0),
    "reciprocal": lambda ranks: 1.0 / ranks,
    "sqrt": lambda ranks: 1.0 / np.sqrt(ranks),
    "uniform": np.ones_like,
}
"""Weight of each rank, counted from 1."""


def context_precision(
    judged: Judged, cutoff: int | None, *, relevance: Relevance = "binary"
) -> FloatArray:
    """Return sum(P@rank * rel) / sum(rel) over the first ``cutoff`` ranks (RAGAS); 0 for no rel.

    Binary relevance is grade >= 1. Graded relevance is grade / the query's highest judged grade,
    and P@rank the mean relevance so far.

    [1, 1, 0] scores (1 + 2/2) / 2 = 1, [0, 1, 1] scores (1/2 + 2/3) / 2 = .583.
    """
    relevances = _relevances(judged, cutoff, relevance, None)
    ranks = np.arange(1.0, relevances.shape[1] + 1.0)
    earned = total(np.cumsum(relevances, axis=1) / ranks * relevances)
    found = total(relevances)
    values = np.divide(earned, found, out=np.zeros_like(found), where=found > 0)
    return where_defined(judged, np.minimum(values, 1.0))


def discounted_precision(
    judged: Judged,
    cutoff: int,
    *,
    discount: Discount = "log",
    relevance: Relevance = "graded",
    highest_grade: float | None = None,
) -> FloatArray:
    """Return sum(rel * weight) / sum(weight) over exactly ``cutoff`` ranks.

    ``rel`` is grade / ``highest_grade``, which by default is the highest grade that the query's
    judgements hold (grades above it count as it). ``discount`` is a name in ``DISCOUNTS``, a
    function of the ranks (1.0, 2.0, …), or a vector of at least ``cutoff`` weights, such as
    ``fit_discount`` returns. Ranks after the end of a short ranking earn nothing.

    [1, .5, 0] with the discount 1 / log2(rank + 1) scores (1 + .3155) / 2.1309 = .6173.

    Raises:
        MetricError: an unknown discount, too few weights, or weights that are negative, not finite
            or all 0.
    """
    relevances = _relevances(judged, cutoff, relevance, highest_grade)
    weights = rank_weights(discount, cutoff)
    earned = total(relevances * weights[: relevances.shape[1]])
    return where_defined(judged, np.minimum(earned / float(np.cumsum(weights)[-1]), 1.0))


def fitted_precision(
    judged: Judged, cutoff: int, *, discount: Discount | None = None
) -> FloatArray:
    """Return ``discounted_precision`` by weights of one's own, such as ``fit_discount`` returns.

    Raises:
        MetricError: no weights, or see ``discounted_precision``.
    """
    return discounted_precision(judged, cutoff, discount=_given(discount))


def check_fitted(discount: Discount | None, cutoff: int | None) -> None:
    """Refuse weights that do not reach down to the cut-off, or that are no weights.

    Raises:
        MetricError: see ``fitted_precision``.
    """
    rank_weights(_given(discount), cutoff or 1)


def rank_weights(discount: Discount, count: int) -> FloatArray:
    """Return the weights of the ranks 1 to ``count``, shape (count,).

    >>> rank_weights("reciprocal", 2).tolist()
    [1.0, 0.5]

    Raises:
        MetricError: see ``discounted_precision``.
    """
    if count < 1:
        raise MetricError(f"the cut-off is {count}; it must be at least 1")
    ranks = np.arange(1.0, count + 1.0)
    if isinstance(discount, str):
        if discount not in DISCOUNTS:
            raise MetricError(f"unknown discount {discount!r}{did_you_mean(discount, DISCOUNTS)}")
        return DISCOUNTS[discount](ranks)
    given = discount(ranks) if callable(discount) else discount
    weights = np.asarray(given, dtype=np.float64)[:count]
    if weights.shape != (count,):
        raise MetricError(f"the discount has {weights.size} weights for {count} ranks")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise MetricError("the discount's weights must be finite, from 0 up, and not all 0")
    return weights


def fit_discount(positions: npt.ArrayLike, contributions: npt.ArrayLike) -> FloatArray:
    """Return rank weights fitted to an ablation by position, the first being 1.

    Observation i: with the relevant passage at rank ``positions[i]`` (from 1), the answer gained
    ``contributions[i]``, in any unit. With one free weight a rank the least-squares fit is each
    rank's mean contribution, whatever the shape: for long contexts it is often a U. Means below 0
    become 0; ranks that were not tried, up to the last that was, lie on a line between their
    neighbours.

    >>> fit_discount([1, 1, 2, 4], [0.75, 1.25, 0.25, 0.75]).tolist()
    [1.0, 0.25, 0.5, 0.75]

    Raises:
        MetricError: no or unequally many observations, a position that is not a whole number from
            1 up, a contribution that is not finite, or none of rank 1 whose mean is above 0.
    """
    ranks = np.asarray(positions, dtype=np.float64)
    gains = np.asarray(contributions, dtype=np.float64)
    if ranks.ndim != 1 or ranks.shape != gains.shape or not ranks.size:
        raise MetricError(
            f"positions and contributions must be two lists of one length, at least 1; got shapes "
            f"{ranks.shape} and {gains.shape}"
        )
    if not np.isfinite(gains).all():
        raise MetricError("a contribution is not a finite number; leave that observation out")
    if not np.isfinite(ranks).all() or (ranks < 1).any() or (ranks != np.floor(ranks)).any():
        raise MetricError("positions are whole numbers from 1 up")
    places, inverse = np.unique(ranks, return_inverse=True)
    means = np.bincount(inverse, weights=gains) / np.bincount(inverse)
    if places[0] != 1 or not means[0] > 0:
        raise MetricError(
            "the weights are relative to rank 1, so it needs observations with a mean above 0"
        )
    every_rank = np.arange(1.0, places[-1] + 1.0)
    return np.asarray(np.interp(every_rank, places, np.maximum(means, 0.0) / means[0]))


def _given(discount: Discount | None) -> Discount:
    if discount is None:
        raise MetricError(
            "needs the weights of the ranks; write for example "
            "`context: {discount: [1, 0.6, 0.8]}` (tuner.metrics.context.fit_discount fits them)"
        )
    return discount


def _relevances(
    judged: Judged, cutoff: int | None, relevance: Relevance, highest_grade: float | None
) -> FloatArray:
    if relevance == "binary":
        return top_hits(judged, cutoff).astype(np.float64)
    if relevance != "graded":
        raise MetricError(f"relevance={relevance!r}; write 'graded' or 'binary'")
    gains = top_gains(judged, cutoff)
    highest_grade = judged.highest if highest_grade is None else highest_grade
    if highest_grade is not None:
        if not highest_grade >= judged.relevant_from:
            raise MetricError(
                f"highest_grade={highest_grade}; it must be at least {judged.relevant_from:g}"
            )
        return np.minimum(gains / highest_grade, 1.0)
    highest = where_defined(judged, judged.ideal[:, 0])
    return np.nan_to_num(gains / highest[:, None])


METRICS: Mapping[str, MetricFamily] = {
    "context_precision": MetricFamily(
        context_precision,
        "required",
        "mean of precision@rank over the relevant documents among the first k, as in RAGAS",
    ),
    "context_precision_graded": MetricFamily(
        partial(context_precision, relevance="graded"),
        "required",
        "context precision that counts a document as grade / highest grade",
    ),
    "discounted_precision": MetricFamily(
        discounted_precision,
        "required",
        "weighted grades of the k ranks, divided by those of k passages of the highest grade",
    ),
    "discounted_precision_binary": MetricFamily(
        partial(discounted_precision, relevance="binary"),
        "required",
        "discounted precision that counts every relevant passage as 1",
    ),
    **{
        f"discounted_precision_{name}": MetricFamily(
            partial(discounted_precision, discount=name),
            "required",
            f"discounted precision with the {name} weights of the ranks",
        )
        for name in DISCOUNTS
        if name != "log"
    },
    "discounted_precision_fitted": MetricFamily(
        fitted_precision,
        "required",
        "discounted precision with weights of the ranks of your own",
        takes="discount",
        check=check_fitted,
    ),
}
