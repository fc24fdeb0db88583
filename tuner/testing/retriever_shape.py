"""Checks of what a retriever declares and of the form of its answers."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tuner.core.checks import is_number
from tuner.core.rankings import NO_DOCUMENT, Rankings
from tuner.core.trial import Params
from tuner.retrieval.knobs import Knob, knob_params
from tuner.testing.contract import need
from tuner.testing.retriever_case import RetrieverCase


def check_knobs(case: RetrieverCase) -> None:
    """Check that knobs have names of their own, ranges that mean something, and their defaults."""
    knobs = case.retriever.knobs
    need(isinstance(knobs, tuple), f"knobs must be a tuple of Knob, not a {_kind(knobs)}")
    for knob in knobs:
        need(isinstance(knob, Knob), f"knobs must hold Knob records, not a {_kind(knob)}")
        _check_knob(knob)
    names = [knob.name for knob in knobs]
    twice = sorted({name for name in names if names.count(name) > 1})
    need(not twice, f"two knobs are called {', '.join(map(repr, twice))}")
    if knobs:
        need(bool(knob_params({}, knobs)), "the knobs' defaults must be valid parameters")


def check_fingerprint(case: RetrieverCase) -> None:
    """Check that the fingerprint is text and that a copy of the retriever has the same one."""
    first = case.retriever.fingerprint
    need(isinstance(first, str) and bool(first), f"the fingerprint must be text, not {first!r}")
    need(case.retriever.fingerprint == first, "the fingerprint differs from one look to the next")
    copy = pickle.loads(pickle.dumps(case.retriever))
    need(copy.fingerprint == first, "the fingerprint of a pickled copy differs")


def check_one_row_a_query(case: RetrieverCase) -> None:
    """Check that row i answers ``queries[i]`` and that short rows are filled at their end."""
    wanted = [query.id for query in case.queries]
    for params, rankings in case.answers:
        check_rows(rankings, wanted, params)


def check_ids_are_known(case: RetrieverCase) -> None:
    """Check that every returned id is text and one of ``document_ids``."""
    known = set(case.document_ids)
    for query, params, ids in _rows(case):
        for id_ in ids:
            need(isinstance(id_, str), f"ids must be text; {query!r} got {id_!r} with {params}")
            need(id_ in known, f"{query!r} got {id_!r} with {params}: no document has this id")


def check_no_document_twice(case: RetrieverCase) -> None:
    """Check that no ranking holds a document twice."""
    for query, params, ids in _rows(case):
        twice = sorted({id_ for id_ in ids if ids.count(id_) > 1})
        need(not twice, f"{query!r} got {', '.join(twice)} more than once with {params}")


def check_scores_fall(case: RetrieverCase) -> None:
    """Check that scores, where there are any, are numbers and do not rise along a ranking."""
    for params, rankings in case.answers:
        if rankings.scores is None:
            continue
        scores, documents = np.asarray(rankings.scores), np.asarray(rankings.documents)
        need(
            scores.shape == documents.shape,
            f"scores have shape {scores.shape}, the documents {documents.shape}",
        )
        for query, row, filled in zip(case.queries, scores, documents != NO_DOCUMENT, strict=True):
            values = row[filled]
            need(not np.isnan(values).any(), f"{query.id!r} got a NaN score with {params}")
            rises = np.flatnonzero(values[1:] > values[:-1])
            need(
                rises.size == 0,
                f"the scores of {query.id!r} rise with {params}, from {_pair(values, rises)}: "
                "the best document stands first, and a higher score is better",
            )


def check_what_is_reported(case: RetrieverCase) -> None:
    """Check the optional parts of rankings: times, tokens, graph use, entities and paths."""
    count = len(case.queries)
    for params, rankings in case.answers:
        for stage, spent in rankings.seconds.items():
            need(
                isinstance(stage, str) and math.isfinite(spent) and spent >= 0,
                f"seconds[{stage!r}] is {spent!r} with {params}; a time is needed",
            )
        if rankings.context_tokens is not None:
            tokens = np.asarray(rankings.context_tokens)
            need(tokens.shape == (count,), f"context_tokens have shape {tokens.shape}")
            need(
                bool((np.isfinite(tokens) & (tokens >= 0)).all()),
                f"context_tokens must be numbers from 0 up with {params}",
            )
        if rankings.graph_used is not None:
            used = np.asarray(rankings.graph_used)
            need(
                used.shape == (count,) and used.dtype == np.bool_,
                f"graph_used must hold one boolean a query, not {used.dtype} of {used.shape}",
            )
        for name in ("entities", "paths"):
            part: Sequence[Any] | None = getattr(rankings, name)
            need(
                part is None or len(part) == count,
                f"{name} must hold one list a query with {params}",
            )


def check_rows(rankings: Rankings, wanted: Sequence[str], params: Params) -> None:
    """Check that rankings answer exactly these queries, in this order, in the form of Rankings."""
    got = list(rankings.query_ids)
    need(
        len(got) == len(wanted), f"{len(wanted)} queries were asked, {len(got)} answered: {params}"
    )
    for row, (asked, answered) in enumerate(zip(wanted, got, strict=True)):
        need(
            asked == answered,
            f"row {row} answers query {answered!r}, but {asked!r} was asked; keep the order",
        )
    documents = np.asarray(rankings.documents)
    need(documents.ndim == 2, f"documents must have two dimensions, not {documents.ndim}")
    need(len(documents) == len(wanted), f"documents have {len(documents)} rows: {params}")
    need(documents.dtype.kind in "iu", f"documents must hold positions, not {documents.dtype}")
    need(
        bool(((documents >= NO_DOCUMENT) & (documents < len(rankings.document_ids))).all()),
        f"documents hold positions outside document_ids with {params}",
    )
    is_filled = documents != NO_DOCUMENT
    need(
        not (is_filled[:, 1:] & ~is_filled[:, :-1]).any(),
        f"-1 may only stand at the end of a row, after the last document: {params}",
    )


def _rows(case: RetrieverCase) -> Iterator[tuple[str, Params, list[str]]]:
    for params, rankings in case.answers:
        for row, query in enumerate(case.queries):
            yield query.id, params, rankings.ids(row)


def _check_knob(knob: Knob) -> None:
    name = f"knob {knob.name!r}"
    need(bool(knob.name) and isinstance(knob.name, str), f"{name}: its name must be text")
    if knob.kind == "categorical":
        need(bool(knob.choices), f"{name} has no choices")
        need(knob.default in knob.choices, f"{name}: {knob.default!r} is not one of its choices")
        return
    default = knob.default
    need(
        is_number(default),
        f"{name}: the default must be a number, not {default!r}",
    )
    low = -math.inf if knob.low is None else knob.low
    high = math.inf if knob.high is None else knob.high
    need(low <= high, f"{name}: low {low:g} is above high {high:g}")
    need(
        low <= float(default or 0) <= high,
        f"{name}: the default {default!r} lies outside {low:g} to {high:g}",
    )
    need(knob.scale != "log" or low > 0, f"{name}: a log scale needs a low above 0")


def _pair(values: Any, rises: Any) -> str:
    place = int(rises[0]) if len(rises) else 0
    return f"{values[place]:g} at rank {place + 1} to {values[place + 1]:g}" if len(rises) else ""


def _kind(value: object) -> str:
    return type(value).__name__
