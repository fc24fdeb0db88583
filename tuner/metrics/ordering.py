"""From answers given as scores or lists to the first documents of each, in trec_eval's order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from operator import methodcaller
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from tuner.core.errors import MetricError
from tuner.core.rankings import BoolArray, FloatArray, IntArray
from tuner.metrics.judgements import as_number, check_ids, numbers, padded

Answer = Mapping[str, float] | Sequence[str]
Duplicates = Literal["error", "first"]

# Answers of very different lengths share a matrix; small blocks keep it small and in the cache.
_BLOCK = 512


def top_documents(
    query_ids: Sequence[str],
    answers: Sequence[Answer],
    *,
    depth: int | None = None,
    duplicates: Duplicates = "error",
) -> list[Sequence[str]]:
    """Return the best ``depth`` documents (None: all) of each answer, best first.

    Scores are compared as float64, higher first, ties by document id in descending byte order.
    Lists keep their order; with ``duplicates="first"`` a repeated document keeps its first place
    and the ranks close up.

    Raises:
        MetricError: a score that is NaN or no number, a repeated document under
            ``duplicates="error"``, or an answer of another kind; names query and document.
    """
    if duplicates not in ("error", "first"):
        raise MetricError(f"duplicates={duplicates!r}; write 'error' or 'first'")
    tops: list[Sequence[str]] = [()] * len(answers)
    scored: list[int] = []
    for index, answer in enumerate(answers):
        if isinstance(answer, Mapping):
            check_ids(query_ids[index], answer, "the run holds")
            scored.append(index)
        else:
            tops[index] = _listed(query_ids[index], answer, duplicates)[:depth]
    # By length, so that each block's rows need little filling up.
    scored.sort(key=lambda index: len(answers[index]))
    for start in range(0, len(scored), _BLOCK):
        block = scored[start : start + _BLOCK]
        rows = [cast("Mapping[str, float]", answers[index]) for index in block]
        names = [query_ids[index] for index in block]
        for index, top in zip(block, _top_scored(names, rows, depth), strict=True):
            tops[index] = top
    return tops


def _listed(query_id: str, answer: Sequence[str], duplicates: Duplicates) -> Sequence[str]:
    if isinstance(answer, str | bytes) or not isinstance(answer, Sequence | np.ndarray):
        raise MetricError(
            f"query {query_id!r}: the answer is of type {type(answer).__name__}; "
            "write {document: score} or a list of document ids, best first"
        )
    check_ids(query_id, answer, "the ranking holds")
    unique = dict.fromkeys(answer)
    if len(unique) == len(answer):
        return answer
    if duplicates == "first":
        return list(unique)
    repeated = next(document for document, count in Counter(answer).items() if count > 1)
    raise MetricError(
        f"query {query_id!r}: the ranking holds {repeated!r} twice; remove the later one or "
        "pass duplicates='first'"
    )


def _top_scored(
    query_ids: Sequence[str], answers: Sequence[Mapping[str, float]], depth: int | None
) -> list[list[str]]:
    lengths = np.fromiter(map(len, answers), np.int64, len(answers))
    # Ascending costs, because numpy sorts upwards; the filling sorts behind everything.
    flat = _scores(query_ids, answers, int(lengths.sum()))
    costs = padded(np.negative(flat, out=flat), lengths, fill=np.inf)
    order, has_tie = _ascending(costs, lengths, depth)
    tops = []
    rows = zip(answers, order.tolist(), lengths.tolist(), has_tie.tolist(), strict=True)
    for row, (answer, places, length, is_tied) in enumerate(rows):
        documents = list(answer)
        if is_tied:
            tops.append(_ordered_by_id_too(documents, costs[row, :length], depth))
        elif length < len(places):
            tops.append([documents[place] for place in places[:length]])
        else:
            tops.append([documents[place] for place in places])
    return tops


def _ascending(
    costs: FloatArray, lengths: IntArray, depth: int | None
) -> tuple[npt.NDArray[Any], BoolArray]:
    """Return the places of the lowest costs of each row in order, and whether a tie disturbs it."""
    width = costs.shape[1]
    if depth is None or depth >= width:
        places = np.argsort(costs, axis=1)
        kept = width
    else:
        # One more than asked for shows whether the last place is tied with the next one.
        places = np.argpartition(costs, depth, axis=1)[:, : depth + 1]
        nearest = np.take_along_axis(costs, places, axis=1)
        places = np.take_along_axis(places, np.argsort(nearest, axis=1), axis=1)
        kept = depth
    ordered = np.take_along_axis(costs, places, axis=1)
    is_tie = ordered[:, 1:] == ordered[:, :-1]
    # A pair that reaches into the filling is no tie, except with a real score of -inf: the filling
    # may then stand before it.
    is_tie &= np.arange(1, ordered.shape[1]) < lengths[:, None]
    has_tie = is_tie.any(axis=1)
    if (lengths < width).any():
        has_tie |= np.isposinf(costs).sum(axis=1) > width - lengths
    return places[:, :kept], has_tie


def _ordered_by_id_too(documents: list[str], costs: FloatArray, depth: int | None) -> list[str]:
    """Return the documents of one row by ascending cost, ties by descending id."""
    if depth is None or depth >= len(documents):
        candidates = np.arange(len(documents))
    else:
        last = np.partition(costs, depth - 1)[depth - 1]
        candidates = np.flatnonzero(costs <= last)
    scores = (-costs[candidates]).tolist()
    ids = [documents[place] for place in candidates.tolist()]
    pairs = sorted(zip(scores, ids, strict=True), reverse=True)
    return [document for _, document in pairs[:depth]]


def _scores(
    query_ids: Sequence[str], answers: Sequence[Mapping[str, float]], total: int
) -> FloatArray:
    """Return all scores in one row, in order."""
    scores = numbers(chain.from_iterable(map(methodcaller("values"), answers)), total)
    if scores is None or np.isnan(scores).any():
        raise _bad_score(query_ids, answers)
    return scores


def _bad_score(query_ids: Sequence[str], answers: Sequence[Mapping[str, float]]) -> MetricError:
    for query_id, answer in zip(query_ids, answers, strict=True):
        for document, score in answer.items():
            if math.isnan(as_number(score)):
                return MetricError(
                    f"query {query_id!r}, document {document!r}: the score is {score!r}; "
                    "it must be a number"
                )
    return MetricError("the run changed while it was read")
