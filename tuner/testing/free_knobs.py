"""What is declared free is so: a computed answer is the one that the retriever gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tuner.core.corpus import Query
from tuner.core.rankings import Rankings
from tuner.core.trial import Params, Scalar
from tuner.retrieval.base import Retriever, free_knobs, telling_legs
from tuner.retrieval.computed import answer_at, leg_problem
from tuner.retrieval.free import FreeKnobs
from tuner.retrieval.knobs import Knob, knob_params
from tuner.testing.contract import need

# Where in its range a knob is looked at.
_PLACES = (0.0, 0.37, 0.8, 1.0)


def need_computed(retriever: Retriever, queries: Sequence[Query], params: Params) -> None:
    """Check that answers at other values of free knobs are those that one answer tells of.

    Knobs that are numbers count as searched, all others are as ``params`` or their defaults have
    them.

    Raises:
        AssertionError: where a computed answer is another one.
    """
    numbers = {
        knob.name: knob
        for knob in retriever.knobs
        if knob.kind != "categorical"
        and knob.stage == "query"
        and None not in (knob.low, knob.high)
    }
    values = knob_params(params, retriever.knobs)
    fixed = {name: value for name, value in values.items() if name not in numbers}
    free = free_knobs(retriever, fixed, tuple(numbers)).only(numbers)
    if not free.names:
        return
    told = {
        **{name: _at(numbers[name], 1.0) for name in free.prefixes},
        **{name: _at(numbers[name], 0.0) for name in free.cutoffs},
        **{name: _at(numbers[name], 0.5) for name in free.weights},
    }
    asked = {**values, **told}
    answer = telling_legs(retriever).retrieve(queries, asked)
    if free.mixing is not None:
        problem = leg_problem(free.mixing, answer.legs)
        need(problem is None, f"{', '.join(free.weights)} are declared free, and {problem}")
    for turned in _others(free, numbers):
        setting = {**asked, **turned}
        given = retriever.retrieve(queries, dict(setting))
        _need_same(queries, answer_at(free, answer, setting), given, turned)


def _others(free: FreeKnobs, knobs: dict[str, Knob]) -> Iterator[Params]:
    """Yield other values of each free knob alone, and then of all at once."""
    for name in free.names:
        for place in _PLACES:
            yield {name: _at(knobs[name], place)}
    yield {name: _at(knobs[name], 0.37) for name in free.names}


def _at(knob: Knob, place: float) -> Scalar:
    low, high = float(knob.low or 0.0), float(knob.high or 0.0)
    value = low + place * (high - low)
    return round(value) if knob.kind == "integer" else value


def _need_same(
    queries: Sequence[Query], computed: Rankings, given: Rankings, turned: Params
) -> None:
    for row, query in enumerate(queries):
        need(
            computed.ids(row) == given.ids(row),
            f"with {turned} {query.id!r} gets {given.ids(row)[:5]}, and what is declared free "
            f"tells of {computed.ids(row)[:5]}",
        )
    for name in ("context_tokens", "graph_used"):
        wanted, got = getattr(given, name), getattr(computed, name)
        need(
            wanted is None or (got is not None and bool(np.array_equal(wanted, got))),
            f"with {turned} {name} is {wanted}, and what is declared free tells of {got}",
        )
