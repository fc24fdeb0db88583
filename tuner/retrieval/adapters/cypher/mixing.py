"""Legs of one query as one ranking: what is mixed, by which knobs, and which of them are free."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from tuner.core.errors import InputError
from tuner.core.rankings import Legs, Rankings
from tuner.core.trial import Params
from tuner.retrieval.adapters.runs.fusion import (
    TOP_K,
    mixing_knobs,
    mixing_of,
    normalise,
    weight_name,
)
from tuner.retrieval.computed import mixed
from tuner.retrieval.dead import no_weight
from tuner.retrieval.free import FreeKnobs
from tuner.retrieval.knobs import Knob

TOP = "top_k"
_MOST = 1000
_SUGGESTED = 100

Found = Sequence[tuple[str, float]]
"""Documents with their scores, best first; of equals the one with the lower id first."""


def own_knobs(legs: Sequence[str]) -> tuple[Knob, ...]:
    """Return the knobs that are no parameter of a statement: the depth, and how legs are mixed."""
    top = Knob(
        TOP,
        "integer",
        TOP_K,
        1,
        _MOST,
        suggested=(1, _SUGGESTED),
        description="how many documents are returned",
    )
    if len(legs) == 1:
        return (top,)
    return (top, *mixing_knobs(legs))


def check_weights(legs: Sequence[str], params: Params) -> None:
    """Refuse weights that leave no leg.

    Raises:
        InputError: all of several are 0.
    """
    if len(legs) > 1 and not any(params[weight_name(leg)] for leg in legs):
        raise InputError(no_weight([weight_name(leg) for leg in legs]))


def answer_of(legs: Mapping[str, Found], params: Params, *, tells_legs: bool) -> dict[str, Any]:
    """Return the answer to one query: the best documents with their mixed scores, and the legs.

    A leg counts as ``runs`` counts it: by its normalised scores, or by its reciprocal ranks. A
    document that a leg has not found counts 0 there, or its lowest score where that is below 0.
    """
    count = int(params[TOP])  # type: ignore[arg-type]  # whole by its knob
    if len(legs) == 1:
        (found,) = legs.values()
        return {"results": list(found[:count])}
    told = {leg: _counted(found, params) for leg, found in legs.items()}
    ids = sorted({id_ for found in told.values() for id_, _ in found})
    place = {id_: number for number, id_ in enumerate(ids)}
    scores = np.full((len(told), 1, len(ids)), np.nan)
    for row, found in enumerate(told.values()):
        for id_, score in found:
            scores[row, 0, place[id_]] = score
    pool = np.arange(len(ids))[None]
    ranked = mixed(
        mixing_of(tuple(told), tuple(map(weight_name, told)), {}),
        Rankings(("",), tuple(ids), np.zeros((1, 0), dtype=np.int64)),
        Legs(tuple(told), pool, scores),
        params,
        count,
    )
    values = [] if ranked.scores is None else ranked.scores[0].tolist()
    answer: dict[str, Any] = {"results": list(zip(ranked.ids(0), values, strict=False))}
    if tells_legs:
        answer["legs"] = {leg: list(found) for leg, found in told.items()}
    return answer


def free_of(
    legs: Sequence[str], read: Collection[str], fixed: Params, searched: Collection[str]
) -> FreeKnobs:
    """Return what an answer tells all values of: ``top_k``, and the weights of several legs.

    Not what a statement reads: that changes what is found.
    """
    prefixes = () if TOP in read else (TOP,)
    if len(legs) == 1:
        return FreeKnobs(prefixes)
    mixing = mixing_of(legs, searched, fixed)
    is_free = bool(mixing.parameters) and not set(mixing.parameters) & set(read)
    return FreeKnobs(prefixes, mixing if is_free else None)


def _counted(found: Found, params: Params) -> list[tuple[str, float]]:
    """Return what each document of a leg counts, before it is weighted."""
    ids = [id_ for id_, _ in found]
    if params["fusion"] == "rrf":
        k = float(params["rrf_k"])  # type: ignore[arg-type]  # a number by its knob
        return [(id_, 1.0 / (k + rank)) for rank, id_ in enumerate(ids, start=1)]
    scores = np.array([[score for _, score in found]], dtype=np.float64)
    if not ids:
        return []
    values = normalise(scores, np.array([len(ids)]), str(params["normalisation"]))
    return list(zip(ids, values[0].tolist(), strict=True))
