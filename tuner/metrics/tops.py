"""The first ranks of judged rankings, and sums over them that do not depend on the batch."""

from __future__ import annotations

import numpy as np

from tuner.core.errors import MetricError
from tuner.core.rankings import BoolArray, FloatArray
from tuner.metrics.base import Judged


def top_gains(judged: Judged, cutoff: int | None) -> FloatArray:
    """Return the gains of the first ``cutoff`` ranks, at least one column, shape (queries, ranks).

    Raises:
        MetricError: the rankings were not judged that far.
    """
    check_cutoff(judged, cutoff)
    gains = judged.gains
    return gains[:, :cutoff] if gains.shape[1] else np.zeros((len(gains), 1))


def top_hits(judged: Judged, cutoff: int | None) -> BoolArray:
    """Return which of the first ``cutoff`` ranks are relevant, at least one column.

    Raises:
        MetricError: the rankings were not judged that far.
    """
    check_cutoff(judged, cutoff)
    hits = judged.hits
    return hits[:, :cutoff] if hits.shape[1] else np.zeros((len(hits), 1), dtype=np.bool_)


def check_cutoff(judged: Judged, cutoff: int | None) -> None:
    """Refuse a cut-off below 1, or one deeper than the rankings were looked at."""
    if cutoff is not None and cutoff < 1:
        raise MetricError(f"the cut-off is {cutoff}; it must be at least 1")
    if judged.cut is not None and (cutoff is None or cutoff > judged.cut):
        asked = "the whole ranking" if cutoff is None else f"a cut-off of {cutoff}"
        raise MetricError(
            f"the rankings were judged down to rank {judged.cut} only, "
            f"too short for {asked}; judge them with a greater depth"
        )


def relevant_count(judged: Judged) -> FloatArray:
    """Return the number of relevant documents of each query, NaN where there is none."""
    return where_defined(judged, judged.relevant_count.astype(np.float64))


def where_defined(judged: Judged, values: FloatArray) -> FloatArray:
    """Return the values, NaN for queries without a relevant document."""
    return np.where(judged.is_defined, values, np.nan)


def zero_without_relevant(values: FloatArray, judged: Judged) -> FloatArray:
    """Return the values with 0 where the query has no relevant document, as trec_eval -c counts.

    What is undefined for another reason stays NaN, such as the recall of a grade nobody gave.
    """
    return np.where(np.isnan(values) & ~judged.is_defined, 0.0, values)


def total(values: FloatArray) -> FloatArray:
    """Return the sum of each row, strictly from left to right.

    Unlike with sum() and dot products, zeros at the end or the shape of the batch then change no
    bit, so a perfect ranking is exactly 1 and equal rankings tie exactly.
    """
    return np.asarray(np.cumsum(values, axis=1)[:, -1])
