"""From judgements ``{document: grade}`` of many queries to arrays; the first ranks of rankings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import methodcaller

import numpy as np

from tuner.core.errors import MetricError
from tuner.core.rankings import BoolArray, FloatArray, IntArray
from tuner.metrics.base import Judged


def check_ids(query_id: object, document_ids: Iterable[object], where: str) -> None:
    """Refuse ids that are no strings: the number 1 is never the document "1", and would score 0.

    Raises:
        MetricError: names the query and the first such id.
    """
    if not isinstance(query_id, str):
        raise MetricError(f"{where} the query {query_id!r}; query ids are strings")
    # By types first, of which there are few: this is done for every ranking.
    if {*map(type, document_ids)} - {str}:
        for id_ in document_ids:
            if not isinstance(id_, str):
                raise MetricError(f"query {query_id!r}: {where} {id_!r}; document ids are strings")


def check_mapping(given: object, what: str, wanted: str) -> None:
    """Refuse qrels, a run or judgements that are no mapping.

    Raises:
        MetricError: says what to write.
    """
    if not isinstance(given, Mapping):
        raise MetricError(f"{what} of type {type(given).__name__}; write {wanted}")


def numbers(values: Iterable[object], total: int) -> FloatArray | None:
    """Return ``total`` numbers in one row; None where one of them is none, such as ``"0.9"``."""
    listed = list(values)
    # By types first, of which there are few; numpy would read the text of a number.
    if any(issubclass(kind, str | bytes) for kind in {*map(type, listed)}):
        return None
    try:
        return np.fromiter(listed, np.float64, total)
    except (TypeError, ValueError, OverflowError):
        return None


def as_number(value: object) -> float:
    """Return a value as a number, NaN where it is none or larger than any."""
    if isinstance(value, str | bytes | np.ndarray):
        return math.nan
    try:
        return float(value)  # type: ignore[arg-type]  # the point is to find out
    except (TypeError, ValueError, OverflowError):
        return math.nan


def padded(values: FloatArray, lengths: IntArray, fill: float = 0.0) -> FloatArray:
    """Lay out consecutive rows of the given lengths as a matrix, filled up at the right.

    ``values`` has shape (sum of lengths,); the result (rows, longest row), at least one column.
    """
    width = max(int(lengths.max(initial=0)), 1)
    if values.size == lengths.size * width:
        return values.reshape(lengths.size, width)
    matrix = np.full((lengths.size, width), fill)
    matrix[np.arange(width) < lengths[:, None]] = values
    return matrix


def ideal_gains(
    rows: IntArray, grades: FloatArray, query_count: int, *, relevant_from: float
) -> tuple[IntArray, FloatArray]:
    """Return ``(relevant_count, ideal)`` of ``Judged`` from judgements in any order.

    ``rows[i]`` is the query of the judgement ``grades[i]``; grades must be finite.
    """
    is_relevant = grades >= relevant_from
    relevant_count = np.bincount(rows[is_relevant], minlength=query_count)
    has_gain = grades > 0
    rows, grades = rows[has_gain], grades[has_gain]
    descending = grades[np.lexsort((-grades, rows))]
    return relevant_count, padded(descending, np.bincount(rows, minlength=query_count))


def grade_values(
    query_ids: Sequence[str], judgements: Sequence[Mapping[str, float]], total: int
) -> FloatArray:
    """Return all ``total`` grades of the queries in one row, in order.

    Raises:
        MetricError: an id is no string, or a grade is not a finite number; names the query and the
            document.
    """
    for query, judgement in zip(query_ids, judgements, strict=True):
        check_ids(query, judgement, "the qrels hold")
    grades = numbers(chain.from_iterable(map(methodcaller("values"), judgements)), total)
    if grades is None or not np.isfinite(grades).all():
        for query, judgement in zip(query_ids, judgements, strict=True):
            for document, grade in judgement.items():
                if not math.isfinite(as_number(grade)):
                    raise MetricError(
                        f"query {query!r}, document {document!r}: the grade is {grade!r}; "
                        "it must be a finite number"
                    )
        raise MetricError("the judgements changed while they were read")
    return grades


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
