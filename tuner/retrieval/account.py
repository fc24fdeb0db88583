"""How an answer came about: told by the retriever itself, or read off what its answer carries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import numpy as np

from tuner.core.account import Account, LegGiven
from tuner.core.corpus import Query
from tuner.core.rankings import NO_DOCUMENT, FloatArray, Legs, Rankings
from tuner.core.trial import Params
from tuner.retrieval.base import Retriever, free_knobs, with_reasons
from tuner.retrieval.free import Mixing

# Parts that add up to a score but for this share of it are believed to be what it was made of.
_NEAR = 1e-4


@runtime_checkable
class GivesAccount(Protocol):
    """A retriever that tells how an answer came about, passage by passage.

    Asked for one query at a time, when somebody looks at it; trials pay nothing for it.
    """

    def account(self, query: Query, params: Params, rankings: Rankings) -> Account:
        """Return how ``rankings``, its own answer to this one query, came about."""
        ...


@runtime_checkable
class HandsOn(Protocol):
    """A retriever that lets another one answer."""

    def handed_on(self, query: Query, params: Params) -> tuple[Retriever, Params]:
        """Return who answers a query, and with which parameters."""
        ...


def answered_by(retriever: Retriever, query: Query, params: Params) -> tuple[Retriever, Params]:
    """Return who answers a query in the end, and with which parameters.

    Those of a policy are the ones that it chose.
    """
    while isinstance(retriever, HandsOn):
        retriever, params = retriever.handed_on(query, params)
    return retriever, params


def account_of(retriever: Retriever, query: Query, params: Params, rankings: Rankings) -> Account:
    """Return how an answer to one query came about, as far as the retriever or the answer tells."""
    own, asked = answered_by(retriever, query, params)
    if isinstance(own, GivesAccount):
        return own.account(query, asked, rankings)
    told = with_reasons(retriever, [query], params, rankings)
    legs = {} if rankings.legs is None else _legs(rankings.legs, rankings)
    mixing = free_knobs(own, asked, tuple(asked)).mixing
    if mixing is not None and legs:
        legs = _with_parts(legs, mixing, asked, rankings)
    return Account(
        legs,
        names=None if told.entities is None else tuple(told.entities[0]),
        paths=None if told.paths is None else tuple(map(tuple, told.paths[0])),
    )


def _legs(legs: Legs, rankings: Rankings) -> dict[str, LegGiven]:
    """Return the legs' scores of each ranked document: of several passages, the best by rank."""
    ranked = [place for place in rankings.documents[0].tolist() if place != NO_DOCUMENT]
    pool = legs.documents[0].tolist()
    found = {}
    for name, scores in zip(legs.names, legs.scores[:, 0], strict=True):
        best = dict.fromkeys(ranked, np.nan)
        for place, score in zip(pool, scores.tolist(), strict=True):
            if place in best and (np.isnan(best[place]) or score > best[place]):
                best[place] = score
        found[name] = LegGiven(np.array([best[place] for place in ranked], dtype=np.float64))
    return found


def _with_parts(
    legs: Mapping[str, LegGiven], mixing: Mixing, params: Params, rankings: Rankings
) -> dict[str, LegGiven]:
    """Return the legs with their parts, where these add up to the scores: else it is not known."""
    if rankings.scores is None or any(
        share.parameter and share.parameter not in params for share in mixing.shares.values()
    ):
        return dict(legs)
    parts: dict[str, FloatArray] = {
        name: mixing.share(name).of(params) * leg.scores for name, leg in legs.items()
    }
    total = np.nansum(np.stack(list(parts.values())), axis=0)
    scores = rankings.scores[0, : len(total)]
    if not np.allclose(total, scores, rtol=_NEAR, atol=_NEAR):
        return dict(legs)
    return {name: LegGiven(leg.scores, parts[name]) for name, leg in legs.items()}
