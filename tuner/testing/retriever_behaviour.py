"""Checks of how a retriever behaves: repeated, pickled, under a policy, and when asked wrongly."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

from tuner.core.corpus import Query
from tuner.core.errors import TunerError
from tuner.core.policy import Policy, WordRule, features
from tuner.core.rankings import Rankings
from tuner.core.trial import Params
from tuner.retrieval.base import Retriever, serve_one
from tuner.retrieval.wrapped.policy import PolicyRetriever
from tuner.testing.contract import need
from tuner.testing.retriever_case import RetrieverCase
from tuner.testing.retriever_shape import check_rows

NO_KNOB = "no_such_knob"


def check_no_query_no_row(case: RetrieverCase) -> None:
    """Check that an empty batch has an empty answer."""
    rankings = case.retriever.retrieve([], dict(case.params[0]))
    check_rows(rankings, [], case.params[0])


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
    check_rows(turned, [query.id for query in backwards], params)
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
            check_rows(answer, [query.id for query in case.queries], params)
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
    policy = Policy(dict(one), types, WordRule({"one": 1.0, "other": 0.0}, words))
    rankings = PolicyRetriever(case.retriever, policy).retrieve(case.queries, {})
    check_rows(rankings, [query.id for query in case.queries], {})
    if not case.is_deterministic:
        return
    by_type = {"one": case.answers[0][1], "other": case.answers[-1][1]}
    for row, query in enumerate(case.queries):
        chosen = policy.rule.classify(query.text)
        need(
            rankings.ids(row) == by_type[chosen].ids(row),
            f"under a policy {query.id!r} gets other documents than with its own parameters "
            f"{types[chosen]}",
        )


def check_single_query(case: RetrieverCase) -> None:
    """Check that a query can be asked alone, as serving does."""
    params = dict(case.params[0])
    query = case.queries[0]
    check_rows(serve_one(case.retriever, query, params), [query.id], params)


def _check_same(queries: Sequence[Query], got: Rankings, wanted: Rankings, what: str) -> None:
    for row, query in enumerate(queries):
        need(
            got.ids(row) == wanted.ids(row),
            f"{what}: {query.id!r} gets {got.ids(row)[:5]} instead of {wanted.ids(row)[:5]} "
            "(declare is_deterministic=False where this cannot be helped)",
        )
