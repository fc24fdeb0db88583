"""Runs as arrays: read once, kept on disk, and mapped into the memory of every worker."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.checks import LARGEST_NUMBER
from tuner.core.errors import Problem, refuse
from tuner.core.rankings import NO_DOCUMENT, BoolArray, FloatArray, IntArray
from tuner.retrieval.hybrid.batch import Recent
from tuner.retrieval.hybrid.cache import read_array, write_array

Answer = Mapping[str, float] | Sequence[str]
"""What a run says of one query: document -> score, or the documents, best first."""
Run = Mapping[str, Answer]


@dataclass(frozen=True, eq=False)
class Leg:
    """One run for some queries.

    Attributes:
        scores: shape (queries, depth), best first; 0 fills.
        lengths: shape (queries,), how many documents the run has for each query.
        ranks: shape (queries, pool), from 0, of each document of the query's pool; ``depth`` where
            the run lacks it.
        places: the same as positions in ``scores`` with one more column, laid flat.
        recent: what was made of the scores for the last few settings.
    """

    scores: FloatArray
    lengths: IntArray
    ranks: npt.NDArray[np.int32]
    places: IntArray
    recent: Recent[Hashable, tuple[FloatArray, BoolArray]] = field(
        default_factory=lambda: Recent(4), repr=False
    )


@dataclass(frozen=True, eq=False)
class Batch:
    """Some queries in the order in which they are asked.

    ``pool``, shape (queries, pool), holds the documents that any leg has for the query: positions
    in the table's ``document_ids``, ascending, so that of equal scores the one with the greater id
    comes first; -1 fills.
    """

    pool: npt.NDArray[np.int32]
    legs: tuple[Leg, ...]


@dataclass(frozen=True, eq=False)
class Table:
    """All legs over all of their queries.

    Attributes:
        names: the legs, in the order of their names, which is the order of all sums.
        query_ids: the queries of any leg; one more row of every array is empty, for other queries.
        document_ids: the documents of any leg, in descending byte order.
        pool, scores, lengths, ranks: as in ``Batch`` and ``Leg``; one array a leg.
        token_counts: shape (documents,), or None where the texts are not known.
    """

    names: tuple[str, ...]
    query_ids: tuple[str, ...]
    document_ids: tuple[str, ...]
    pool: npt.NDArray[np.int32]
    scores: tuple[FloatArray, ...]
    lengths: tuple[IntArray, ...]
    ranks: tuple[npt.NDArray[np.int32], ...]
    token_counts: FloatArray | None = None

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {id_: row for row, id_ in enumerate(self.query_ids)}

    @classmethod
    def build(cls, runs: Mapping[str, Run], *, tokens: Mapping[str, int] | None = None) -> Table:
        """Lay runs out as arrays; ``tokens`` counts those of each document's text.

        A run without scores gives its n documents n, n - 1, …, 1 (Borda's count).

        Raises:
            InputError: a leg without documents, a score that is not finite or too large, or a
                document without a text where ``tokens`` are given; with the leg's name as key.
        """
        problems = [p for name, run in runs.items() for p in _problems(name, run, tokens)]
        refuse(problems)
        names = tuple(sorted(runs))
        query_ids = tuple(sorted({query for run in runs.values() for query in run}))
        found = {id_ for run in runs.values() for answer in run.values() for id_ in answer}
        # Code points order as UTF-8's bytes do.
        document_ids = tuple(sorted(found, reverse=True))
        position = {id_: place for place, id_ in enumerate(document_ids)}
        legs = [
            [_ranked(runs[name].get(query, ()), position) for name in names] for query in query_ids
        ]
        pools = [np.unique(np.concatenate([ids for ids, _ in row])) for row in legs]
        width = max(map(len, pools))
        pool = np.full((len(pools) + 1, width), NO_DOCUMENT, dtype=np.int32)
        for row, members in enumerate(pools):
            pool[row, : len(members)] = members
        scores, lengths, ranks = [], [], []
        for place in range(len(names)):
            rows = [row[place] for row in legs]
            depth = max(len(ids) for ids, _ in rows)
            scores.append(np.zeros((len(rows) + 1, depth)))
            lengths.append(np.array([*(len(ids) for ids, _ in rows), 0], dtype=np.int64))
            ranks.append(np.full((len(rows) + 1, width), depth, dtype=np.int32))
            for row, (ids, values) in enumerate(rows):
                scores[-1][row, : len(ids)] = values
                ranks[-1][row, np.searchsorted(pools[row], ids)] = np.arange(len(ids))
        counts = None
        if tokens is not None:
            counts = np.array([float(tokens[id_]) for id_ in document_ids])
        return cls(
            names,
            query_ids,
            document_ids,
            pool,
            tuple(scores),
            tuple(lengths),
            tuple(ranks),
            counts,
        )

    def save(self, directory: Path) -> None:
        """Write the table into an empty directory."""
        arrays: dict[str, npt.NDArray[Any]] = {"pool": self.pool}
        for place in range(len(self.names)):
            arrays[f"scores_{place}"] = self.scores[place]
            arrays[f"lengths_{place}"] = self.lengths[place]
            arrays[f"ranks_{place}"] = self.ranks[place]
        if self.token_counts is not None:
            arrays["token_counts"] = self.token_counts
        for name, array in arrays.items():
            write_array(directory, name, array)
        words = {
            "names": self.names,
            "query_ids": self.query_ids,
            "document_ids": self.document_ids,
            "has_tokens": self.token_counts is not None,
        }
        (directory / "words.json").write_text(json.dumps(words), encoding="utf-8")

    @classmethod
    def load(cls, directory: Path) -> Table:
        """Read a table that ``save`` wrote; its arrays stay on disk, mapped into memory."""
        words = json.loads((directory / "words.json").read_text(encoding="utf-8"))
        names = tuple(words["names"])

        def of_legs(kind: str) -> tuple[npt.NDArray[Any], ...]:
            return tuple(read_array(directory, f"{kind}_{place}") for place in range(len(names)))

        return cls(
            names,
            tuple(words["query_ids"]),
            tuple(words["document_ids"]),
            read_array(directory, "pool"),
            of_legs("scores"),
            of_legs("lengths"),
            of_legs("ranks"),
            read_array(directory, "token_counts") if words["has_tokens"] else None,
        )

    def batch(self, query_ids: Sequence[str]) -> Batch:
        """Return the rows of these queries; a query that no leg knows has an empty one."""
        empty = len(self.query_ids)
        rows = np.array([self._row_of.get(id_, empty) for id_ in query_ids], dtype=np.int64)
        legs = zip(self.scores, self.lengths, self.ranks, strict=True)
        return Batch(
            self.pool[rows],
            tuple(
                _leg(scores[rows], lengths[rows], ranks[rows]) for scores, lengths, ranks in legs
            ),
        )


@lru_cache(maxsize=8)
def open_table(directory: Path) -> Table:
    """Load the table in ``directory`` once a process."""
    return Table.load(directory)


def open_batch(directory: Path, query_ids: tuple[str, ...]) -> Batch:
    """Select queries, once a process for the trials that ask the same ones again and again."""
    if len(query_ids) == 1:  # one by one to take their time: they would drive out all others
        return open_table(directory).batch(query_ids)
    return _remembered_batch(directory, query_ids)


@lru_cache(maxsize=8)
def _remembered_batch(directory: Path, query_ids: tuple[str, ...]) -> Batch:
    return open_table(directory).batch(query_ids)


def _leg(scores: FloatArray, lengths: IntArray, ranks: npt.NDArray[np.int32]) -> Leg:
    row_starts = np.arange(len(scores), dtype=np.int64)[:, None] * (scores.shape[1] + 1)
    return Leg(scores, lengths, ranks, row_starts + ranks)


def _ranked(answer: Answer, position: Mapping[str, int]) -> tuple[IntArray, FloatArray]:
    """Return positions and scores of one answer, best first, ties by descending id."""
    ids = np.array([position[id_] for id_ in answer], dtype=np.int64)
    if not isinstance(answer, Mapping):
        return ids, np.arange(len(ids), 0, -1, dtype=np.float64)
    scores = np.array(list(answer.values()), dtype=np.float64)
    order = np.lexsort((ids, -scores))
    return ids[order], scores[order]


def _problems(name: str, run: Run, tokens: Mapping[str, int] | None) -> list[Problem]:
    key = ("legs", name)
    if not any(run.values()):
        return [Problem("the run holds no document", key=key)]
    for query, answer in run.items():
        for document in answer:
            if tokens is not None and document not in tokens:
                message = (
                    f"query {query!r}: the document {document!r} is not in the data set's corpus; "
                    "give the corpus that was searched, or judgements alone (format: qrels)"
                )
                return [Problem(message, key=key)]
        if not isinstance(answer, Mapping):
            continue
        for document, score in answer.items():
            if not abs(score) <= LARGEST_NUMBER:  # neither is NaN
                message = (
                    f"query {query!r}, document {document!r}: the score is {score!r}; "
                    f"it must be a number of at most {LARGEST_NUMBER:g}"
                )
                return [Problem(message, key=key)]
    return []
