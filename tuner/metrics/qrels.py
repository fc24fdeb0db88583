"""Relevance judgements as arrays, made once a study, that judge a whole batch of rankings fast."""

from __future__ import annotations

from collections.abc import Mapping, MutableSequence, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.errors import MetricError
from tuner.core.grades import DEFAULT_SCALE, RELEVANT_FROM, GradeScale
from tuner.core.rankings import NO_DOCUMENT, BoolArray, FloatArray, IntArray, Rankings
from tuner.metrics.base import Judged
from tuner.metrics.judgements import grade_values, ideal_gains

# Multiplicative hashing: 2^64 / golden ratio (Knuth, The Art of Computer Programming 3, 6.4).
_HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)

# Rankings are judged in blocks whose temporary arrays stay in the processor's cache.
_BLOCK_CELLS = 32_768

_LAST = 2**62
_NO_SPANS = (
    "supporting texts are judged (judge: evidence), and the retriever does not tell which part of "
    "a document it retrieved (the `span` of a result, or `spans` of Rankings); leave `judge` out "
    "to judge whole documents"
)


@dataclass(frozen=True, eq=False)
class Qrels:
    """Judgements of a list of queries over a universe of documents. Make it with ``build``.

    Attributes:
        query_ids: the rows; ``relevant_count``, ``ideal``, ``relevant_from`` and ``highest`` are
            those of ``Judged``.
        document_ids: the universe: the given ids, then judged ids that were not among them.
        keys: one for each judgement with a positive grade:
            ``row * (documents + 1) + document + 1``. The slot 0 of a row stands for "no document".
            Ordered by bucket, so that each bucket of the hash table is one slice.
        grades: the grade of each key.
        spans: shape (2, keys), first and last of the characters ``[begin, end)`` of each key's
            document that must have been retrieved for its grade to count; None where any part does.
        bucket_starts: shape (buckets + 1,): where the slice of each bucket begins. Every query has
            its own ``2 ** bucket_bits`` buckets side by side: its documents stay in the cache.
    """

    query_ids: tuple[str, ...]
    document_ids: tuple[str, ...]
    keys: IntArray
    grades: FloatArray
    relevant_count: IntArray
    ideal: FloatArray
    bucket_starts: IntArray
    bucket_bits: int
    relevant_from: float = RELEVANT_FROM
    highest: float | None = None
    spans: IntArray | None = None
    _slots_of: dict[str, tuple[Sequence[str], IntArray]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @classmethod
    def build(
        cls,
        grades: Mapping[str, Mapping[str, float]],
        *,
        query_ids: Sequence[str] | None = None,
        document_ids: Sequence[str] = (),
        scale: GradeScale = DEFAULT_SCALE,
        spans: Mapping[str, Mapping[str, tuple[int, int]]] | None = None,
    ) -> Qrels:
        """Make the arrays from ``{query: {document: grade}}``.

        ``query_ids`` chooses and orders the queries (default: all judged ones, in their order); a
        query without judgements is undefined in every metric. Give the retriever's own
        ``document_ids`` tuple to spare ``judge`` the mapping between the two. ``scale`` says which
        grades are relevant; the highest of the data set is that of all ``grades``. With ``spans``,
        ``{query: {document: (begin, end)}}``, a grade counts where these characters of the document
        were retrieved; documents without a span count as ever.

        Raises:
            MetricError: an id twice, or a grade that is not a finite number.
        """
        queries = tuple(grades if query_ids is None else query_ids)
        documents, position = _universe(grades, queries, document_ids)
        by_query = [grades.get(query, {}) for query in queries]
        lengths = np.fromiter(map(len, by_query), np.int64, len(by_query))
        total = int(lengths.sum())
        flat = grade_values(queries, by_query, total)
        places = map(position.__getitem__, chain.from_iterable(by_query))
        columns = np.fromiter(places, np.int64, total)
        rows = np.repeat(np.arange(len(queries)), lengths)
        relevant_count, ideal = ideal_gains(
            rows, flat, len(queries), relevant_from=scale.relevant_from
        )
        has_gain = flat > 0
        needed = None
        if spans is not None:
            pairs = ((query, name) for query in queries for name in grades.get(query, {}))
            # What needs nothing is in any span.
            wanted = (spans.get(query, {}).get(name, (_LAST, 0)) for query, name in pairs)
            needed = np.array(list(wanted), dtype=np.int64).reshape(-1, 2)
        keys = (rows * (len(documents) + 1) + columns + 1)[has_gain]
        # About eight buckets a key: 7 of 8 unjudged documents fall into an empty one.
        bits = max((keys.size * 8 // max(len(queries), 1)).bit_length(), 3)
        buckets = _buckets(keys, rows[has_gain], bits)
        order = np.argsort(buckets)
        bucket_count = len(queries) << bits
        starts = np.zeros(bucket_count + 1, dtype=np.int64)
        np.cumsum(np.bincount(buckets, minlength=bucket_count), out=starts[1:])
        flat = flat[has_gain][order]
        return cls(
            queries,
            documents,
            keys[order],
            flat,
            relevant_count,
            ideal,
            starts,
            bits,
            scale.relevant_from,
            scale.highest(grades.values()),
            None if needed is None else np.ascontiguousarray(needed[has_gain][order].T),
        )

    def judge(
        self,
        rankings: Rankings,
        query_rows: IntArray | None = None,
        *,
        depth: int | None = None,
    ) -> Judged:
        """Fill in the grade of every document of the rankings, down to ``depth`` or completely.

        ``query_rows`` gives for each ranking the row of its query in ``query_ids``; without it the
        rows are found by the rankings' query ids. Documents that no judgement knows have gain 0.

        Raises:
            MetricError: an unknown query, a document twice in a ranking, a position outside
                ``rankings.document_ids``, or rankings without the spans that are judged.
        """
        rows = self._rows(rankings.query_ids) if query_rows is None else query_rows
        documents = rankings.documents[:, :depth]
        if documents.shape[0] != len(rows):
            raise MetricError(f"{documents.shape[0]} rankings for {len(rows)} queries")
        if self.spans is not None and rankings.spans is None and documents.size:
            raise MetricError(_NO_SPANS)
        gains = np.empty(documents.shape)
        first_keys = (rows * (len(self.document_ids) + 1))[:, None]
        step = max(_BLOCK_CELLS // max(documents.shape[1], 1), 1)
        for start in range(0, len(rows), step):
            block = slice(start, start + step)
            _check_documents(rankings, documents[block], start)
            keys = self._slots(rankings.document_ids, documents[block])
            keys += first_keys[block]
            buckets = _buckets(keys, rows[block][:, None], self.bucket_bits)
            spans = rankings.spans[block, :depth] if rankings.spans is not None else None
            gains[block] = self._grades_of(keys.ravel(), buckets.ravel(), spans).reshape(keys.shape)
        if np.array_equal(rows, np.arange(len(self.query_ids))):
            counts, ideal = self.relevant_count, self.ideal
        else:
            counts, ideal = self.relevant_count[rows], self.ideal[rows]
        return Judged(gains, counts, ideal, depth, self.relevant_from, self.highest)

    @cached_property
    def _row_of(self) -> Mapping[str, int]:
        return {query: row for row, query in enumerate(self.query_ids)}

    @cached_property
    def _position_of(self) -> Mapping[str, int]:
        return {document: position for position, document in enumerate(self.document_ids)}

    @cached_property
    def _is_used(self) -> BoolArray:
        # A byte a bucket stays in the cache where the bucket's bounds would not.
        return self.bucket_starts[1:] > self.bucket_starts[:-1]

    def _rows(self, query_ids: Sequence[str]) -> IntArray:
        if query_ids is self.query_ids or tuple(query_ids) == self.query_ids:
            return np.arange(len(self.query_ids))
        try:
            return np.fromiter(map(self._row_of.__getitem__, query_ids), np.int64, len(query_ids))
        except KeyError as error:
            raise MetricError(
                f"query {error.args[0]!r} is not among the {len(self.query_ids)} judged queries"
            ) from None

    def _slots(self, document_ids: Sequence[str], documents: npt.NDArray[Any]) -> IntArray:
        """Translate positions in ``document_ids`` to slots of the universe, 0 where unknown."""
        if document_ids is self.document_ids:
            return documents.astype(np.int64) + 1
        remembered = self._slots_of.get("last")
        if remembered is None or remembered[0] is not document_ids:
            remembered = (document_ids, self._slots_for(document_ids))
            # A list may change under the same identity, so it is not remembered.
            if not isinstance(document_ids, MutableSequence):
                self._slots_of["last"] = remembered
        slots: IntArray = remembered[1][documents]
        return slots

    def _slots_for(self, document_ids: Sequence[str]) -> IntArray:
        places = map(self._position_of.get, document_ids, repeat(NO_DOCUMENT))
        # One entry more than documents: the position -1 reads this last one.
        slots = np.zeros(len(document_ids) + 1, dtype=np.int64)
        slots[:-1] = np.fromiter(places, np.int64, len(document_ids)) + 1
        return slots

    def _grades_of(
        self, keys: IntArray, buckets: IntArray, spans: npt.NDArray[Any] | None
    ) -> FloatArray:
        # A hash table in numpy: several times faster than a binary search for every key.
        grades = np.zeros(keys.size)
        left = np.flatnonzero(self._is_used[buckets])
        buckets = buckets[left]
        place, end = self.bucket_starts[buckets], self.bucket_starts[buckets + 1]
        while left.size:
            is_found = self.keys[place] == keys[left]
            if self.spans is not None and spans is not None:
                begins, ends = spans.reshape(-1, 2)[left].T
                is_counted = is_found & (begins <= self.spans[0, place])
                is_counted &= ends >= self.spans[1, place]
            else:
                is_counted = is_found
            grades[left] = np.where(is_counted, self.grades[place], 0.0)
            place += 1
            goes_on = ~is_found & (place < end)
            left, place, end = left[goes_on], place[goes_on], end[goes_on]
        return grades


def _buckets(keys: IntArray, rows: IntArray, bits: int) -> IntArray:
    """Return the bucket of each key, one of the ``2 ** bits`` of its row."""
    hashes: IntArray = ((keys.view(np.uint64) * _HASH_MULTIPLIER) >> np.uint64(64 - bits)).view(
        np.int64
    )
    return hashes + (rows << bits)


def _universe(
    grades: Mapping[str, Mapping[str, float]], queries: Sequence[str], document_ids: Sequence[str]
) -> tuple[tuple[str, ...], dict[str, int]]:
    position = {document: place for place, document in enumerate(document_ids)}
    if len(position) != len(document_ids):
        raise MetricError(f"{len(document_ids) - len(position)} document ids are there twice")
    if len(set(queries)) != len(queries):
        raise MetricError(f"{len(queries) - len(set(queries))} query ids are there twice")
    for query in queries:
        for document in grades.get(query, ()):
            if document not in position:
                position[document] = len(position)
    if len(position) == len(document_ids):
        # The same object where possible: rankings that point into it need no translation.
        return tuple(document_ids), position
    return tuple(position), position


def _check_documents(rankings: Rankings, documents: npt.NDArray[Any], first_row: int) -> None:
    if not documents.size:
        return
    ordered = np.sort(documents, axis=1)
    lowest, highest = int(ordered[:, 0].min()), int(ordered[:, -1].max())
    if lowest < NO_DOCUMENT or highest >= len(rankings.document_ids):
        wrong = lowest if lowest < NO_DOCUMENT else highest
        raise MetricError(
            f"a ranking holds the position {wrong}, but there are {len(rankings.document_ids)} "
            f"documents; positions run from 0, and {NO_DOCUMENT} fills the end of short rankings"
        )
    is_repeated = ordered[:, 1:] == ordered[:, :-1]
    if lowest == NO_DOCUMENT:
        is_repeated &= ordered[:, 1:] != NO_DOCUMENT
        is_gap = (documents[:, :-1] == NO_DOCUMENT) & (documents[:, 1:] != NO_DOCUMENT)
        if is_gap.any():
            row = int(is_gap.any(axis=1).argmax())
            raise MetricError(
                f"query {rankings.query_ids[first_row + row]!r}: the ranking has a gap "
                f"({NO_DOCUMENT}) before a document; only its end may be filled"
            )
    if is_repeated.any():
        row, column = (int(place[0]) for place in is_repeated.nonzero())
        document = rankings.document_ids[int(ordered[row, column])]
        raise MetricError(
            f"query {rankings.query_ids[first_row + row]!r}: the ranking holds {document!r} twice; "
            "remove the later one"
        )
