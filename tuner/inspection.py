"""What a study should know of the system that it tunes: does it find anything, and by what."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tuner.assemble import Assembly
from tuner.core.corpus import Query
from tuner.core.parameters import Categorical, Parameter
from tuner.core.rankings import Rankings
from tuner.core.space import SearchSpace
from tuner.core.trial import Params, Scalar, Trial
from tuner.retrieval.base import Measures

Retrieve = Callable[[Sequence[Query], Params], Rankings]

# A knob is turned to so many other values, and looked at on so many queries: together they cost
# less than one trial where knobs work.
OTHER_VALUES = 3
PROBED_QUERIES = 10
SHOWN_IDS = 3
# A graph that answers fewer than this share of the queries is worth a word.
MOSTLY = 0.95


def nothing_found(assembly: Assembly, trial: Trial) -> str | None:
    """Say why tuning is of no use where a trial found nothing relevant for any query, else None.

    Zeros throughout mean an empty index, or ids that are not those of the judgements, and not a
    configuration that is merely bad.
    """
    retriever = assembly.retriever
    metrics = {name: trial.metrics.get(name) for name in assembly.plan.objective.weights}
    if isinstance(retriever, Measures) or not trial.is_scored or any(metrics.values()):
        return None
    queries = assembly.tune_queries
    returned: list[str] = []
    for query in _spread(queries, PROBED_QUERIES):
        returned += retriever.retrieve([query], {**assembly.fixed, **trial.params}).ids(0)
        if len(returned) >= SHOWN_IDS:
            break
    judged = [id_ for query in queries for id_ in assembly.dataset.qrels.get(query.id, {})]
    found = (
        f"it returned {_some(returned)}, and judged are {_some(judged)}: are these the same ids?"
        if returned
        else "it returned nothing at all: is its index empty?"
    )
    return (
        f"the first evaluation found no relevant document for any of the {len(queries)} queries, "
        f"so there is nothing to tune; {found}"
    )


def remarks(assembly: Assembly, chosen: Params, trials: Sequence[Trial]) -> list[str]:
    """Return, in sentences, what a reader of the result should know of the system."""
    return [*_graph_remarks(trials), *_dead_knob_remarks(assembly, chosen, trials)]


def dead_knobs(
    retrieve: Retrieve,
    queries: Sequence[Query],
    space: SearchSpace,
    at: Params,
    *,
    trials: Sequence[Trial] | None = None,
) -> list[str]:
    """Return the parameters that change no ranking: each is turned by itself, from ``at``.

    On up to 10 queries and to up to 3 other values, spread over the range. Parameters that are not
    active at ``at``, or cannot be turned within the space's constraints, are left out. With
    ``trials`` only values with which one of them was scored: what failed could crash or hang the
    process that asks.
    """
    tried = None if trials is None else _scored_values(trials)
    sample = _spread(queries, PROBED_QUERIES)
    before = None
    dead = []
    for name, parameter in space.parameters.items():
        turned = [
            params
            for value in _other_values(
                parameter, at.get(name), None if tried is None else tried.get(name, [])
            )
            if name in at and space.contains(params := {**at, name: value})
        ]
        if not turned:
            continue
        if before is None:
            before = _answers(retrieve, sample, at)
        if all(_answers(retrieve, sample, params) == before for params in turned):
            dead.append(name)
    return dead


def _dead_knob_remarks(
    assembly: Assembly, chosen: Params, trials: Sequence[Trial]
) -> Iterator[str]:
    retriever = assembly.retriever
    if isinstance(retriever, Measures):
        return
    fixed = assembly.fixed

    def retrieve(queries: Sequence[Query], params: Params) -> Rankings:
        return retriever.retrieve(queries, {**fixed, **params})

    space = assembly.plan.space
    for name in dead_knobs(retrieve, assembly.tune_queries, space, chosen, trials=trials):
        yield (
            f"{name} changes no ranking around the chosen configuration: take it out of the space, "
            "or look whether the system reads it"
        )


def _graph_remarks(trials: Sequence[Trial]) -> Iterator[str]:
    rates = [t.metrics["graph_used"] for t in trials if t.is_scored and "graph_used" in t.metrics]
    if rates and max(rates) < MOSTLY:
        yield (
            f"the graph contributed to {max(rates):.0%} of the queries at most; the others were "
            "answered without it"
        )


def _answers(retrieve: Retrieve, queries: Sequence[Query], params: Params) -> list[list[str]]:
    rankings = retrieve(queries, params)
    return [rankings.ids(row) for row in range(len(queries))]


def _scored_values(trials: Sequence[Trial]) -> dict[str, list[Any]]:
    """Return, by parameter, the values of the scored trials, each once."""
    values: dict[str, dict[Any, None]] = {}
    for trial in trials:
        for name, value in trial.params.items() if trial.is_scored else ():
            values.setdefault(name, {})[value] = None
    return {name: list(found) for name, found in values.items()}


def _other_values(
    parameter: Parameter, value: Scalar | None, tried: Sequence[Any] | None
) -> list[Scalar]:
    if isinstance(parameter, Categorical):
        known = parameter.choices if tried is None else [c for c in parameter.choices if c in tried]
        others: list[Scalar] = [choice for choice in known if choice != value]
        return others[:OTHER_VALUES]
    if tried is None:
        places: list[Scalar] = [parameter.at(place) for place in (0.0, 1.0, 0.5)]
    else:
        ordered = sorted(tried)
        places = [*ordered[:1], *ordered[-1:], *ordered[len(ordered) // 2 :][:1]]
    return [other for other in dict.fromkeys(places) if other != value]


def _spread(queries: Sequence[Query], count: int) -> list[Query]:
    places = np.unique(np.linspace(0, len(queries) - 1, count).astype(np.int64))
    return [queries[place] for place in places] if queries else []


def _some(ids: Sequence[str]) -> str:
    return ", ".join(repr(id_) for id_ in itertools.islice(dict.fromkeys(ids), SHOWN_IDS)) + ", …"
