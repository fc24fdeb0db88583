"""Answers to several batches of queries as those to one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.rankings import NO_DOCUMENT, ByCount, FloatArray, IntArray, Legs, Rankings


def stacked(parts: Sequence[Rankings], order: IntArray) -> Rankings:
    """Return the rankings of all parts in one; row i is row ``order[i]`` of the parts in a row.

    What one of the parts lacks (scores, tokens, legs, …) all lack.
    """
    ids, places = _universe(parts)
    documents = _rows([_moved(p.documents, at) for p, at in zip(parts, places, strict=True)], order)
    seconds: dict[str, float] = defaultdict(float)
    for part in parts:
        for stage, spent in part.seconds.items():
            seconds[stage] += spent

    def rows(name: str, fill: float = 0.0) -> Any:
        found = [getattr(part, name) for part in parts]
        return None if any(one is None for one in found) else _rows(found, order, fill)

    def lists(name: str) -> Any:
        found = [getattr(part, name) for part in parts]
        if any(one is None for one in found):
            return None
        whole = [one for part in found for one in part]
        return [whole[row] for row in order]

    query_ids = [id_ for part in parts for id_ in part.query_ids]
    return Rankings(
        tuple(query_ids[row] for row in order),
        ids,
        documents,
        scores=rows("scores", np.nan),
        seconds=dict(seconds),
        context_tokens=rows("context_tokens"),
        graph_used=rows("graph_used"),
        entities=lists("entities"),
        paths=lists("paths"),
        tokens=rows("tokens"),
        spans=rows("spans"),
        legs=_legs([part.legs for part in parts], places, order),
        by_count=_by_count([part.by_count for part in parts], order),
    )


def _by_count(parts: Sequence[ByCount | None], order: IntArray) -> ByCount | None:
    each = [part for part in parts if part is not None]
    if len(each) < len(parts):
        return None
    told = [part.context_tokens for part in each if part.context_tokens is not None]
    return ByCount(
        _rows([part.ranks for part in each], order, 0),
        _rows(_as_wide(told), order) if len(told) == len(each) else None,
    )


def _as_wide(contexts: Sequence[FloatArray]) -> list[FloatArray]:
    """Return rows that go on with their last value, as wide as the widest."""
    width = max(one.shape[1] for one in contexts)
    return [np.pad(one, ((0, 0), (0, width - one.shape[1])), mode="edge") for one in contexts]


def _legs(parts: Sequence[Legs | None], places: Sequence[IntArray], order: IntArray) -> Legs | None:
    legs = [part for part in parts if part is not None]
    if len(legs) < len(parts) or len({part.names for part in legs}) > 1:
        return None
    scores = [
        _rows([part.scores[leg] for part in legs], order, 0.0) for leg in range(len(legs[0].names))
    ]
    tokens = [part.tokens for part in legs if part.tokens is not None]
    spans = [part.spans for part in legs if part.spans is not None]
    return Legs(
        legs[0].names,
        _rows([_moved(p.documents, at) for p, at in zip(legs, places, strict=True)], order),
        np.stack(scores),
        _rows(tokens, order, 0.0) if len(tokens) == len(legs) else None,
        _rows(spans, order, 0) if len(spans) == len(legs) else None,
    )


def _rows(
    arrays: Sequence[npt.NDArray[Any]], order: IntArray, fill: float = NO_DOCUMENT
) -> npt.NDArray[Any]:
    """Return the rows of all arrays, as wide as the widest of them, in an order."""
    if arrays[0].ndim == 1:
        return np.concatenate(arrays)[order]
    width = max(one.shape[1] for one in arrays)
    shape = (sum(map(len, arrays)), width, *arrays[0].shape[2:])
    whole = np.full(shape, fill, dtype=arrays[0].dtype)
    start = 0
    for one in arrays:
        whole[start : start + len(one), : one.shape[1]] = one
        start += len(one)
    return whole[order]


def _moved(documents: npt.NDArray[Any], places: IntArray) -> npt.NDArray[Any]:
    return np.where(documents == NO_DOCUMENT, NO_DOCUMENT, places[documents])


def _universe(parts: Sequence[Rankings]) -> tuple[Sequence[str], list[IntArray]]:
    """Return the ids that all parts point into, and for each part its ids' places among them."""
    if parts and all(part.document_ids is parts[0].document_ids for part in parts):
        same = np.arange(max(len(parts[0].document_ids), 1))
        return parts[0].document_ids, [same] * len(parts)
    position: dict[str, int] = {}
    places = [
        np.array([position.setdefault(id_, len(position)) for id_ in part.document_ids] or [0])
        for part in parts
    ]
    return tuple(position), places
