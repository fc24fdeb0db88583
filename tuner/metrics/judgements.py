"""From judgements ``{document: grade}`` of many queries to arrays."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import methodcaller

import numpy as np

from tuner.core.errors import MetricError
from tuner.core.rankings import FloatArray, IntArray


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
