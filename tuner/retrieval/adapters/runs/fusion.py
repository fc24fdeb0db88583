"""Fusion: one score a document from all legs, and the best documents of each query.

First the scores of one leg are made comparable with those of another, query by query.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuner.core.errors import InputError, did_you_mean
from tuner.core.rankings import NO_DOCUMENT, BoolArray, FloatArray, IntArray, Legs
from tuner.core.trial import Params
from tuner.retrieval.adapters.runs.legs import Batch, Leg, Table
from tuner.retrieval.dead import no_weight
from tuner.retrieval.free import Mixing, Share
from tuner.retrieval.knobs import Knob, knob_params

RRF_K = 60
TOP_K = 10
WEIGHT = "weight_"
_LEAST_TOP_K_LIMIT = 100  # so that a space made for another retriever fits short runs as well


@dataclass(frozen=True)
class Settings:
    """One valid setting of the knobs; ``weights`` and ``depths`` in the order of the legs."""

    weights: tuple[float, ...]
    depths: tuple[int, ...]
    is_rrf: bool
    normalisation: str
    rrf_k: int
    top_k: int


def weight_name(leg: str) -> str:
    """Return the parameter that is a leg's weight."""
    return f"{WEIGHT}{leg}"


def mixing_knobs(legs: Collection[str]) -> tuple[Knob, ...]:
    """Return the knobs by which legs are mixed: a weight for each, and how they are added up."""
    some_weight = " + ".join(map(weight_name, legs)) + " > 0"
    weights = (
        Knob(
            weight_name(leg),
            "real",
            1.0,
            low=0.0,
            high=1.0,
            description=f"weight of the leg {leg!r}; only ratios count, and 0 leaves it out",
            constraint=some_weight,
        )
        for leg in legs
    )
    return (
        *weights,
        Knob(
            "fusion",
            "categorical",
            "score",
            choices=("score", "rrf"),
            description="what is added up: normalised scores (score), or reciprocal ranks (rrf)",
        ),
        Knob(
            "normalisation",
            "categorical",
            "min_max",
            choices=NORMALISATIONS,
            description="how the scores of a leg become comparable",
            when={"fusion": ("score",)},
        ),
        Knob(
            "rrf_k",
            "integer",
            RRF_K,
            low=1,
            high=1000,
            scale="log",
            description="k in 1 / (k + rank), ranks from 1",
            when={"fusion": ("rrf",)},
        ),
    )


def make_knobs(depths: Mapping[str, int], *, widest: int) -> tuple[Knob, ...]:
    """Return the knobs for legs with these depths; ``widest`` is the largest union of a query."""
    cuts = (
        Knob(
            f"depth_{leg}",
            "integer",
            depth,
            low=1,
            high=depth,
            description=f"how many documents of the leg {leg!r} are looked at",
        )
        for leg, depth in depths.items()
    )
    return (
        *mixing_knobs(depths),
        *cuts,
        Knob(
            "top_k",
            "integer",
            TOP_K,
            low=1,
            high=max(widest, _LEAST_TOP_K_LIMIT),
            description="how many documents are returned",
        ),
    )


def read_params(params: Params, knobs: tuple[Knob, ...], legs: tuple[str, ...]) -> Settings:
    """Check parameters against the knobs and fill in defaults.

    Raises:
        InputError: unknown names, values out of range, or no leg with a weight.
    """
    values: dict[str, Any] = knob_params(params, knobs)
    names = [weight_name(leg) for leg in legs]
    weights = tuple(float(values[name]) for name in names)
    if not any(weights):
        raise InputError(no_weight(names))
    return Settings(
        weights=weights,
        depths=tuple(int(values[f"depth_{leg}"]) for leg in legs),
        is_rrf=values["fusion"] == "rrf",
        normalisation=str(values["normalisation"]),
        rrf_k=int(values["rrf_k"]),
        top_k=int(values["top_k"]),
    )


def mixing_of(legs: Sequence[str], searched: Collection[str], fixed: Params) -> Mixing:
    """Return how legs are mixed, where these weights are searched and the others have a value."""
    shares = {
        leg: Share(name)
        if (name := weight_name(leg)) in searched
        else Share(constant=float(fixed.get(name, 1.0)))  # type: ignore[arg-type]  # a number
        for leg in legs
    }
    is_rrf = "fusion" not in searched and fixed.get("fusion") == "rrf"
    return Mixing(
        shares,
        normalisation="none",  # the legs are normalised, but for what they did not find
        rrf_k="rrf_k" if is_rrf and "rrf_k" in searched else "",
        needs_share=True,
    )


NORMALISATIONS = ("min_max", "z", "dbsf", "max", "none")


def normalise(scores: FloatArray, lengths: IntArray, method: str) -> FloatArray:
    """Return normalised scores of the same shape (queries, depth), each row best first.

    ``lengths`` says how many scores of each row are real; what comes after them is filling, and
    its values mean nothing. With s a score, and all else taken over the real scores of the row:

    - min_max: (s - min) / (max - min) (Lee 1997, "Analyses of multiple evidence combination").
    - z: (s - mean) / sd, sd over n, not n - 1 (Montague & Aslam 2001, "Relevance score
      normalization for metasearch": zero-mean, unit-variance).
    - dbsf: (s - (mean - 3 sd)) / (6 sd), cut to [0, 1] (Mazzeschi 2023, "Distribution-based score
      fusion").
    - max: s / the largest absolute score, which is s / max where no score is negative.
    - none: s.

    Equal scores, such as one alone, tell nothing of each other: they become 1, except under none.

    >>> normalise(np.array([[4.0, 3.0, 2.0]]), np.array([3]), "min_max").tolist()
    [[1.0, 0.5, 0.0]]

    Raises:
        InputError: an unknown method.
    """
    if method not in NORMALISATIONS:
        hint = did_you_mean(method, NORMALISATIONS)
        raise InputError(f"unknown normalisation {method!r}{hint}")
    if method == "none":
        return scores
    lowest = last_of(scores, lengths)
    span = scores[:, :1] - lowest
    is_equal = span <= 0
    if method == "max":
        size = np.maximum(np.abs(scores[:, :1]), np.abs(lowest))
        values = scores / np.where(is_equal, 1.0, size)
    else:
        values = (scores - lowest) / np.where(is_equal, 1.0, span)
        if method != "min_max":
            # Neither depends on scale and place, and numbers in [0, 1] lose no digits.
            values = _standard(values, lengths)
        if method == "dbsf":
            values = np.clip((values + 3.0) / 6.0, 0.0, 1.0)
    values[is_equal[:, 0]] = 1.0
    return values


def missing(normalised: FloatArray, lengths: IntArray) -> FloatArray:
    """Return what a document that the leg lacks counts in each row, shape (queries, 1).

    The lowest normalised score of the row, but at most 0: the leg would have put it below what it
    returned. That is 0 under min_max and dbsf, under max and none unless scores are negative, and
    the lowest score, below 0, under z. Where the leg has nothing at all for a query, 0.
    """
    lowest = np.minimum(last_of(normalised, lengths), 0.0)
    return np.where(lengths[:, None] > 0, lowest, 0.0)


def last_of(scores: FloatArray, lengths: IntArray) -> FloatArray:
    """Return the last real score of each row, shape (queries, 1); the first of an empty row."""
    return np.take_along_axis(scores, np.maximum(lengths - 1, 0)[:, None], axis=1)


def _standard(values: FloatArray, lengths: IntArray) -> FloatArray:
    """Return ``(value - mean) / sd`` over the real values of each row."""
    is_real = np.arange(values.shape[1]) < lengths[:, None]
    counts = np.maximum(lengths, 1)[:, None]
    means = np.where(is_real, values, 0.0).sum(axis=1, keepdims=True) / counts
    away = np.where(is_real, values - means, 0.0)
    deviations = np.sqrt((away * away).sum(axis=1, keepdims=True) / counts)
    return away / np.where(deviations > 0, deviations, 1.0)


# Documents of all queries together; beyond, computing them again costs less than the memory.
_MOST_REMEMBERED = 500_000


def fuse(batch: Batch, settings: Settings) -> FloatArray:
    """Return the fused scores of each query's pool, shape (queries, pool).

    Each leg is cut to its depth first. Then, summed over the legs in the order of their names:

    - score: weight * normalised score; a document that the leg lacks counts as ``missing`` says
      (the weighted CombSUM of Fox & Shaw 1994).
    - rrf: weight / (k + rank), ranks from 1; a document that the leg lacks counts 0 (Cormack,
      Clarke & Büttcher 2009, "Reciprocal rank fusion", there with k = 60 and without weights).

    A leg of weight 0 is left out: its documents do not count as found. What no leg has found is
    -inf.
    """
    total = np.zeros(batch.pool.shape)
    is_found = np.zeros(batch.pool.shape, dtype=np.bool_)
    for leg, weight, depth in zip(batch.legs, settings.weights, settings.depths, strict=True):
        if weight > 0:
            values, is_there = _values(leg, depth, settings)
            total += weight * values
            is_found |= is_there
    return np.where(is_found, total, -np.inf)


def told_legs(table: Table, batch: Batch, settings: Settings) -> Legs:
    """Return what ``fuse`` adds up before it is weighted; NaN is what a leg has not found."""
    values = []
    for leg, depth in zip(batch.legs, settings.depths, strict=True):
        found, is_there = _values(leg, depth, settings)
        values.append(np.where(is_there, found, np.nan))
    tokens = None
    if table.token_counts is not None:
        tokens = np.where(batch.pool >= 0, table.token_counts[batch.pool], 0.0)
    return Legs(table.names, batch.pool, np.stack(values), tokens)


def best(fused: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
    """Return columns and scores of the ``count`` best of each row, best first; -1 and 0 fill.

    Of equal scores the lower column comes first; columns of -inf are never returned.
    """
    depth = min(count, fused.shape[1])
    last = np.partition(fused, fused.shape[1] - depth, axis=1)[:, -depth, None]
    is_kept = fused >= last
    if np.count_nonzero(is_kept) > len(fused) * depth:
        # Ties for the last place: the first columns of them go in.
        is_tied = fused == last
        room = depth - np.count_nonzero(fused > last, axis=1, keepdims=True)
        is_kept &= ~is_tied | (np.cumsum(is_tied, axis=1) <= room)
    places = np.flatnonzero(is_kept).reshape(len(fused), depth)
    order = np.argsort(-fused.ravel()[places], axis=1, kind="stable")
    places = np.take_along_axis(places, order, axis=1)
    scores = fused.ravel()[places]
    is_empty = scores == -np.inf
    columns = places % fused.shape[1]
    return np.where(is_empty, NO_DOCUMENT, columns), np.where(is_empty, 0.0, scores)


def _values(leg: Leg, depth: int, settings: Settings) -> tuple[FloatArray, BoolArray]:
    """Return the leg's values for each document of the pool, and which of these it has found.

    Remembered for the next trials, which often differ in the weights alone.
    """
    is_rrf, method, k = settings.is_rrf, settings.normalisation, settings.rrf_k

    def compute() -> tuple[FloatArray, BoolArray]:
        values = _reciprocal(leg, depth, k) if is_rrf else _normalised(leg, depth, method)
        return values, leg.ranks < min(depth, leg.scores.shape[1])

    if leg.ranks.size > _MOST_REMEMBERED:
        return compute()
    return leg.recent.get((depth, is_rrf, k if is_rrf else method), compute)


def _normalised(leg: Leg, depth: int, method: str) -> FloatArray:
    """Return the leg's normalised scores for each document of the pool."""
    lengths = np.minimum(leg.lengths, depth)
    scores = normalise(leg.scores[:, :depth], lengths, method)
    values = np.empty((len(scores), leg.scores.shape[1] + 1))
    values[:] = missing(scores, lengths)
    # The filling of short rows is in no pool, so nothing looks at it.
    values[:, : scores.shape[1]] = scores
    return values.ravel()[leg.places]


def _reciprocal(leg: Leg, depth: int, k: int) -> FloatArray:
    """Return 1 / (k + rank), ranks from 1, for each document of the pool; 0 where it is missing."""
    ranks = np.arange(1, leg.scores.shape[1] + 2)
    shares = 1.0 / (k + ranks)
    shares[depth:] = 0.0
    shares[-1] = 0.0
    return shares[leg.ranks]
