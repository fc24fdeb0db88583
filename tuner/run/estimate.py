"""What a study will take, told before it runs: how many indexes, and, after a look, how long."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tuner.backends import by_index
from tuner.backends.grid import Grid
from tuner.core.calls import EVALUATION
from tuner.core.corpus import Query
from tuner.core.errors import TunerError
from tuner.core.index_costs import size
from tuner.core.policy import Policy
from tuner.core.shown import counted, joined
from tuner.core.space import SearchSpace
from tuner.core.steps import duration
from tuner.core.trial import IndexUse, Params
from tuner.evaluation.free.settings import told_by
from tuner.retrieval.base import Measures, at_once_of
from tuner.retrieval.indexes import indexed_in
from tuner.retrieval.wrapped.around import is_engine
from tuner.run.assembly import Assembly
from tuner.run.forecast import Asking, asking, given_trials, searched_trials
from tuner.run.free import Settled, expected
from tuner.run.inspection import spread
from tuner.run.planning import decided_by_clock, fitted_arms
from tuner.run.trials import trial_evaluator
from tuner.study.results import EARLIER_ARM

Setting = tuple[Any, ...]


@dataclass(frozen=True)
class PlannedIndexes:
    """How many indexes a study may build.

    Attributes:
        parameters: those of the index that are tuned.
        by_grid: how many different ones the points of its grids need; None where it has no grid.
        coarser: what the grids leave out of parameters of the index, for the budget of indexes.
        most: no study of this configuration needs more, the baseline's included.
        why: what sets that bound.
    """

    parameters: tuple[str, ...]
    by_grid: int | None
    most: int
    why: str
    coarser: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """Return it for people."""
        coarser = f" (coarser for it: {', '.join(self.coarser)})" if self.coarser else ""
        grid = "" if self.by_grid is None else f"{self.by_grid:,} by the grid{coarser}, "
        return f"{grid}at most {self.most:,} in all ({self.why})"


@dataclass(frozen=True)
class Probe:
    """What a few queries took, and what a study would by that.

    ``asked`` of the ``queries`` of one evaluation were asked, in ``asked_s``; ``seconds`` is what
    all of them take, without their index, and ``starting_s`` what it takes until a process is there
    that builds another one. ``computing_s`` is what computing free parameters takes a trial, where
    that was seen. ``study_s`` and ``megabytes`` take every trial for evaluated and every
    index for built. ``asking`` is what that asks and costs; None of a system that measures itself.
    """

    asked: int
    asked_s: float
    queries: int
    seconds: float
    index: IndexUse | None
    trials: int
    at_once: int
    indexes: PlannedIndexes | None
    starting_s: float = 0.0
    computing_s: float = 0.0
    asking: Asking | None = None

    @property
    def study_s(self) -> float:
        """Return the seconds of all trials, as many at once as there may be, and of all indexes."""
        trial_s = self.seconds + self.computing_s
        return math.ceil(self.trials / self.at_once) * trial_s + self._index_s

    @property
    def megabytes(self) -> float:
        """Return the 10^6 bytes of all indexes; 0 where the system tells of none."""
        return 0.0 if self.index is None else self._built * self.index.megabytes

    @property
    def sentences(self) -> list[str]:
        """Return what was found, for people."""
        of_it = ""
        if self.index is not None and self.indexes is not None:
            of_it = (
                f"; its index took {duration(self.index.seconds)} and {size(self.index.megabytes)}"
            )
            if self.starting_s:
                of_it += f", and a process for another one starts in {duration(self.starting_s)}"
        asked = f" of {counted(self.queries, 'query', 'queries')}" if self.queries else ""
        took = f"one evaluation{asked} took {duration(self.seconds)}"
        if self.asked < self.queries:
            some = f"{counted(self.asked, 'query', 'queries')} took {duration(self.asked_s)}"
            took = f"{some}, so one evaluation{asked} takes about {duration(self.seconds)}"
        told = [f"{took}{of_it}"]
        parts = [f"{counted(self.trials, 'trial')}, {self.at_once} at a time"]
        if self.computing_s:
            parts.append(f"{duration(self.computing_s)} of each to compute what is free")
        if of_it:
            parts.append(f"{counted(self._built, 'index', 'indexes')} {duration(self._index_s)}")
        room = f", and {size(self.megabytes)} on the disk" if of_it else ""
        told.append(f"so the search takes about {duration(self.study_s)}{room} ({joined(parts)})")
        if self.asking is not None:
            tokens, asking = self.asking.all_tokens, self.asking
            of_them = "" if tokens is None else f", with {tokens:,.0f} tokens of contexts"
            told.append(f"it asks {asking.sentence}{of_them}")
            told += filter(None, [asking.within(self.study_s)])
        return told

    def to_record(self) -> dict[str, Any]:
        """Return the figures as a JSON-ready mapping."""
        asking = {} if self.asking is None else self.asking.to_record()
        return {
            "asked": self.asked,
            "asked_seconds": self.asked_s,
            "queries": self.queries,
            "evaluation_seconds": self.seconds,
            "computing_seconds": self.computing_s,
            "index_seconds": None if self.index is None else self.index.seconds,
            "index_starting_seconds": self.starting_s,
            "index_mb": None if self.index is None else self.index.megabytes,
            "study_seconds": self.study_s,
            "study_index_mb": self.megabytes,
            **asking,
        }

    @property
    def _built(self) -> int:
        return 1 if self.indexes is None else self.indexes.most

    @property
    def _index_s(self) -> float:
        # One index is there already, and waiting for several at once is no quicker on one machine.
        one_s = 0.0 if self.index is None else self.index.seconds + self.starting_s
        return (self._built - 1) * one_s


def facts_of(assembly: Assembly, settled: Settled, starts: Sequence[Params] = ()) -> dict[str, Any]:
    """Return what is known of a study and its system.

    ``settled`` says what of it is free, and ``starts`` are asked before the search.
    """
    plan, dataset = assembly.plan, assembly.dataset.summary()
    record = assembly.dataset_record()
    if "labels" in record:
        record["labels"] = record["labels"]["told"]
    size, seed = plan.space.size(), assembly.config.study.seed
    indexes = planned_indexes(assembly, starts)
    given = given_trials(assembly, starts)
    asked = asking(assembly, starts, indexes=0 if indexes is None else indexes.most)
    grids = {
        arm.name: arm.backend.described(plan.space)
        for arm in fitted_arms(plan, assembly.baseline, assembly.config.index.budget)
        if isinstance(arm.backend, Grid)
    }
    return {
        "dataset": {**record, "fingerprint": record["fingerprint"][:12]} if record else "none",
        "query_types": dict(dataset.query_types),
        "difficulties": dict(dataset.difficulties),
        "retriever": assembly.config.retriever.kind,
        "parameters": {
            knob.name: f"{knob.default} by default"
            + (", of the index" if knob.stage == "index" else "")
            + ("" if knob.name in plan.space.names else ", not tuned")
            for knob in assembly.retriever.knobs
        },
        "points_in_the_space": "infinitely many" if size is None else size,
        **({} if assembly.config.dataset is None else settled.facts),
        "metrics": ", ".join(plan.metric_names),
        **({} if indexes is None else {"indexes": indexes.sentence}),
        "trials": {
            **({EARLIER_ARM: given} if given else {}),
            **{name: budget for name, _, budget in plan.arms},
        },
        **({"grids": grids} if grids else {}),
        **({} if asked is None else {"queries_to_ask": asked.sentence}),
        "reproducible": decided_by_clock(assembly.config) or f"from seed {seed}",
        "baseline": assembly.baseline or "none; add one to see what tuning is worth",
    }


def planned_indexes(assembly: Assembly, starts: Sequence[Params] = ()) -> PlannedIndexes | None:
    """Return how many indexes a study may build; None where no parameter of the index is tuned.

    ``starts`` are asked before the search.
    """
    plan, budget = assembly.plan, assembly.config.index.budget
    space = plan.space
    if not space.index:
        return None
    policy = assembly.policy
    asked = [assembly.baseline or {}] if policy is None else policy.choices
    first = {_setting(assembly, params) for params in (*asked, *starts)}
    grids, trials, searched = set(first), 0, 0
    coarser: list[str] = []
    for whole, arm in zip(plan.arms, fitted_arms(plan, assembly.baseline, budget), strict=True):
        _, backend, of_it = whole
        if isinstance(arm.backend, Grid):
            # Its points do not depend on the seed, but for their order.
            points = arm.backend.suggest(space, (), count=of_it, seed=0)
            grids |= {_setting(assembly, point) for point in points}
            coarser += _fewer_levels(space, backend.suggest(space, (), count=of_it, seed=0), points)
        else:
            trials += of_it
            searched += by_index.most_asked(backend, space, of_it)
    has_grid = any(isinstance(backend, Grid) for _, backend, _ in plan.arms)
    why = "every point of the grid"
    if trials:
        why = "one a trial" if searched == trials else f"what {counted(trials, 'trial')} ask"
    bounds = [(searched + len(grids), why)]
    counts = [space.parameters[name].count for name in space.index]
    if None not in counts:
        others = sum(not _is_in(space, setting) for setting in first)
        settings = math.prod(count or 1 for count in counts)
        bounds.append((settings + others, "every setting there is"))
    if budget is not None:
        bounds.append((budget, f"index.budget: {budget}"))
    most, why = min(bounds, key=lambda bound: bound[0])
    by_grid = min(len(grids), most) if has_grid else None
    return PlannedIndexes(space.index, by_grid, most, why, tuple(coarser))


def _fewer_levels(
    space: SearchSpace, whole: Sequence[Params], left: Sequence[Params]
) -> Iterator[str]:
    for name in space.index:
        before, now = ({p[name] for p in points if name in p} for points in (whole, left))
        if len(now) < len(before):
            values = sorted(now, key=space.parameters[name].position)
            yield f"{name} has {joined([str(v) for v in values])} of {len(before)} levels"


def probe(assembly: Assembly, queries: int, starts: Sequence[Params] = ()) -> Probe:
    """Ask the baseline, or the defaults where there is none, so many queries, and take the time.

    Of parameters that are free it takes the values that a trial asks with: those that tell of all.
    The built-in engine is asked all queries to tune on: it answers a batch as fast as a few. A
    system that measures itself is asked once. ``starts`` are asked before the search.

    Raises:
        TunerError: it could not be evaluated.
    """
    choice = _as_trials_ask(assembly, assembly.choice(assembly.baseline or {}))
    index = assembly.ready(choice)
    tuned = assembly.tune_queries
    is_measured = isinstance(assembly.retriever, Measures)
    is_whole = is_measured or is_engine(assembly.retriever) or queries >= len(tuned)
    some = tuned if is_whole else spread(tuned, queries)
    counting = assembly.counting(EVALUATION)
    if is_whole:
        outcome = counting.evaluate(choice, some)
        if outcome.error is not None:
            raise TunerError(f"the baseline could not be evaluated: {outcome.error}")
        took_s = outcome.seconds["total"]
    else:
        took_s = _answered_s(counting, choice, some)
    asked = assembly.ledger.total
    computing_s = _computing_s(assembly, choice) if is_engine(assembly.retriever) else 0.0
    # Queries that are asked side by side take as long as one.
    at_once = 1 if isinstance(assembly.retriever, Measures) else at_once_of(assembly.retriever) or 1
    rounds = [math.ceil(len(part) / at_once) for part in (tuned, some)]
    plan = assembly.plan
    indexed, indexes = indexed_in(assembly.retriever), planned_indexes(assembly, starts)
    builds_others = indexed is not None and indexes is not None and indexes.most > 1
    return Probe(
        len(some),
        took_s,
        len(tuned),
        took_s if is_whole else took_s * rounds[0] / rounds[1],
        index,
        1 + given_trials(assembly, starts) + searched_trials(assembly),
        max(1, min(plan.execution.slots, assembly.config.study.ahead + 1)),
        indexes,
        indexed.starting_s() if indexed is not None and builds_others else 0.0,
        computing_s,
        asking(
            assembly,
            starts,
            indexes=0 if indexes is None else indexes.most,
            tokens=asked.tokens / asked.answered if asked.answered and asked.tokens else None,
        ),
    )


def _as_trials_ask(assembly: Assembly, choice: Params | Policy) -> Params | Policy:
    if isinstance(choice, Policy):
        return choice
    return {**choice, **told_by(assembly.plan.space, expected(assembly).free)}


def _computing_s(assembly: Assembly, choice: Params | Policy) -> float:
    """Return what it takes to compute what is free from one answer of the engine."""
    free = expected(assembly).free
    if isinstance(choice, Policy) or not free.names:
        return 0.0
    space = assembly.plan.space
    asked = {name: choice[name] for name in space.names if name in choice.keys() - set(free.names)}
    return trial_evaluator(assembly, free)(asked).seconds.get("profile", 0.0)


def _answered_s(assembly: Assembly, choice: Params | Policy, queries: Sequence[Query]) -> float:
    """Have queries answered, and return how long that took."""
    retriever, params = assembly.answering(choice)
    begin = time.perf_counter()
    retriever.retrieve(queries, params)
    return time.perf_counter() - begin


def _is_in(space: SearchSpace, setting: Setting) -> bool:
    """Say whether a setting's values are such as the space has."""
    for name, value in zip(space.index, setting, strict=True):
        try:
            space.parameters[name].canonical(value)
        except ValueError:
            return False
    return True


def _setting(assembly: Assembly, params: Params) -> Setting:
    """Return the values of the index's parameters, those that are left out by default."""
    default = {knob.name: knob.default for knob in assembly.retriever.knobs}
    names: Iterable[str] = assembly.plan.space.index
    return tuple(params.get(name, default[name]) for name in names)
