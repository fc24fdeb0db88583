"""What a study should know of the system that it tunes: does it find anything, and by what."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from tuner.core import calls
from tuner.core.corpus import Query
from tuner.core.policy import POLICY
from tuner.core.rankings import Rankings
from tuner.core.shown import as_percent
from tuner.core.space import Categorical, Parameter, SearchSpace
from tuner.core.trial import Params, Scalar, Trial
from tuner.evaluation.system_metrics import served_ms
from tuner.retrieval.base import Measures, at_once_of
from tuner.retrieval.indexes import indexed_in
from tuner.run.assembly import Assembly
from tuner.study.results import BASELINE_ARM

Item = TypeVar("Item")
Retrieve = Callable[[Sequence[Query], Params], Rankings]
# Says whether parameters can be asked as things are.
IsThere = Callable[[Params], bool]

# A knob is turned to so many other values, and looked at on so many queries: together they cost
# less than one trial where knobs work.
OTHER_VALUES = 3
PROBED_QUERIES = 10
# A knob that is dead around the chosen configuration is turned at so many others: the weight of a
# leg changes nothing where the other leg has none.
OTHER_PLACES = 2
# So often a query is timed by itself: a pause of the machine, or a new connection, is not its time.
TIMED_QUERIES = 2
# Where a query takes so long, a user pays for it: with waiting, or, for a service, with money.
SLOW_QUERY_MS = 50.0
SHOWN_IDS = 3
# So many evaluations without a hit are no accident.
TRIALS_WITHOUT_HIT = 10
# A graph that answers fewer than this share of the queries is worth a word.
MOSTLY = 0.95


def everywhere(params: Params) -> bool:  # noqa: ARG001  # the form of an IsThere
    """Take every index for one that is there."""
    return True


class NothingFound:
    """Doubts a study that finds nothing: called with each told trial, says why not to go on.

    Zeros throughout mean an empty index, or ids that are not those of the judgements: then the
    first trial is enough. Where the system returns documents of this data set, a configuration may
    just be bad, so ten trials without a hit are waited for. After one hit nothing is doubted again.
    ``earlier`` are trials of the study that a run before this one has told.
    """

    def __init__(self, assembly: Assembly, earlier: Sequence[Trial] = ()) -> None:
        self._assembly = assembly
        self._names = tuple(assembly.plan.objective.weights)
        is_measured = isinstance(assembly.retriever, Measures)
        self._is_over = is_measured or any(map(self._has_hit, earlier))
        # A run that was killed goes on counting; one that ended at the tenth begins anew.
        self._without_hit = sum(trial.is_scored for trial in earlier) % TRIALS_WITHOUT_HIT
        self._is_first = True

    def __call__(self, trial: Trial) -> str | None:
        """Return the reason to stop, or None."""
        if self._is_over or not trial.is_scored:
            return None
        if self._has_hit(trial):
            self._is_over = True
            return None
        self._without_hit += 1
        is_first, self._is_first = self._is_first, False
        if is_first or self._without_hit == TRIALS_WITHOUT_HIT:
            return self._reason(trial)
        return None

    def _has_hit(self, trial: Trial) -> bool:
        return trial.is_scored and any(trial.metrics.get(name) for name in self._names)

    def _reason(self, trial: Trial) -> str | None:
        assembly = self._assembly
        retriever = assembly.counting(calls.NOTHING_FOUND).retriever
        assert not isinstance(retriever, Measures)
        queries = assembly.tune_queries
        returned: list[str] = []
        for query in spread(queries, PROBED_QUERIES):
            try:
                answer = retriever.retrieve([query], {**assembly.fixed, **trial.params})
            except Exception:  # whatever is wrong, the trials will tell; and the next is looked at
                self._without_hit -= 1
                return None
            returned += answer.ids(0)
        judged = [id_ for query in queries for id_ in assembly.dataset.qrels.get(query.id, {})]
        known = {document.id for document in assembly.dataset.corpus.documents}.union(judged)
        is_known = not known.isdisjoint(returned)
        if is_known and self._without_hit < TRIALS_WITHOUT_HIT:
            return None
        count = "evaluation" if self._without_hit == 1 else f"{self._without_hit} evaluations"
        budget = assembly.config.objective.budget_tokens
        if not returned:
            found = "it returned nothing at all: is its index empty?"
        elif not is_known:
            found = (
                f"it returned {_some(returned)}, and judged are {_some(judged)}: are these the "
                "same ids?"
            )
        elif budget is not None:
            found = f"is a budget of {budget} tokens (objective.budget_tokens) too small?"
        else:
            found = (
                f"it returned documents of the data set ({_some(returned)}), but none that is "
                f"relevant ({_some(judged)}): are these the judgements of these queries? If so, "
                "give a baseline that finds some"
            )
        return (
            f"the first {count} found no relevant document for any of the {len(queries)} queries, "
            f"so there is nothing to tune; {found}"
        )


def remarks(assembly: Assembly, chosen: Params, trials: Sequence[Trial]) -> list[str]:
    """Return, in sentences, what a reader of the result should know of the system.

    Parameters without effect are looked for as ``inspection`` says; by default unless a query took
    50 ms or more.
    """
    return [
        *_baseline_remarks(assembly, trials),
        *_graph_remarks(trials),
        *_knob_remarks(assembly, chosen, trials),
    ]


def most_inspected(assembly: Assembly) -> int:
    """Return how many queries are asked at most to find parameters without effect.

    None by default where the run has a budget of queries or of money.
    """
    setting, knobs = assembly.config.inspection, len(assembly.plan.space.names)
    if setting == "off" or (setting == "auto" and assembly.config.budget.is_of_queries):
        return 0
    places = 1 + OTHER_PLACES  # the chosen configuration, and others for a parameter that is dead
    return PROBED_QUERIES * (places * (1 + OTHER_VALUES) * knobs)


def _knob_remarks(assembly: Assembly, chosen: Params, trials: Sequence[Trial]) -> Iterator[str]:
    setting = assembly.config.inspection
    if setting == "off" or isinstance(assembly.retriever, Measures):
        return
    if setting == "auto" and assembly.config.budget.is_of_queries:
        yield (
            "parameters without effect were not looked for, since the run has a budget of queries "
            "or of money. To look all the same, write inspection: on"
        )
        return
    took_ms = 0.0 if setting == "on" else query_ms(assembly, chosen, trials)
    if setting == "auto" and took_ms >= SLOW_QUERY_MS:
        most = PROBED_QUERIES * (1 + OTHER_VALUES * len(assembly.plan.space.names))
        yield (
            f"parameters without effect were not looked for: that asks up to {most} queries, of "
            f"{took_ms:.0f} ms each. To look all the same, write inspection: on"
        )
        return
    yield from _dead_knob_remarks(assembly.counting(calls.DEAD_KNOBS), chosen, trials)


def query_ms(assembly: Assembly, chosen: Params, trials: Sequence[Trial]) -> float:
    """Return how long a query takes: as in the trials of a study, the median of the scored ones.

    A query of those that are answered side by side takes longer than its share of the time; and it
    waits for the others, of its own trial and of those beside it. So where that time is long, up to
    two queries are asked by themselves, and the quicker one tells. 0 where nothing was scored.
    """
    if isinstance(assembly.retriever, Measures):
        return 0.0
    queries = len(assembly.tune_queries)
    at_once = at_once_of(assembly.retriever) or 1
    rounds = math.ceil(queries / at_once)
    spent = [t.seconds["retrieve"] for t in trials if t.is_scored and "retrieve" in t.seconds]
    in_trials = 1000.0 * float(np.median(spent)) / rounds if spent else 0.0
    is_alone = at_once == 1 and assembly.plan.execution.slots == 1
    if in_trials < SLOW_QUERY_MS or is_alone:
        return in_trials
    retriever = assembly.counting(calls.QUERY_TIME).retriever
    assert not isinstance(retriever, Measures)
    alone = in_trials
    for query in spread(assembly.tune_queries, TIMED_QUERIES):
        alone = min(alone, served_ms(retriever, query, {**assembly.fixed, **chosen}))
        if alone < SLOW_QUERY_MS:
            break
    return alone


def dead_knobs(
    retrieve: Retrieve,
    queries: Sequence[Query],
    space: SearchSpace,
    at: Params,
    *,
    trials: Sequence[Trial] | None = None,
    is_there: IsThere = everywhere,
) -> list[str]:
    """Return the parameters that change no ranking: each is turned by itself, from ``at``.

    On up to 10 queries and to up to 3 other values, spread over the range. Parameters that are not
    active at ``at``, or cannot be turned within the space's constraints, are left out. With
    ``trials`` only values with which one of them was scored: what failed could crash or hang the
    process that asks. Only where ``is_there`` says so: to look, no index is built.
    """
    sample = spread(queries, PROBED_QUERIES)
    changes = _changes(retrieve, sample, space, at, space.parameters, trials, is_there)
    return [name for name, is_seen in changes if not is_seen]


def _changes(
    retrieve: Retrieve,
    sample: Sequence[Query],
    space: SearchSpace,
    at: Params,
    names: Iterable[str],
    trials: Sequence[Trial] | None,
    is_there: IsThere,
) -> Iterator[tuple[str, bool]]:
    """Yield each parameter that can be turned, and whether that changes a ranking."""
    if not is_there(at):
        return
    tried = None if trials is None else _scored_values(trials)
    before = None
    for name in names:
        known = None if tried is None else tried.get(name, [])
        turned = [
            params
            for value in _other_values(space.parameters[name], at.get(name), known)
            if name in at and space.contains(params := {**at, name: value}) and is_there(params)
        ]
        if not turned:
            continue
        if before is None:
            before = _answers(retrieve, sample, at)
        yield name, any(_answers(retrieve, sample, params) != before for params in turned)


def is_alive_elsewhere(
    retrieve: Retrieve,
    queries: Sequence[Query],
    space: SearchSpace,
    name: str,
    chosen: Params,
    trials: Sequence[Trial],
    *,
    is_there: IsThere = everywhere,
) -> bool:
    """Say whether a parameter changes a ranking at one of two other scored trials."""
    sample = spread(queries, PROBED_QUERIES)
    others = [t.params for t in trials if t.is_scored and name in t.params and t.params != chosen]
    return any(
        is_seen
        for at in spread(others, OTHER_PLACES)
        for _, is_seen in _changes(retrieve, sample, space, at, [name], trials, is_there)
    )


def _dead_knob_remarks(
    assembly: Assembly, chosen: Params, trials: Sequence[Trial]
) -> Iterator[str]:
    retriever = assembly.retriever
    if isinstance(retriever, Measures):
        return
    fixed = assembly.fixed

    def retrieve(queries: Sequence[Query], params: Params) -> Rankings:
        return retriever.retrieve(queries, {**fixed, **params})

    indexed = indexed_in(retriever)

    def is_there(params: Params) -> bool:
        return indexed is None or POLICY in params or indexed.is_there({**fixed, **params})

    queries, space = assembly.tune_queries, assembly.plan.space
    for name in dead_knobs(retrieve, queries, space, chosen, trials=trials, is_there=is_there):
        if is_alive_elsewhere(retrieve, queries, space, name, chosen, trials, is_there=is_there):
            yield (
                f"{name} changes no ranking around the chosen configuration, but does around "
                "others: any value of it will do"
            )
        else:
            yield (
                f"{name} changes no ranking around the chosen configuration: take it out of the "
                "space, or look whether the system reads it"
            )


def _baseline_remarks(assembly: Assembly, trials: Sequence[Trial]) -> Iterator[str]:
    for trial in trials:
        if trial.arm == BASELINE_ARM and assembly.baseline is not None and not trial.is_scored:
            yield (
                f"the baseline could not be evaluated ({trial.error}), so there is nothing to "
                "compare with, and no verdict"
            )


def _graph_remarks(trials: Sequence[Trial]) -> Iterator[str]:
    rates = [t.metrics["graph_used"] for t in trials if t.is_scored and "graph_used" in t.metrics]
    if rates and max(rates) < MOSTLY:
        yield (
            f"the graph contributed to {as_percent(max(rates))} of the queries at most; the "
            "others were answered without it"
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


def spread(items: Sequence[Item], count: int) -> list[Item]:
    """Return so many items, evenly spread over all."""
    places = np.unique(np.linspace(0, len(items) - 1, count).astype(np.int64))
    return [items[place] for place in places] if items else []


def _some(ids: Sequence[str]) -> str:
    return ", ".join(repr(id_) for id_ in itertools.islice(dict.fromkeys(ids), SHOWN_IDS)) + ", …"
