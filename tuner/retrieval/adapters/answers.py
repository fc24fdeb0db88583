"""From what an outside system answers to rankings; whatever is doubtful fails, and says why."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from tuner.core.corpus import Corpus, Query
from tuner.core.errors import TunerError
from tuner.core.ledger import Hear, hearer
from tuner.core.rankings import Rankings
from tuner.core.shown import shortened
from tuner.core.words import count_tokens
from tuner.retrieval.wrapped.kept_legs import LEGS, with_legs

Passages = Mapping[str, int] | None
"""Document id -> tokens of its passage."""
Span = tuple[int, int]
"""Characters ``[begin, end)`` of a document's text."""

# Quicker answers are told of together: telling takes a tenth of that.
QUICK_S = 0.002
_SHOWN = 60


@dataclass(frozen=True)
class Answer:
    """One query's answer, best first. ``scores`` are as many as ``ids``, or None.

    ``spans`` are as many as ``ids``, or None: which characters of its document's text each one is.
    ``tokens`` are, too: what each adds to the context.
    ``legs`` holds the scores of what each leg found, by its name, where the system tells.
    """

    ids: tuple[str, ...]
    scores: tuple[float, ...] | None = None
    context_tokens: float | None = None
    graph_used: bool | None = None
    spans: tuple[Span, ...] | None = None
    tokens: tuple[float, ...] | None = None
    legs: Mapping[str, Mapping[str, float]] | None = None


def passage_tokens(corpus: Corpus) -> Passages:
    """Return the ids that an answer may hold, each with the tokens of its passage.

    None where the data set has no documents; then any id is taken.
    """
    counts = {d.id: count_tokens(f"{d.title} {d.text}") for d in corpus.documents}
    return counts or None


def read_answer(raw: Any, known: Passages) -> Answer:
    """Read one query's answer: a list of results, or ``{"results": […], "context_tokens": …}``.

    There ``legs`` may be what the results were mixed from: name -> list of results with scores.

    A result is an id, a pair (id, score), or ``{"id": …, "score": …, "span": [begin, end],
    "tokens": …}``; scores are for all results or for none, higher is better, and so are spans and
    tokens. A number as id is its text. Of a repeated id the first place counts. An empty list is an
    answer: nothing was found.

    Raises:
        TunerError: not such a list; an id that no document has; a score that is missing, NaN or
            above the one before it; a span that is missing, or ends ahead of its begin.
    """
    if isinstance(raw, Mapping):
        return _read_mapping(raw, known)
    results = [_read_result(result, place) for place, result in enumerate(_list(raw), start=1)]
    for column, article in enumerate(("a score", "a span", "tokens"), start=1):
        told = sum(result[column] is not None for result in results)
        if 0 < told < len(results):
            raise TunerError(f"{told} of {len(results)} results have {article}; give all or none")
    found: dict[str, tuple[float | None, Span | None, float | None]] = {}
    last = math.inf
    for place, (id_, score, raw_span, tokens) in enumerate(results, start=1):
        if known is not None and id_ not in known:
            raise TunerError(f"result {place}: {_unknown(id_, known)}")
        if score is not None:
            last = _checked(score, last, place)
        span = None if raw_span is None else _checked_span(raw_span, place)
        if tokens is not None and not _is_count(tokens):
            raise TunerError(
                f"the tokens of result {place} are {_typed(tokens)}, no number from 0 up"
            )
        found.setdefault(id_, (None if score is None else last, span, tokens))
    scores = [score for score, _, _ in found.values() if score is not None]
    spans = [span for _, span, _ in found.values() if span is not None]
    counts = [float(tokens) for _, _, tokens in found.values() if tokens is not None]
    return Answer(
        tuple(found),
        tuple(scores) if scores else None,
        spans=tuple(spans) if spans else None,
        tokens=tuple(counts) if counts else None,
    )


def rankings_of(
    queries: Sequence[Query],
    answers: Sequence[Answer],
    known: Passages,
    seconds: Mapping[str, float],
) -> Rankings:
    """Put answers, one a query, into rankings; where none tells its tokens they are counted.

    Raises:
        TunerError: ``context_tokens``, ``graph_used``, spans or a leg are there for some queries
            only.
    """
    rankings = Rankings.from_ids(
        [query.id for query in queries],
        [answer.ids for answer in answers],
        seconds=dict(seconds),
        context_tokens=_of_all([answer.context_tokens for answer in answers], "context_tokens"),
        graph_used=_of_all([answer.graph_used for answer in answers], "graph_used"),
    )
    rankings = with_tokens(_with_counts(rankings, answers), known)
    rankings = _with_spans(rankings, answers)
    rankings = _with_legs(rankings, answers, known)
    if any(answer.ids and answer.scores is None for answer in answers):
        return rankings
    scores = np.full(rankings.documents.shape, np.nan)
    for row, answer in enumerate(answers):
        scores[row, : len(answer.ids)] = answer.scores or ()
    return replace(rankings, scores=scores)


@dataclass(frozen=True, eq=False)
class Collected:
    """The answers of a batch, by row; who counts or keeps them hears of them as they come.

    Those of a system that answers within ``QUICK_S`` are told together.
    """

    queries: Sequence[Query]
    known: Passages
    hear: Hear = field(default_factory=hearer)
    answers: dict[int, Answer] = field(default_factory=dict)
    _untold: list[int] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _began: float = field(default_factory=time.perf_counter)

    def take(self, answers: Sequence[Answer], row: int) -> None:
        """Take the answers of one request, which is that of the queries from a row on."""
        rows = range(row, row + len(answers))
        with self._lock:
            self.answers.update(zip(rows, answers, strict=True))
            self._untold.extend(rows)
            per_answer_s = (time.perf_counter() - self._began) / max(len(self.answers), 1)
        if per_answer_s >= QUICK_S:
            self.tell()

    def tell(self) -> None:
        """Tell of the answers that nobody has heard of yet."""
        with self._lock:
            rows = sorted(self._untold)
            self._untold.clear()
        if rows:
            with suppress(TunerError):  # what does not fit together is not kept
                self.hear(self.rankings(rows))

    def rankings(self, rows: Sequence[int]) -> Rankings:
        """Return some of the answers as rankings.

        Raises:
            TunerError: they do not fit together.
        """
        asked, answers = [self.queries[row] for row in rows], [self.answers[row] for row in rows]
        return rankings_of(asked, answers, self.known, {})


@contextmanager
def collected(queries: Sequence[Query], known: Passages) -> Iterator[Collected]:
    """Give a batch's answers a place; a failure takes along what was answered before it."""
    found = Collected(queries, known)
    try:
        yield found
    except TunerError as error:
        if rows := sorted(found.answers):
            with suppress(TunerError):
                error.answered = found.rankings(rows)
        raise
    finally:
        found.tell()


def with_tokens(rankings: Rankings, known: Passages) -> Rankings:
    """Return rankings with their context tokens, counted where the system does not tell them.

    What is counted is told of each passage, so that shorter contexts can be priced as well.

    Raises:
        TunerError: an id that no document has.
    """
    if known is None:
        return rankings
    rows = [rankings.ids(row) for row in range(len(rankings.query_ids))]
    for row, query_id in zip(rows, rankings.query_ids, strict=True):
        for id_ in row:
            if id_ not in known:
                raise TunerError(f"query {query_id!r}: {_unknown(id_, known)}")
    if rankings.context_tokens is not None:
        return rankings
    tokens = np.zeros(rankings.documents.shape)
    for place, ids in enumerate(rows):
        tokens[place, : len(ids)] = [known[id_] for id_ in ids]
    return replace(rankings, context_tokens=tokens.sum(axis=1), tokens=tokens)


def shown(value: Any) -> str:
    """Return a value as text that is short enough for an error."""
    text = repr(value) if not isinstance(value, str) else value
    return shortened(" ".join(text.split()), _SHOWN)


def _typed(value: Any) -> str:
    """Return a value that has the wrong type so that it shows: the string '0.9' is no 0.9."""
    return f"the string {shown(value)!r}" if isinstance(value, str) else shown(value)


def _read_mapping(raw: Mapping[Any, Any], known: Passages) -> Answer:
    if "results" not in raw:
        names = ", ".join(map(str, raw)) or "nothing"
        raise TunerError(f"the answer has no `results`, but {shown(names)}")
    answer = read_answer(_list(raw["results"]), known)
    tokens, used = raw.get("context_tokens"), raw.get("graph_used")
    if tokens is not None and not _is_count(tokens):
        raise TunerError(f"context_tokens is {_typed(tokens)}, not a number from 0 up")
    if used is not None and not isinstance(used, bool | np.bool_):
        raise TunerError(f"graph_used is {_typed(used)}, not true or false")
    if answer.spans is not None and raw.get(LEGS) is not None:
        raise TunerError(
            "results have a span, and there are legs: of a document that a leg found nobody knows "
            "which part; leave one of both out"
        )
    return replace(
        answer,
        context_tokens=None if tokens is None else float(tokens),
        graph_used=None if used is None else bool(used),
        legs=None if raw.get(LEGS) is None else _read_legs(raw[LEGS], known),
    )


def _read_legs(raw: Any, known: Passages) -> dict[str, dict[str, float]]:
    if not isinstance(raw, Mapping) or not raw:
        raise TunerError(f"legs is {_typed(raw)}, not each leg's name with its results")
    legs: dict[str, dict[str, float]] = {}
    for name, results in raw.items():
        try:
            leg = read_answer(_list(results), known)
        except TunerError as error:
            raise TunerError(f"leg {shown(name)!r}: {error}") from error
        scores = leg.scores or ()
        if len(scores) < len(leg.ids) or not all(map(math.isfinite, scores)):
            raise TunerError(f"leg {shown(name)!r}: each result needs a score that is finite")
        legs[str(name)] = dict(zip(leg.ids, scores, strict=True))
    return legs


def _with_counts(rankings: Rankings, answers: Sequence[Answer]) -> Rankings:
    """Return rankings with the tokens of each passage, where the answers tell them."""
    told = {answer.tokens is not None for answer in answers if answer.ids}
    if len(told) > 1:
        raise TunerError("tokens were reported for some queries and not for others")
    if told != {True}:
        return rankings
    tokens = np.zeros(rankings.documents.shape)
    for row, answer in enumerate(answers):
        tokens[row, : len(answer.ids)] = answer.tokens or ()
    if rankings.context_tokens is None:
        rankings = replace(rankings, context_tokens=tokens.sum(axis=1))
    return replace(rankings, tokens=tokens)


def _with_spans(rankings: Rankings, answers: Sequence[Answer]) -> Rankings:
    """Return rankings with their spans; an answer without results tells what the others tell."""
    told = {answer.spans is not None for answer in answers if answer.ids}
    if len(told) > 1:
        raise TunerError("span was reported for some queries and not for others")
    if told == {False}:
        return rankings
    spans = np.zeros((*rankings.documents.shape, 2), dtype=np.int64)
    for row, answer in enumerate(answers):
        if answer.spans is not None:
            spans[row, : len(answer.spans)] = answer.spans
    return replace(rankings, spans=spans)


def _with_legs(rankings: Rankings, answers: Sequence[Answer], known: Passages) -> Rankings:
    """Return rankings with their legs. Of equal scores the document with the lower id is first."""
    told = [answer.legs for answer in answers if answer.legs is not None]
    if not told:
        return rankings
    names = tuple(told[0])
    if len(told) < len(answers) or any(set(legs) != set(names) for legs in told):
        raise TunerError(
            "legs were reported for some queries and not for others; a leg that found nothing is "
            "an empty list"
        )
    # Words stand for tokens where the system counts none of its own.
    is_counted = rankings.tokens is not None and all(one.tokens is None for one in answers)
    records = []
    for legs in told:
        ids = sorted({id_ for leg in legs.values() for id_ in leg})
        scores = {name: [legs[name].get(id_, math.nan) for id_ in ids] for name in names}
        record: dict[str, Any] = {"ids": ids, "scores": scores}
        if known is not None and is_counted:
            record["tokens"] = [known[id_] for id_ in ids]
        records.append({LEGS: record})
    return with_legs(rankings, records)


def _unknown(id_: str, known: Mapping[str, int]) -> str:
    return f"no document of the data set has the id {shown(id_)!r} (one that has: {min(known)!r})"


def _list(raw: Any) -> list[Any]:
    if isinstance(raw, list | tuple | np.ndarray):
        return list(raw)
    kind = "nothing" if raw is None else f"{type(raw).__name__} {shown(raw)}"
    raise TunerError(f"a list of document ids is needed, the answer is {kind}")


def _read_result(result: Any, place: int) -> tuple[Any, ...]:
    """Return the id of a result, and its score, span and tokens as they stand there, or None."""
    match result:
        case {"id": id_}:
            told = (result.get(name) for name in ("score", "span", "tokens"))
            return _id(id_, place), *told
        case [id_, score]:
            return _id(id_, place), score, None, None
        case _:
            return _id(result, place), None, None, None


def _id(value: Any, place: int) -> str:
    if isinstance(value, str):
        return str(value)
    if not isinstance(value, bool) and isinstance(value, Integral):
        return str(int(value))
    hint, metadata = "", getattr(value, "metadata", None)
    if isinstance(metadata, Mapping):
        names = ", ".join(map(repr, metadata)) or "nothing"
        hint = f' (return its .metadata["id"], or where its id stands: its metadata holds {names})'
    wanted = "an id, or an id with a score, is needed"
    raise TunerError(f"result {place} is {_typed(value)}; {wanted}{hint}")


def _checked(score: Any, last: float, place: int) -> float:
    if not _is_number(score) or math.isnan(score):
        raise TunerError(f"the score of result {place} is {_typed(score)}, not a number")
    if score > last:
        raise TunerError(
            f"the scores rise from {last:g} to {float(score):g} at result {place}: the best "
            "document must stand first and have the highest score (are these distances?)"
        )
    return float(score)


def _checked_span(span: Any, place: int) -> Span:
    edges = list(span) if isinstance(span, list | tuple | np.ndarray) else []
    if all(isinstance(edge, Integral) and not isinstance(edge, bool) for edge in edges):
        match edges:
            case [begin, end] if 0 <= begin <= end < 1 << 31:
                return int(begin), int(end)
    raise TunerError(
        f"the span of result {place} is {_typed(span)}; [begin, end] is needed, the characters of "
        "the document's text from 0 on that were retrieved, `end` not included"
    )


def _is_count(value: Any) -> bool:
    return _is_number(value) and 0 <= float(value) < math.inf


def _is_number(value: Any) -> bool:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return False
    try:
        float(value)
    except OverflowError:  # a whole number may be larger than any other
        return False
    return True


def _of_all(values: Sequence[float | bool | None], name: str) -> Any:
    if all(value is None for value in values):
        return None
    if any(value is None for value in values):
        raise TunerError(f"{name} was reported for some queries and not for others")
    return np.array(values)
