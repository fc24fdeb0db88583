"""How an answer to one query came about: what each leg gave, and the walks through the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tuner.core.rankings import FloatArray, RelationPath, Step


@dataclass(frozen=True, eq=False)
class LegGiven:
    """What one leg gave each passage of a ranking.

    Attributes:
        scores: shape (passages,), on the leg's own scale; NaN where it did not find the passage.
        parts: shape (passages,), what of the mixed score is the leg's: those of all legs add up to
            it. None where that is not known.
    """

    scores: FloatArray
    parts: FloatArray | None = None


@dataclass(frozen=True)
class Start:
    """Where walks through the graph start: at a name of the query, or at a passage's names.

    Attributes:
        name: the recognised name; empty where walks start from a passage.
        passage: the id of the document whose passage it is; empty where they start from a name.
        weight: what the walks from there count; those of the query's names add up to 1.
    """

    name: str
    passage: str
    weight: float


@dataclass(frozen=True)
class Walk:
    """One way from where walks start to a passage that was returned.

    Attributes:
        names: the names on the way, at least one.
        passages: ids of the documents that each name leads to, as many as names; the last one is
            the passage's own.
        relations: what the corpus calls the relation of each name to the next one, in either
            direction, or None where it names none; one less than names.
        start: the id of the document whose names the walk starts from; empty where it starts from a
            name of the query.
        share: which share of the passage's score by walks comes from this one, in (0, 1].
    """

    names: tuple[str, ...]
    passages: tuple[str, ...]
    relations: tuple[Step | None, ...]
    start: str
    share: float


@dataclass(frozen=True, eq=False)
class Account:
    """How the answer to one query came about, as far as the retriever tells.

    Attributes:
        legs: by name, what each leg gave the passages, in the order of the ranking; empty where the
            answer does not tell.
        mixed: shape (passages,), what the legs were mixed to, where that is not the score: a
            reranker ordered the passages anew.
        starts: where walks start, what counts most first; None where the retriever does not tell.
        walks: for each passage the walks that gave it most, best first; None likewise.
        names: names that the graph retrieved for the query, best first; None likewise.
        paths: relation paths that the graph followed for the query, best first; None likewise.
        remarks: what else is to be known of the answer, a sentence each.
    """

    legs: Mapping[str, LegGiven] = field(default_factory=dict)
    mixed: FloatArray | None = None
    starts: tuple[Start, ...] | None = None
    walks: tuple[tuple[Walk, ...], ...] | None = None
    names: tuple[str, ...] | None = None
    paths: tuple[RelationPath, ...] | None = None
    remarks: tuple[str, ...] = ()
