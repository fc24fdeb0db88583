"""Reduce a log to its distinct queries: spellings of one query, then near duplicates.

Those are found with scikit-learn's TF-IDF over character runs.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from tuner.core.errors import InputError
from tuner.core.words import compare_key
from tuner.evalset.query_log import LogEntry
from tuner.evalset.sheets import protect

THRESHOLD = 0.9
"""The similarity from which two questions count as near duplicates."""

_ROWS_AT_ONCE = 512  # bounds the memory: this many rows of the similarity matrix at a time


class Pair(NamedTuple):
    """Two texts by their positions, ``first`` before ``second``, and how alike they are."""

    first: int
    second: int
    similarity: float


def near_duplicates(texts: Sequence[str], *, threshold: float = THRESHOLD) -> list[Pair]:
    """Return the pairs of texts with a similarity of at least ``threshold``, the closest first.

    The similarity is the cosine, in [0, 1], of TF-IDF vectors over runs of 2 to 4 characters
    within words, so that word order hardly counts, and scripts without spaces work. Letter case
    does not count. Two texts that differ in one number may well be alike in this sense: look at
    the pairs before dropping any.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    if len(texts) < 2:
        return []
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True)
    try:
        vectors = vectorizer.fit_transform(texts)
    except ValueError:  # no text holds a single character
        return []
    pairs = []
    for start in range(0, len(texts), _ROWS_AT_ONCE):
        # The later texts only: each pair is met once, and no text meets itself.
        block = (vectors[start : start + _ROWS_AT_ONCE] @ vectors[start:].T).tocoo()
        close = block.data >= threshold - 1e-9  # rounding must not separate equal texts
        for row, column, value in zip(
            block.row[close], block.col[close], block.data[close], strict=True
        ):
            if row < column:
                similarity = min(float(value), 1.0)
                pairs.append(Pair(start + int(row), start + int(column), similarity))
    return sorted(pairs, key=lambda pair: (-round(pair.similarity, 9), pair.first, pair.second))


_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NEGATION = re.compile(r"\b(?:not|no|never|without|except)\b|n't\b|不|没|無|无|非|未")


@dataclass(frozen=True, slots=True)
class DistinctQuery:
    """One query, in its most frequent spelling, and how it was asked.

    ``users`` is 0 where the log does not name them. ``clicked`` are the documents, the most
    clicked first.
    """

    text: str
    count: int
    users: int = 0
    clicked: tuple[str, ...] = ()

    @property
    def traffic(self) -> int:
        """Return by how many users it was asked, where known: one may be a script."""
        return self.users or self.count


class NearDuplicate(NamedTuple):
    """A query that was dropped, the one that stands for it, and how alike they are."""

    dropped: DistinctQuery
    kept: DistinctQuery
    similarity: float


def distinct_queries(entries: Iterable[LogEntry]) -> list[DistinctQuery]:
    """Join the entries that ``compare_key`` takes as one query, the most frequent query first."""
    groups: dict[str, list[LogEntry]] = {}
    for entry in entries:
        groups.setdefault(compare_key(entry.text), []).append(entry)
    queries = [_joined(group) for group in groups.values()]
    return sorted(queries, key=lambda query: (-query.traffic, -query.count, query.text))


def drop_near_duplicates(
    queries: Sequence[DistinctQuery], *, threshold: float = THRESHOLD
) -> tuple[list[DistinctQuery], list[NearDuplicate]]:
    """Keep each query unless a kept one before it is alike: put the most frequent ones first.

    Alike means a similarity of at least ``threshold``, in (0, 1], as ``near_duplicates`` measures
    it. Queries with other numbers in them ("in 2019", "in 2020"), of which one says no, or with
    the same words in another order ("does A own B", "does B own A") are never alike. What is kept
    takes over counts and clicks; a user who asked in two wordings counts twice.

    Raises:
        InputError: a threshold outside (0, 1].
    """
    if not 0 < threshold <= 1:
        raise InputError(f"the threshold of near duplicates is {threshold:g}; must be in (0, 1]")
    keys = [compare_key(query.text) for query in queries]
    alike: dict[int, list[tuple[float, int]]] = {}
    for first, second, similarity in near_duplicates(keys, threshold=threshold):
        if not _differ(keys[first], keys[second]):
            alike.setdefault(second, []).append((similarity, first))
    stands_for: dict[int, tuple[float, int]] = {}
    for row in sorted(alike):
        near = [pair for pair in alike[row] if pair[1] not in stands_for]
        if near:
            stands_for[row] = max(near, key=lambda pair: (pair[0], -pair[1]))
    taken: dict[int, list[DistinctQuery]] = {}
    for row, (_, other) in stands_for.items():
        taken.setdefault(other, []).append(queries[row])
    kept = [
        _with(query, taken.get(row, ()))
        for row, query in enumerate(queries)
        if row not in stands_for
    ]
    dropped = [
        NearDuplicate(queries[row], queries[other], similarity)
        for row, (similarity, other) in stands_for.items()
    ]
    return kept, dropped


def write_near_duplicates(path: str | Path, dropped: Sequence[NearDuplicate]) -> None:
    """Write which queries were dropped for which, the least alike first: these to be looked at.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        with Path(path).open("w", encoding="utf-8-sig", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["similarity", "dropped", "count", "kept"])
            for pair in sorted(dropped, key=lambda pair: pair.similarity):
                texts = [protect(query.text) for query in (pair.dropped, pair.kept)]
                writer.writerow([f"{pair.similarity:.3f}", texts[0], pair.dropped.count, texts[1]])
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=str(path)) from error


def _joined(entries: Sequence[LogEntry]) -> DistinctQuery:
    spellings = Counter(entry.text for entry in entries)
    clicks = Counter(document for entry in entries for document in entry.clicked)
    return DistinctQuery(
        text=min(spellings, key=lambda text: (-spellings[text], text)),
        count=len(entries),
        users=len({entry.user for entry in entries if entry.user}),
        clicked=tuple(sorted(clicks, key=lambda document: (-clicks[document], document))),
    )


def _with(query: DistinctQuery, others: Sequence[DistinctQuery]) -> DistinctQuery:
    """Return a query with the counts and clicks of the near duplicates that it stands for."""
    alike = (query, *others)
    return replace(
        query,
        count=sum(each.count for each in alike),
        users=sum(each.users for each in alike),
        clicked=tuple(dict.fromkeys(id_ for each in alike for id_ in each.clicked)),
    )


def _differ(first: str, second: str) -> bool:
    """Return whether two queries ask for different things, however alike their letters are."""
    if _NUMBER.findall(first) != _NUMBER.findall(second):
        return True
    if bool(_NEGATION.search(first)) != bool(_NEGATION.search(second)):
        return True
    words, others = first.split(), second.split()
    return words != others and sorted(words) == sorted(others)
