"""Config -> plan: all that a configuration tells by itself, checked before any data is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tuner.backends.base import Backend
from tuner.config import Config, Source
from tuner.config.free import declared_free
from tuner.config.model import (
    BackendSection,
    TrackingSection,
)
from tuner.config.params import is_point
from tuner.core import registry
from tuner.core.errors import InputError, Problem
from tuner.core.space import SearchSpace
from tuner.core.spent import Cost
from tuner.core.trial import Params
from tuner.evaluation.evaluator import metric_problems as name_problems
from tuner.evaluation.objective import COMPOSITE, Bounds, Objective, paid_metric
from tuner.evaluation.rungs import check_racing
from tuner.evaluation.system_metrics import (
    is_better_lower,
    is_measured_time,
    of_another_scale,
    tell_of_index,
)
from tuner.execution.base import Execution, NeedsCluster, available_cores, make_execution
from tuner.metrics.efficiency import Tokenizer, load_tokenizer
from tuner.retrieval.base import (
    MeasuresKind,
)
from tuner.retrieval.free import NOTHING_FREE, FreeKnobs
from tuner.study.arms import Arm, Fixed
from tuner.study.index_shares import shared_out
from tuner.study.results import BASELINE_ARM


@dataclass(frozen=True)
class Plan:
    """What can be known from the configuration alone, checked, before any data is opened."""

    space: SearchSpace
    objective: Objective
    metric_names: tuple[str, ...]
    arms: tuple[tuple[str, Backend, int], ...]  # name, backend, budget
    execution: Execution
    tokenizer: Tokenizer | None = None
    free: FreeKnobs = NOTHING_FREE  # what the configuration says of it


def make_plan(config: Config, source: Source, *, to_run: bool = False) -> Plan:
    """Check everything that the configuration alone tells.

    ``to_run``: trials are to be evaluated now, so a cluster that is to do it must be there.

    Raises:
        InputError: every problem that was found, each with file, line and key.
    """
    problems: list[Problem] = []
    space = _collect(
        problems, (), lambda: SearchSpace.from_mapping(config.space, config.space_constraints)
    )
    objective = _collect(problems, (), lambda: _objective(config))
    if config.dataset is not None:  # else the system's metrics have names of its own
        problems += _metric_name_problems(config)
    free = NOTHING_FREE
    if isinstance(declared := config.free, dict) and space is not None:
        names = space.names
        free = _collect(problems, ("free",), lambda: declared_free(declared, names))
    arms = _arms(config, problems)
    problems += _budget_problems(config)
    problems += _people_problems(config)
    problems += _parts_problems(config)
    if (racing := config.racing) is not None:
        _collect(problems, ("racing",), lambda: check_racing(racing.rungs, racing.stop_below))
    execution = _collect(problems, ("execution",), lambda: _execution(config))
    if to_run and isinstance(execution, NeedsCluster):
        _collect(problems, ("execution",), execution.check)
    kind = _collect(
        problems, ("retriever", "kind"), lambda: registry.load("retrieval", config.retriever.kind)
    )
    if config.dataset is None and kind is not None:
        problems += _no_dataset_problems(config, kind)
    name = config.context.tokenizer
    tokenizer = (
        None
        if name is None
        else _collect(problems, ("context", "tokenizer"), lambda: load_tokenizer(name))
    )
    tracking = config.tracking
    if tracking is not None:
        _collect(problems, ("tracking",), lambda: _check_tracking(tracking))
    if space is not None and space.constraints:
        # A space in which no point can be found is better known now than in the middle of a run.
        draw = np.random.default_rng(config.study.seed)
        _collect(problems, ("space_constraints",), lambda: space.sample(draw))
    if problems or space is None or objective is None or execution is None:
        raise source.error(InputError(problems=problems))
    # Latency is timed by turns when the verdict is due, not in every trial.
    guarded = (name for name in config.verdict.guardrails if not name.startswith("latency_"))
    further = config.metrics if config.dataset is not None else ()
    names = tuple(dict.fromkeys((*objective.metric_names, *further, *guarded)))
    return Plan(space, objective, names, arms, execution, tokenizer, free)


def fitted_arms(plan: Plan, baseline: Params | None, most_indexes: int | None) -> list[Arm]:
    """Return the arms with their shares of ``index.budget``; grids as coarse as that takes.

    Starting points of earlier studies, which come before the arms, are not known yet.

    Raises:
        InputError: a grid's named levels need too many indexes; its key begins with its place.
    """
    given = () if baseline is None else (baseline,)
    arms = [Arm(BASELINE_ARM, Fixed(given), 1), *(Arm(*parts) for parts in plan.arms)]
    return shared_out(arms, plan.space, most_indexes)[1:]


def decided_by_clock(config: Config) -> str | None:
    """Say what makes the same configuration and seed end otherwise another time; None: nothing.

    Latencies, and the seconds that an index took, are measured, so what they decide cannot be
    repeated; one that is reported decides nothing.
    """
    section = config.objective
    named = {
        "objective.maximize": [*section.maximize],
        "objective.price": [paid_metric(name)[0] for name in section.price],
        "objective.constraints": [*section.constraints],
        "objective.pareto": [*section.pareto],
        "verdict.guardrails": [*config.verdict.guardrails],
    }
    keys = [
        f"{key} ({name})"
        for key, names in named.items()
        for name in names
        if is_measured_time(name)
    ]
    if not keys or config.dataset is None:
        return None
    return f"the same seed may end otherwise another time, since a clock decides: {', '.join(keys)}"


def _no_dataset_problems(config: Config, kind: Any) -> Iterator[Problem]:
    if not isinstance(kind, MeasuresKind):
        yield Problem("this key is required", key=("dataset",))
        return
    if config.racing is not None:
        yield Problem("there is no data set, so no queries to race over", key=("racing",))
    if isinstance(config.free, dict):
        message = "there is no data set, so no answers that tell of other values"
        yield Problem(message, key=("free",))
    if config.verdict.guardrails:
        message = "a guard-rail is tested on held-out queries, and there is no data set"
        yield Problem(message, key=("verdict", "guardrails"))


def _parts_problems(config: Config) -> Iterator[Problem]:
    """Yield what does not go with a verdict by all queries, part by part."""
    if config.dataset is None or config.dataset.split.parts is None:
        return
    key = ("dataset", "split", "parts")
    if config.baseline is None:
        yield Problem("decides against the baseline, and there is none; add one", key=key)
    if config.budget.limits:
        named = ", ".join(f"budget.{name}" for name in config.budget.limits)
        message = "the search is repeated without each part, and must not end earlier there"
        yield Problem(f"{message}: leave out {named}, or hold queries out", key=key)
    if not all(map(is_point, config.start_from)):
        message = "an earlier study has seen every part, so no search without one may start from it"
        yield Problem(f"{message}; leave it out, or hold queries out", key=("start_from",))


def _people_problems(config: Config) -> Iterator[Problem]:
    section = config.dataset
    if section is None or section.people is not None:
        return
    if section.people_gate != type(section).model_fields["people_gate"].default:
        yield Problem(
            "nobody's labels are compared with a judge's: name the file of people's grades as "
            "`people`, or leave this out",
            key=("dataset", "people_gate"),
        )


def _objective(config: Config) -> Objective:
    section = config.objective
    bounds = {name: Bounds(part.min, part.max) for name, part in section.constraints.items()}
    return Objective(section.maximize, section.price, bounds, tuple(section.pareto))


def _metric_name_problems(config: Config) -> Iterator[Problem]:
    section = config.objective
    metric_problems = partial(name_problems, options=config.context.options)
    for name in section.maximize:
        key = ("objective", "maximize", name)
        yield from metric_problems(name, key)
        if is_better_lower(name):
            yield Problem("better when it is lower; put it under price or constraints", key=key)
    for name in of_another_scale(section.maximize):
        yield Problem(
            f"runs from 0 to 100 and the others from 0 to 1, so it would be nearly all of the "
            f"composite; maximize its parts (density, coverage) beside them, or bound it: "
            f"`constraints: {{{name}: {{min: 50}}}}`",
            key=("objective", "maximize", name),
        )
    for name in section.price:
        yield from metric_problems(paid_metric(name)[0], ("objective", "price", name))
    for name in section.constraints:
        yield from metric_problems(name, ("objective", "constraints", name))
    for name, bound in config.verdict.guardrails.items():
        key = ("verdict", "guardrails", name)
        yield from metric_problems(name, key)
        if tell_of_index([name]):
            message = "an index has one, and no query its own; bound it by objective.constraints"
            yield Problem(f"no paired test can judge {name}: {message}", key=key)
        wrong = "max_decrease" if is_better_lower(name) else "max_increase"
        if getattr(bound, wrong) is not None:
            direction = "lower" if is_better_lower(name) else "higher"
            right = "max_increase" if is_better_lower(name) else "max_decrease"
            message = f"{name} is better when it is {direction}; bound it by {right}"
            yield Problem(message, key=(*key, wrong))
    for index, name in enumerate(section.pareto):
        if name != COMPOSITE:
            yield from metric_problems(name, ("objective", "pareto", index))
    if section.pareto and config.racing is not None:
        message = "a race is run for the objective alone and would stop what is cheap; leave it out"
        yield Problem(message, key=("racing",))
    for index, name in enumerate(config.metrics):
        yield from metric_problems(name, ("metrics", index))
    if section.pareto and config.stop is not None:
        message = "a gain is told by one objective, and there are several goals; leave it out"
        yield Problem(message, key=("stop",))


def _budget_problems(config: Config) -> Iterator[Problem]:
    budget, cost = config.budget, config.cost
    if budget.money is not None and (cost is None or cost.cost == Cost()):
        yield Problem(
            "nobody knows what the system costs: add `cost: {per_query: …}`, or per_1000_tokens, "
            "or per_index",
            key=("budget", "money"),
        )
    if config.dataset is not None:
        return
    message = "the retriever measures itself, so its queries are not known; limit trials or minutes"
    if budget.query_evaluations is not None:
        yield Problem(message, key=("budget", "query_evaluations"))
    if cost is not None:
        yield Problem(f"{message}, and leave this out", key=("cost",))


def _arms(config: Config, problems: list[Problem]) -> tuple[tuple[str, Backend, int], ...]:
    arms: dict[str, tuple[str, Backend, int]] = {}
    for index, section in enumerate(config.backends):
        name = section.arm
        key = ("backends", index)
        if name in arms or name == BASELINE_ARM:
            message = f"a second arm called {name!r}; give it a name of its own: {{name: …}}"
            problems.append(Problem(message, key=key))
            continue
        backend = _collect(problems, key, partial(_backend, section))
        if backend is not None:
            arms[name] = (name, backend, section.trials)
    return tuple(arms.values())


def _backend(section: BackendSection) -> Backend:
    try:
        kind = registry.load("backends", section.kind)
    except InputError as error:
        raise InputError(str(error), key=("kind",)) from error
    backend: Backend = registry.construct(kind, section.options, budget=section.trials)
    suggest = (("space", "history"), ("count", "seed"))
    called = f"the backend {section.kind!r}"
    registry.check_can(backend, called, {"suggest": suggest}, see="tuner/backends/base.py")
    return backend


def _execution(config: Config) -> Execution:
    section = config.execution
    name = section.kind
    if name == "auto" and waits(config):
        name = "threads"  # worker processes would each have limits of their own, and gain nothing
    return make_execution(
        name,
        section.options,
        workers=None if section.workers == "auto" else section.workers,
        otherwise=available_cores(),
        trial_timeout_s=section.trial_timeout_s,
    )


def waits(config: Config) -> bool:
    """Say whether the kind of retriever says that its evaluations wait for another system."""
    try:
        return getattr(registry.load("retrieval", config.retriever.kind), "waits", False) is True
    except InputError:  # told where the retriever is looked at
        return False


def _check_tracking(section: TrackingSection) -> None:
    from tuner.tracking.mlflow.tracker import Mlflow

    Mlflow.check(section.uri, section.experiment)


def _collect(problems: list[Problem], key: tuple[str | int, ...], make: Callable[[], Any]) -> Any:
    """Call ``make``; where it finds problems keep them, below ``key``, and return None."""
    try:
        return make()
    except InputError as error:
        problems += [below(problem, key) for problem in error.problems]
        return None


_GIVEN = (("space",), ("baseline",))


def below(problem: Problem, key: tuple[str | int, ...]) -> Problem:
    """Put a problem's key below that of its section, unless it starts there already.

    What a retriever says of the space or of the baseline, which it is given, stays theirs.
    """
    is_own = problem.key[: len(key)] == key or problem.key[:1] in _GIVEN
    if problem.file is not None or is_own:
        return problem
    return replace(problem, key=(*key, *problem.key))


def measuring(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a configuration decides the values of metrics, besides their names."""
    found = {name: v for name, v in (config.get("context") or {}).items() if v is not None}
    budget = (config.get("objective") or {}).get("budget_tokens")
    return found if budget is None else {**found, "budget_tokens": budget}
