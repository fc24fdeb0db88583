"""Answers at other values of free parameters, computed from one answer of the system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tuner.core.errors import TunerError
from tuner.core.rankings import NO_DOCUMENT, FloatArray, Legs, Rankings
from tuner.core.trial import Params, Scalar
from tuner.retrieval.adapters.runs.fusion import best as best_of_all
from tuner.retrieval.adapters.runs.fusion import missing, normalise
from tuner.retrieval.free import FreeKnobs, Mixing
from tuner.retrieval.hybrid.fusion import Groups
from tuner.retrieval.hybrid.fusion import best as best_by_steps

Scores = npt.NDArray[np.floating]


def answer_at(free: FreeKnobs, rankings: Rankings, params: Params) -> Rankings:
    """Return what the system would have answered with other values of its free parameters.

    Args:
        free: what is free.
        rankings: an answer with the largest values of the prefixes, the smallest of the cut-offs
            and, where legs are mixed, with its legs.
        params: complete parameters, equal to those asked but for the free ones.

    Raises:
        TunerError: legs are mixed, and the answer does not carry them; there are cut-offs, and it
            has no scores.
    """
    ranked = _ranked_at(free, rankings, params)
    for name in free.cutoffs:
        ranked = ranked.at_least(float(params[name]))  # type: ignore[arg-type]  # a number
    return ranked


def _ranked_at(free: FreeKnobs, rankings: Rankings, params: Params) -> Rankings:
    counts = [int(params[name]) for name in free.prefixes]  # type: ignore[arg-type]  # whole
    if free.mixing is not None:
        if rankings.legs is None:
            raise TunerError(
                f"the answers carry no legs, so what other values of "
                f"{', '.join(free.mixing.parameters)} would give is not known; write free: off"
            )
        count = min(counts, default=rankings.depth)
        return mixed(free.mixing, rankings, rankings.legs, params, count)
    return rankings.first(min(counts)) if counts else rankings


def shares_of(mixing: Mixing, legs: Legs, params: Mapping[str, Scalar]) -> Scores:
    """Return what each leg is multiplied by, shape (legs,), as exact as the legs' scores are."""
    kind = legs.scores.dtype.type
    shares = []
    for name in legs.names:
        share = mixing.share(name)
        value = kind(params[share.parameter] if share.parameter else share.constant)
        shares.append(kind(1.0) - value if share.is_rest else value)
    return np.array(shares, dtype=legs.scores.dtype)


def mixed(
    mixing: Mixing, rankings: Rankings, legs: Legs, params: Mapping[str, Scalar], count: int
) -> Rankings:
    """Return the first ``count`` documents by the mixed scores.

    Raises:
        TunerError: the legs are others than are mixed.
    """
    counted = normalised(mixing, legs, params)
    shares = shares_of(mixing, counted, params)
    total = _added(mixing, counted, shares)
    if mixing.needs_share:
        total = np.where(legs.is_found[shares != 0].any(axis=0), total, -np.inf)
    if mixing.step > 0:
        groups = Groups.of(legs.documents) if legs.has_passages else None
        columns, scores = best_by_steps(np.asarray(total, dtype=np.float32), count, groups)
    else:
        columns, scores = _best(total, legs, count, mixing.least)
    is_there = columns >= 0
    documents = np.where(
        is_there, np.take_along_axis(legs.documents, columns, axis=1), NO_DOCUMENT
    ).astype(np.int64)
    tokens = None
    if legs.tokens is not None:
        tokens = np.where(is_there, np.take_along_axis(legs.tokens, columns, axis=1), 0.0)
    spans = None
    if legs.spans is not None:
        spans = np.take_along_axis(legs.spans, columns[:, :, None], axis=1)
    used = rankings.graph_used
    if used is not None and mixing.graph in legs.names:
        used = used & bool(shares[legs.names.index(mixing.graph)] > 0)
    return replace(
        rankings,
        documents=documents,
        scores=np.asarray(scores, dtype=np.float64),
        context_tokens=None if tokens is None else tokens.sum(axis=1),
        spans=spans,
        tokens=tokens,
        graph_used=used,
        by_count=None,
    )


def leg_problem(mixing: Mixing, legs: Legs | None) -> str | None:
    """Say how the legs are others than are mixed; None: they are not."""
    if legs is None:
        return "the answers carry no legs"
    if not mixing.shares or set(legs.names) == set(mixing.shares):
        return None
    has, mixes = ", ".join(legs.names), ", ".join(mixing.shares)
    return f"the answers carry the legs {has}, and what is mixed is {mixes}"


def normalised(mixing: Mixing, legs: Legs, params: Mapping[str, Scalar]) -> Legs:
    """Return legs with scores as they are added up, also of what a leg did not find.

    Raises:
        TunerError: the legs are others than are mixed.
    """
    if (problem := leg_problem(mixing, legs)) is not None:
        raise TunerError(problem)
    if not legs.documents.size:
        return legs
    if mixing.rrf_k:
        ranks = legs.ranks
        k = float(params[mixing.rrf_k])  # type: ignore[arg-type]  # a number by its knob
        scores = np.where(ranks > 0, 1.0 / (k + np.maximum(ranks, 1)), 0.0)
    elif mixing.normalisation:
        scores = np.stack(
            [
                _normalised(leg, is_found, mixing.normalisation)
                for leg, is_found in zip(legs.scores, legs.is_found, strict=True)
            ]
        )
    else:
        return legs
    return replace(legs, scores=scores)


def _normalised(scores: Scores, is_known: npt.NDArray[np.bool_], method: str) -> FloatArray:
    if method == "none":
        lowest = np.where(is_known, scores, 0.0).min(axis=1, keepdims=True)  # but at most 0
        return np.where(is_known, scores, lowest).astype(np.float64)
    order = np.argsort(np.where(is_known, -scores, np.inf), axis=1, kind="stable")
    known = np.where(is_known, scores, 0.0).astype(np.float64)
    lengths = is_known.sum(axis=1)
    values = normalise(np.take_along_axis(known, order, axis=1), lengths, method)
    is_value = np.arange(values.shape[1]) < lengths[:, None]
    found = np.empty_like(values)
    np.put_along_axis(found, order, np.where(is_value, values, missing(values, lengths)), axis=1)
    return found


def full_scores(mixing: Mixing, legs: Legs, params: Mapping[str, Scalar]) -> Scores:
    """Return the legs' scores, shape (legs, queries, pool), where silence needs no rule.

    Where the leg of the graph is silent, both legs have the scores of the other, so that any shares
    that sum to 1 give the same.

    Raises:
        TunerError: the legs are others than are mixed.
    """
    legs = normalised(mixing, legs, params)
    rows = _silent(mixing, legs)
    if not rows.any():
        return legs.scores
    filled = legs.scores.copy()
    graph = legs.names.index(mixing.graph)
    filled[graph, rows] = filled[1 - graph, rows]
    return filled


def _silent(mixing: Mixing, legs: Legs) -> npt.NDArray[np.bool_]:
    """Return for which queries the leg of the graph is silent, shape (queries,)."""
    if len(legs.names) != 2 or mixing.graph not in legs.names:
        return np.zeros(len(legs.documents), dtype=bool)
    is_silent: npt.NDArray[np.bool_] = ~legs.scores[legs.names.index(mixing.graph)].any(axis=1)
    return is_silent


def _added(mixing: Mixing, legs: Legs, shares: Scores) -> Scores:
    total: Scores = legs.scores[0] * shares[0]
    for leg, share in zip(legs.scores[1:], shares[1:], strict=True):
        total = total + leg * share
    rows = _silent(mixing, legs)
    if rows.any():
        total[rows] = legs.scores[1 - legs.names.index(mixing.graph)][rows]
    return total


def _best(
    total: Scores, legs: Legs, count: int, least: float
) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Return columns and scores of the best of each row; of a document's passages the best."""
    documents = legs.documents
    usable = np.where((documents >= 0) & (total > least), total, -np.inf)
    if count and usable.shape[1] and not legs.has_passages:
        return best_of_all(usable, count)
    order = np.argsort(-usable, axis=1, kind="stable")
    ranked = np.take_along_axis(documents, order, axis=1)
    for row, ids in enumerate(ranked):
        _, first = np.unique(ids, return_index=True)
        again = np.ones(len(ids), dtype=bool)
        again[first] = False
        usable[row, order[row][again]] = -np.inf
    order = np.argsort(-usable, axis=1, kind="stable")[:, :count]
    scores = np.take_along_axis(usable, order, axis=1)
    return np.where(scores > -np.inf, order, -1), np.where(scores > -np.inf, scores, 0.0)
