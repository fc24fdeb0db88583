"""Answers that are kept on the disk: a repeated or resumed trial pays only for what is missing."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from tuner.core.corpus import Query
from tuner.core.errors import TunerError
from tuner.core.files import append_lines
from tuner.core.json_text import digest_of, read_as
from tuner.core.ledger import Ledger, hearing
from tuner.core.rankings import ByCount, Rankings
from tuner.core.trial import Params
from tuner.retrieval.base import Retriever, at_once_of, identity, serve_one
from tuner.retrieval.wrapped.around import Around
from tuner.retrieval.wrapped.counted import Counted, CountTokens, counted
from tuner.retrieval.wrapped.kept_legs import LEGS, WrittenLegs, legs_record, with_legs

# What is lost at most when a run is killed, or a query fails: the queries that one call asks.
BATCH = 64
# Where queries are answered one by one, a call asks fewer, in order to take about so long; but two
# rounds of those that it asks at once, so that few wait for the slowest.
CALL_S = 5.0
ROUNDS = 2
# Quicker answers are not kept: reading them back would take as long as asking again.
QUICK_S = 0.002
AGAIN = "again"

Answer = dict[str, Any]


@dataclass(frozen=True)
class _Written:
    """What a line of the file holds; a number that is no number is null, or NaN."""

    query: str
    ids: tuple[str, ...]
    scores: tuple[float, ...] = ()
    context_tokens: float = 0.0
    graph_used: bool = False
    entities: tuple[str, ...] = ()
    paths: tuple[tuple[tuple[str, ...], ...], ...] = ()
    tokens: tuple[float, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()
    legs: WrittenLegs | None = None
    counts: tuple[int, ...] = ()
    contexts: tuple[float, ...] = ()


class Remembered(Around):
    """A retriever whose answers are kept in a folder, one file a set of parameters.

    Queries are asked in batches of up to 64, and each batch is on the disk before the next is
    asked; of one that fails, what was answered before. A system that answers a query within 2 ms is
    asked directly, unless ``is_paid``: each answer may cost money, or counts in a budget. These are
    on the disk as they come, where the retriever tells of them. Where the folder is not there (on
    another machine of a cluster), nothing is kept. Legs of answers, which may be many times as
    large, are kept and returned where they are wanted: see ``telling_legs``.
    """

    def __init__(self, retriever: Retriever, folder: Path, *, is_paid: bool = False) -> None:
        self.retriever = retriever
        self._folder = folder
        self._is_paid = is_paid
        self._is_quick = False
        self._keeps_legs = False
        self._query_s = math.inf  # of the last call; unknown, so the first one asks few

    @property
    def keeps(self) -> bool:
        """Say whether answers are kept, as far as that is known: some are, or will be."""
        return self._is_paid or (self._folder.is_dir() and any(self._folder.iterdir()))

    def asked_again(self) -> Remembered:
        """Return the retriever past what is remembered; its second answers are kept apart."""
        folder = self._folder / AGAIN
        if self._folder.is_dir():
            folder.mkdir(exist_ok=True)
        return Remembered(self.retriever, folder, is_paid=self._is_paid)

    def counting(
        self, purpose: str, ledger: Ledger, count_tokens: CountTokens | None = None
    ) -> Remembered:
        """Return the same, with what is asked of the retriever itself counted for a purpose."""
        counting = counted(self.retriever, purpose, ledger, count_tokens)
        same = Remembered(counting, self._folder, is_paid=self._is_paid)
        same._is_quick, same._query_s = self._is_quick, self._query_s
        same._keeps_legs = self._keeps_legs
        return same

    def telling_legs(self) -> Self:
        """Return the same, whose answers carry legs: one that was kept without is asked again."""
        same = super().telling_legs()
        same._keeps_legs = True
        return same

    def retrieve(self, queries: Sequence[Query], params: Params) -> Rankings:
        """Answer from the folder, and ask the retriever for the rest."""
        if self._is_quick:
            return self.retriever.retrieve(queries, params)
        path = self._path(params)
        known = self._known(path)
        missing = [query for query in queries if query.id not in known]
        if isinstance(self.retriever, Counted):
            self.retriever.tell_kept(len(queries) - len(missing))
        seconds: dict[str, float] = {}
        while missing:
            size = self._batch_size()
            batch, missing = missing[:size], missing[size:]
            part = self._ask(batch, params, path)
            if len(batch) == len(queries):
                return part
            known |= {answer["query"]: answer for answer in _answers(part)}
            for stage, spent in part.seconds.items():
                seconds[stage] = seconds.get(stage, 0.0) + spent
        return _rankings([known[query.id] for query in queries], seconds)

    def kept(self, queries: Sequence[Query], params: Params, *, again: bool = False) -> int:
        """Return to how many of these queries an answer is kept; ``again``: a second one."""
        path = self._path(params)
        known = self._known(path.parent / AGAIN / path.name if again else path)
        return sum(query.id in known for query in queries)

    def serve(self, query: Query, params: Params) -> Rankings:
        """Ask the retriever itself: a remembered answer says nothing of its latency."""
        return serve_one(self.retriever, query, params)

    def _path(self, params: Params) -> Path:
        of_index = identity(self.retriever, params)
        asked = [self.retriever.fingerprint, params, *([of_index] if of_index else [])]
        return self._folder / f"{digest_of(asked, 24)}.jsonl"

    def _known(self, path: Path) -> dict[str, Answer]:
        """Return what a file holds of the answers, by query: with legs, or without."""
        known = _read(path)
        if self._keeps_legs:
            return {query: answer for query, answer in known.items() if LEGS in answer}
        for answer in known.values():
            answer.pop(LEGS, None)
        return known

    def _batch_size(self) -> int:
        at_once = at_once_of(self.retriever)
        if at_once is None:
            return BATCH
        return min(BATCH, max(ROUNDS * at_once, int(CALL_S / self._query_s)))

    def _ask(self, queries: Sequence[Query], params: Params, path: Path) -> Rankings:
        begin = time.perf_counter()
        written = set[str]()

        def keep(rankings: Rankings) -> None:
            new = [a for a in _answers(self._wanted(rankings)) if a["query"] not in written]
            if new and self._folder.is_dir():
                written.update(answer["query"] for answer in new)
                _append(path, new, waits=len(written) == len(queries))

        try:
            # What is paid for is kept as it comes; else it may be too quick to be kept at all.
            with hearing(keep) if self._is_paid else nullcontext():
                rankings = self._wanted(self.retriever.retrieve(queries, params))
        except TunerError as error:
            if isinstance(error.answered, Rankings):
                keep(error.answered)
            raise
        elapsed_s = max(time.perf_counter() - begin, 1e-9)
        self._query_s = elapsed_s / len(queries)
        # Of queries that are answered side by side, each takes longer than its share of the time.
        rounds = math.ceil(len(queries) / (at_once_of(self.retriever) or 1))
        self._is_quick = not self._is_paid and elapsed_s / rounds < QUICK_S
        if not self._is_quick:
            keep(rankings)
        return rankings

    def _wanted(self, rankings: Rankings) -> Rankings:
        return rankings if self._keeps_legs else replace(rankings, legs=None)


def _answers(rankings: Rankings) -> Iterator[Answer]:
    for row, query_id in enumerate(rankings.query_ids):
        ids = rankings.ids(row)
        answer: Answer = {"query": query_id, "ids": ids}
        if rankings.scores is not None:
            answer["scores"] = [float(score) for score in rankings.scores[row, : len(ids)]]
        if rankings.context_tokens is not None:
            answer["context_tokens"] = float(rankings.context_tokens[row])
        if rankings.spans is not None:
            answer["spans"] = rankings.spans[row, : len(ids)].tolist()
        if rankings.graph_used is not None:
            answer["graph_used"] = bool(rankings.graph_used[row])
        if rankings.entities is not None:
            answer["entities"] = list(rankings.entities[row])
        if rankings.paths is not None:
            answer["paths"] = [[list(step) for step in path] for path in rankings.paths[row]]
        if rankings.tokens is not None:
            answer["tokens"] = rankings.tokens[row, : len(ids)].tolist()
        if (by_count := rankings.by_count) is not None:
            answer["counts"] = by_count.ranks[row, : len(ids)].tolist()
            if by_count.context_tokens is not None:
                answer["contexts"] = by_count.context_tokens[row].tolist()
        if rankings.legs is not None:
            answer[LEGS] = legs_record(rankings.legs, rankings.document_ids, row)
        yield answer


def _rankings(answers: Sequence[Answer], seconds: Mapping[str, float]) -> Rankings:
    extra: dict[str, Any] = {"seconds": seconds}
    lists = [answer["ids"] for answer in answers]
    if _all_have(answers, "scores"):
        scores = np.full((len(lists), max(map(len, lists), default=0)), np.nan)
        for row, answer in enumerate(answers):
            scores[row, : len(answer["scores"])] = answer["scores"]
        extra["scores"] = scores
    if _all_have(answers, "context_tokens"):
        extra["context_tokens"] = np.array([answer["context_tokens"] for answer in answers])
    if _all_have(answers, "spans"):
        spans = np.zeros((len(lists), max(map(len, lists), default=0), 2), dtype=np.int64)
        for row, answer in enumerate(answers):
            spans[row, : len(answer["spans"])] = np.reshape(answer["spans"], (-1, 2))
        extra["spans"] = spans
    if _all_have(answers, "graph_used"):
        extra["graph_used"] = np.array([answer["graph_used"] for answer in answers], dtype=bool)
    if _all_have(answers, "entities"):
        extra["entities"] = [answer["entities"] for answer in answers]
    if _all_have(answers, "paths"):
        paths = ([[tuple(step) for step in path] for path in a["paths"]] for a in answers)
        extra["paths"] = list(paths)
    if _all_have(answers, "tokens"):
        tokens = np.zeros((len(lists), max(map(len, lists), default=0)))
        for row, answer in enumerate(answers):
            tokens[row, : len(answer["tokens"])] = answer["tokens"]
        extra["tokens"] = tokens
    if _all_have(answers, "counts"):
        told = [answer["contexts"] for answer in answers if "contexts" in answer]
        counts = [answer["counts"] for answer in answers]
        extra["by_count"] = ByCount.of(counts, told if len(told) == len(answers) else None)
    rankings = Rankings.from_ids([answer["query"] for answer in answers], lists, **extra)
    return with_legs(rankings, answers)


def _all_have(answers: Sequence[Answer], key: str) -> bool:
    return bool(answers) and all(key in answer for answer in answers)


def _read(path: Path) -> dict[str, Answer]:
    """Read what a file holds; a line that a killed run left unfinished is passed over."""
    known: dict[str, Answer] = {}
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return known
    for line in lines[:-1]:
        try:
            answer = json.loads(line)
            written = read_as(_Written, answer)
            if len(written.scores) not in (0, len(written.ids)):
                raise ValueError("scores of other documents")
            if len(written.tokens) not in (0, len(written.ids)):
                raise ValueError("tokens of other documents")
            if len(written.counts) not in (0, len(written.ids)):
                raise ValueError("counts of other documents")
            if len(written.spans) not in (0, len(written.ids)):
                raise ValueError("spans of other documents")
            if written.legs is not None and not written.legs.is_whole:
                raise ValueError("legs of other documents")
        except (ValueError, RecursionError):  # two torn lines that were joined, or a damaged one
            continue
        known[answer["query"]] = answer
    return known


def _append(path: Path, answers: Iterable[Answer], *, waits: bool) -> None:
    lines = "".join(json.dumps(a, ensure_ascii=False) + "\n" for a in answers)
    append_lines(path, lines, waits=waits)
