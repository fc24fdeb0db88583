"""Rankings: one retriever's answers to a batch of queries, as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.errors import TunerError

FloatArray = npt.NDArray[np.float64]
Float32Array = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

NO_DOCUMENT = -1
WHOLE = (0, 2**31 - 1)
"""The span of a whole document, however long it is."""
TRIED_AGAIN = "retries"
"""The stage of ``Rankings.seconds`` with what failed tries cost before the one that worked."""

Step = tuple[str, str, str]
"""One relation (subject, relation, object)."""
RelationPath = Sequence[Step]
"""Relations that follow each other from the query towards its answer."""


@dataclass(frozen=True, eq=False)
class Legs:
    """What the answers to a batch of queries were mixed from.

    Attributes:
        names: what each leg is called, such as ``("graph", "text")``.
        documents: shape (queries, pool), positions in the rankings' ``document_ids`` of all that
            any leg found, in the order in which equal scores are ranked; -1 fills. A document can
            stand there several times, side by side, where its passages are scored one by one.
        scores: shape (legs, queries, pool), as they are added up: higher is better. Where they are
            normalised first, NaN is the score of what a leg did not find.
        tokens: shape (queries, pool), those of each passage, or None.
        spans: shape (queries, pool, 2), as in ``Rankings``, or None.
    """

    names: tuple[str, ...]
    documents: npt.NDArray[Any]
    scores: npt.NDArray[np.floating]
    tokens: FloatArray | None = None
    spans: npt.NDArray[np.signedinteger] | None = None

    @cached_property
    def has_passages(self) -> bool:
        """Say whether a document stands several times among what was found for a query."""
        documents = self.documents
        is_again = (documents[:, 1:] == documents[:, :-1]) & (documents[:, 1:] != NO_DOCUMENT)
        return bool(is_again.any())

    @cached_property
    def is_found(self) -> BoolArray:
        """Return what each leg found, shape (legs, queries, pool)."""
        found: BoolArray = (self.documents != NO_DOCUMENT) & ~np.isnan(self.scores)
        return found

    @cached_property
    def ranks(self) -> IntArray:
        """Return the rank, from 1, of each document in each leg; 0 where it did not find it.

        The shape is (legs, queries, pool). Of equal scores the first document is ranked first.
        """
        order = np.argsort(np.where(self.is_found, -self.scores, np.inf), axis=2, kind="stable")
        ranks = np.empty(order.shape, dtype=np.int64)
        places = np.broadcast_to(np.arange(1, order.shape[2] + 1), order.shape)
        np.put_along_axis(ranks, order, places, axis=2)
        return np.where(self.is_found, ranks, 0)


@dataclass(frozen=True, eq=False)
class ByCount:
    """How answers grow with what a system counts, where that is not documents.

    Such as passages, of which a document may have several, and several documents one.

    Attributes:
        ranks: shape of the rankings' ``documents``: from how many passages on each document is
            returned, ascending along a row; 0 fills.
        context_tokens: shape (queries, passages + 1), tokens of the whole context with so many
            passages, from 0 on; a row that ends earlier goes on with its last value. None where the
            system does not tell.
    """

    ranks: IntArray
    context_tokens: FloatArray | None = None

    @classmethod
    def of(
        cls, ranks: Sequence[Sequence[int]], contexts: Sequence[Sequence[float]] | None
    ) -> ByCount:
        """Return it from lists, one a query; each of ``contexts`` has a value for no passage."""
        width = max(map(len, ranks), default=0)
        filled = np.zeros((len(ranks), width), dtype=np.int64)
        for row, own in enumerate(ranks):
            filled[row, : len(own)] = own
        if contexts is None:
            return cls(filled)
        tokens = np.zeros((len(ranks), max(map(len, contexts), default=1)))
        for row, sums in enumerate(contexts):
            tokens[row, : len(sums)] = sums
            tokens[row, len(sums) :] = sums[-1]
        return cls(filled, tokens)

    def first(self, count: int, width: int) -> ByCount:
        """Return what is left of it with so many passages, in so many columns."""
        tokens = self.context_tokens
        return ByCount(self.ranks[:, :width], None if tokens is None else tokens[:, : count + 1])


@dataclass(frozen=True, eq=False)
class Rankings:
    """Answers to ``len(query_ids)`` queries, best document first.

    Attributes:
        query_ids: one id a row, in the order of the batch.
        document_ids: the ids that ``documents`` points into.
        documents: shape (queries, depth), positions in ``document_ids``; -1 fills short rows at
            their end. A row holds no document twice.
        scores: same shape, higher is better, or None where the system gives none. Only for the
            reader: the order of ``documents`` is what counts.
        seconds: wall time of the batch by stage, such as ``{"graph": 0.002, "text": 0.001}``.
        context_tokens: tokens of the retrieved passages for each query, or None.
        spans: shape (queries, depth, 2), which characters of its document's text were retrieved,
            ``[begin, end)``, beside the title; ``WHOLE`` where nothing was cut; or None where the
            system does not tell.
        graph_used: whether the graph contributed to each query, or None.
        entities: for each query the names that the graph retrieved, best first, or None where the
            system does not tell. A name is no document: the two are never compared.
        paths: for each query the relation paths that the graph followed, best first, or None.
        tokens: shape of ``documents``, those of each passage, or None; ``context_tokens`` is their
            sum.
        legs: what the answers were mixed from, where that was wanted and the system tells.
        by_count: how the answers grow with what the system counts, where that is not documents.
    """

    query_ids: Sequence[str]
    document_ids: Sequence[str]
    documents: npt.NDArray[Any]
    scores: FloatArray | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    context_tokens: FloatArray | None = None
    spans: npt.NDArray[np.signedinteger] | None = None
    graph_used: BoolArray | None = None
    entities: Sequence[Sequence[str]] | None = None
    paths: Sequence[Sequence[RelationPath]] | None = None
    tokens: FloatArray | None = None
    legs: Legs | None = None
    by_count: ByCount | None = None

    @property
    def depth(self) -> int:
        """Return the number of columns, that is the length of the longest ranking."""
        return int(self.documents.shape[1])

    def first(self, count: int) -> Rankings:
        """Return the first documents of each ranking, as a system that returns so many would.

        What each passage's tokens are has to be known for those of the contexts to be. Where the
        system counts passages, so many of these.
        """
        if self.by_count is None:
            return self._columns(count)
        is_kept = (self.documents != NO_DOCUMENT) & (self.by_count.ranks <= count)
        width = int(is_kept.sum(axis=1).max(initial=0))
        cut, left = self._columns(width), self.by_count.first(count, width)
        contexts = left.context_tokens
        return replace(
            cut,
            documents=np.where(is_kept[:, :width], cut.documents, NO_DOCUMENT),
            context_tokens=None if contexts is None else contexts[:, -1],
            tokens=None,
            by_count=left,
        )

    def _columns(self, count: int) -> Rankings:
        if count >= self.depth:
            return self
        tokens = None if self.tokens is None else self.tokens[:, :count]
        return replace(
            self,
            documents=self.documents[:, :count],
            scores=None if self.scores is None else self.scores[:, :count],
            context_tokens=None if tokens is None else tokens.sum(axis=1),
            spans=None if self.spans is None else self.spans[:, :count],
            tokens=tokens,
        )

    def at_least(self, least: float) -> Rankings:
        """Return what scores no less than this, as a system that leaves out the rest would.

        Raises:
            TunerError: the rankings have no scores.
        """
        if self.scores is None:
            raise TunerError("the answers carry no scores, so what scores less is not known")
        is_kept = (self.documents != NO_DOCUMENT) & (self.scores >= least)
        is_kept = np.logical_and.accumulate(is_kept, axis=1)  # scores never rise along a ranking
        width = int(is_kept.sum(axis=1).max(initial=0))
        cut, is_kept = self._columns(width), is_kept[:, :width]
        tokens = None if cut.tokens is None else np.where(is_kept, cut.tokens, 0.0)
        return replace(
            cut,
            documents=np.where(is_kept, cut.documents, NO_DOCUMENT),
            context_tokens=None if tokens is None else tokens.sum(axis=1),
            tokens=tokens,
        )

    def ids(self, row: int) -> list[str]:
        """Return the document ids of one query, best first, without the fill."""
        return [self.document_ids[i] for i in self.documents[row] if i != NO_DOCUMENT]

    @classmethod
    def from_ids(
        cls,
        query_ids: Sequence[str],
        answers: Sequence[Sequence[str]],
        **extra: Any,
    ) -> Rankings:
        """Build rankings from lists of document ids, one list a query, best first.

        A repeated id keeps its first place and the ranks close up.
        """
        position: dict[str, int] = {}
        rows = [
            [position.setdefault(document, len(position)) for document in dict.fromkeys(answer)]
            for answer in answers
        ]
        depth = max((len(row) for row in rows), default=0)
        documents = np.full((len(rows), depth), NO_DOCUMENT, dtype=np.int64)
        for index, row in enumerate(rows):
            documents[index, : len(row)] = row
        return cls(tuple(query_ids), tuple(position), documents, **extra)
