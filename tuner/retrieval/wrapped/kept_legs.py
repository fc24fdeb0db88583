"""Legs of answers as lines of a file hold them, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tuner.core.rankings import NO_DOCUMENT, Legs, Rankings

LEGS = "legs"


@dataclass(frozen=True)
class WrittenLegs:
    """What a line holds of one query: documents in their order, and each leg's scores of them."""

    ids: tuple[str, ...]
    scores: Mapping[str, tuple[float, ...]]
    tokens: tuple[float, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()

    @property
    def is_whole(self) -> bool:
        """Say whether every leg scores every document; tokens and spans are of all or of none."""
        lengths = {len(scores) for scores in self.scores.values()}
        others = {len(self.tokens), len(self.spans)}
        return lengths <= {len(self.ids)} and others <= {0, len(self.ids)}


def legs_record(legs: Legs, document_ids: Sequence[str], row: int) -> dict[str, Any]:
    """Return the legs of one query as a line holds them."""
    is_there = legs.documents[row] != NO_DOCUMENT
    record: dict[str, Any] = {
        "ids": [document_ids[place] for place in legs.documents[row][is_there]],
        "scores": {
            name: legs.scores[leg, row][is_there].tolist() for leg, name in enumerate(legs.names)
        },
    }
    if legs.tokens is not None:
        record["tokens"] = legs.tokens[row][is_there].tolist()
    if legs.spans is not None:
        record["spans"] = legs.spans[row][is_there].tolist()
    return record


def with_legs(rankings: Rankings, answers: Sequence[Mapping[str, Any]]) -> Rankings:
    """Return rankings with the legs that lines hold, where all of them hold the same ones."""
    kept = [answer.get(LEGS) for answer in answers]
    names = tuple(kept[0]["scores"]) if kept and kept[0] else ()
    if not names or any(one is None or tuple(one["scores"]) != names for one in kept):
        return rankings
    whole = [one for one in kept if one is not None]
    position = {id_: place for place, id_ in enumerate(rankings.document_ids)}
    rows = [[position.setdefault(id_, len(position)) for id_ in one["ids"]] for one in whole]
    width = max(map(len, rows), default=0)
    documents = np.full((len(rows), width), NO_DOCUMENT, dtype=np.int64)
    scores = np.zeros((len(names), len(rows), width))
    has_tokens = all("tokens" in one for one in whole)
    tokens = np.zeros((len(rows), width)) if has_tokens else None
    has_spans = all("spans" in one for one in whole)
    spans = np.zeros((len(rows), width, 2), dtype=np.int64) if has_spans else None
    for row, (places, one) in enumerate(zip(rows, whole, strict=True)):
        documents[row, : len(places)] = places
        for leg, name in enumerate(names):
            scores[leg, row, : len(places)] = one["scores"][name]
        if tokens is not None:
            tokens[row, : len(places)] = one["tokens"]
        if spans is not None:
            spans[row, : len(places)] = np.reshape(one["spans"], (-1, 2))
    return replace(
        rankings,
        document_ids=tuple(position),
        legs=Legs(names, documents, scores, tokens, spans),
    )
