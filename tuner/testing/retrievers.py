"""The contract of retrievers: what they declare, the form of their answers, how they behave."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tuner.core.checks import is_number
from tuner.core.corpus import Query
from tuner.core.errors import TunerError
from tuner.core.policy import Policy, WordRule, features
from tuner.core.rankings import NO_DOCUMENT, Rankings
from tuner.core.trial import Params
from tuner.retrieval.base import Retriever, serve_one
from tuner.retrieval.knobs import Knob, knob_params
from tuner.retrieval.wrapped.policy import PolicyRetriever
from tuner.testing.contract import Contract, check_all, checks_in, need
from tuner.testing.free_knobs import need_computed


@dataclass(frozen=True)
class RetrieverCase:
    """One retriever to check. ``make`` is called once, when the first check needs it.

    Attributes:
        make: builds the retriever.
        queries: at least two, with different answers; one that finds nothing is a good third.
        params: the parameter sets to try, each with the knobs that differ from their defaults.
        document_ids: every id that the retriever may return.
        is_deterministic: whether the same question must get the same answer again. A retriever
            that cannot promise this is let off the checks that compare two answers.
    """

    make: Callable[[], Retriever] = field(repr=False)
    queries: Sequence[Query]
    params: Sequence[Params] = ({},)
    document_ids: Collection[str] = field(kw_only=True, repr=False)
    is_deterministic: bool = field(default=True, kw_only=True)

    @cached_property
    def retriever(self) -> Retriever:
        """Return the one retriever of this case, with its queries prepared."""
        retriever = self.make()
        retriever.prepare(self.queries)
        return retriever

    @cached_property
    def answers(self) -> tuple[tuple[Params, Rankings], ...]:
        """Return the answer to all queries for each parameter set, in order."""
        return tuple(
            (params, self.retriever.retrieve(self.queries, dict(params))) for params in self.params
        )


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
        need_rows(rankings, wanted, params)


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
    """Check the optional parts of rankings: times, tokens, spans, graph use, entities and paths."""
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
        if rankings.spans is not None:
            spans, shape = np.asarray(rankings.spans), (*np.shape(rankings.documents), 2)
            need(spans.shape == shape, f"spans have shape {spans.shape} instead of {shape}")
            need(bool((spans[..., 0] <= spans[..., 1]).all()), f"spans end first with {params}")
            need(bool((spans >= 0).all()), f"spans begin before their text with {params}")
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


def need_rows(rankings: Rankings, wanted: Sequence[str], params: Params) -> None:
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
    if default is None and knob.suggested is not None:  # the system does without it
        return
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


NO_KNOB = "no_such_knob"


def check_no_query_no_row(case: RetrieverCase) -> None:
    """Check that an empty batch has an empty answer."""
    rankings = case.retriever.retrieve([], dict(case.params[0]))
    need_rows(rankings, [], case.params[0])


def check_same_answer_twice(case: RetrieverCase) -> None:
    """Check that the same question gets the same answer again."""
    if not case.is_deterministic:
        return
    for params, first in case.answers:
        again = case.retriever.retrieve(case.queries, dict(params))
        _check_same(case.queries, again, first, f"the same question again, with {params}")


def check_queries_stand_alone(case: RetrieverCase) -> None:
    """Check that a query's answer does not depend on the batch's size or order."""
    if not case.is_deterministic:
        return
    params, first = case.answers[0]
    backwards = list(reversed(case.queries))
    turned = case.retriever.retrieve(backwards, dict(params))
    need_rows(turned, [query.id for query in backwards], params)
    for row, query in enumerate(case.queries):
        mirror = len(backwards) - 1 - row
        need(
            turned.ids(mirror) == first.ids(row),
            f"{query.id!r} gets other documents when the batch comes in another order: "
            f"{turned.ids(mirror)[:5]} instead of {first.ids(row)[:5]}",
        )
    half = list(case.queries)[: max(1, len(case.queries) // 2)]
    part = case.retriever.retrieve(half, dict(params))
    _check_same(half, part, first, "a part of the batch")


def check_trials_leave_no_trace(case: RetrieverCase) -> None:
    """Check that the first parameters are answered the same after all others were tried."""
    if not case.is_deterministic or len(case.params) < 2:
        return
    (params, first), *_ = case.answers
    again = case.retriever.retrieve(case.queries, dict(params))
    _check_same(case.queries, again, first, f"{params} after other parameters")


def check_defaults_are_filled_in(case: RetrieverCase) -> None:
    """Check that parameters left out are answered as if their defaults were given."""
    defaults = {knob.name: knob.default for knob in case.retriever.knobs}
    without = case.retriever.retrieve(case.queries, {})
    given = case.retriever.retrieve(case.queries, defaults)
    if case.is_deterministic:
        _check_same(case.queries, given, without, "the knobs' defaults, spelled out")


def check_unknown_knob_is_refused(case: RetrieverCase) -> None:
    """Check that a parameter that does not exist is an error that names it."""
    params: Params = {**case.params[0], NO_KNOB: 1}
    try:
        case.retriever.retrieve(case.queries, params)
    except TunerError as error:
        need(NO_KNOB in str(error), f"the error must name the unknown parameter, not {error}")
        return
    except Exception as error:
        kind = type(error).__name__
        raise AssertionError(
            f"an unknown parameter must raise an InputError that names it, not {kind}: {error}"
        ) from error
    raise AssertionError(
        f"the parameter {NO_KNOB!r} does not exist, and was accepted and ignored; check params "
        "with tuner.retrieval.knobs.knob_params"
    )


def check_params_are_left_alone(case: RetrieverCase) -> None:
    """Check that the caller's mapping is not written to."""
    for params in case.params:
        given = dict(params)
        case.retriever.retrieve(case.queries, given)
        need(given == dict(params), f"retrieve changed its argument from {params} to {given}")


def check_pickling(case: RetrieverCase) -> None:
    """Check that a copy, as a worker process gets it, answers the same; before use and after."""
    for _ in range(2):  # the first round's use must not leave what cannot be pickled
        copy: Retriever = pickle.loads(pickle.dumps(case.retriever))
        for params, first in case.answers:
            answer = copy.retrieve(case.queries, dict(params))
            need_rows(answer, [query.id for query in case.queries], params)
            if case.is_deterministic:
                _check_same(case.queries, answer, first, f"a pickled copy with {params}")
    pickle.loads(pickle.dumps(copy))


def check_policy(case: RetrieverCase) -> None:
    """Check that each query is answered with the parameters of its own type."""
    one, other = case.params[0], case.params[-1]
    types = {"one": dict(one), "other": dict(other)}
    # Every other query is told by the words that only such queries have.
    plain = {word for query in case.queries[1::2] for word in features(query.text)}
    own = {word for query in case.queries[::2] for word in features(query.text)} - plain
    words = {word: {"other": 2.0} for word in sorted(own)}
    rule = WordRule({"one": 1.0, "other": 0.0}, words)
    policy = Policy(dict(one), types, rule)
    rankings = PolicyRetriever(case.retriever, policy).retrieve(case.queries, {})
    need_rows(rankings, [query.id for query in case.queries], {})
    if not case.is_deterministic:
        return
    by_type = {"one": case.answers[0][1], "other": case.answers[-1][1]}
    for row, query in enumerate(case.queries):
        chosen = rule.classify(query.text)
        need(
            rankings.ids(row) == by_type[chosen].ids(row),
            f"under a policy {query.id!r} gets other documents than with its own parameters "
            f"{types[chosen]}",
        )


def check_single_query(case: RetrieverCase) -> None:
    """Check that a query can be asked alone, as serving does."""
    params = dict(case.params[0])
    query = case.queries[0]
    need_rows(serve_one(case.retriever, query, params), [query.id], params)


def check_free_knobs(case: RetrieverCase) -> None:
    """Check that what is declared free is so, at values all over the ranges of its knobs."""
    if case.is_deterministic:
        for params in case.params:
            need_computed(case.retriever, case.queries, params)


def _check_same(queries: Sequence[Query], got: Rankings, wanted: Rankings, what: str) -> None:
    for row, query in enumerate(queries):
        need(
            got.ids(row) == wanted.ids(row),
            f"{what}: {query.id!r} gets {got.ids(row)[:5]} instead of {wanted.ids(row)[:5]} "
            "(declare is_deterministic=False where this cannot be helped)",
        )


CHECKS = checks_in(__name__)
"""Every check of a retriever, in the order in which a failure is best understood."""


def check_retriever(case: RetrieverCase) -> None:
    """Run every check of the contract of retrievers, as ``check_all`` does."""
    check_all(CHECKS, case)


class RetrieverContract(Contract):
    """The contract of retrievers as tests of pytest's; ``case`` is a ``RetrieverCase``."""

    checks = CHECKS
