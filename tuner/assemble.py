"""Config -> objects: the only file that knows every room."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tuner.backends.base import Backend
from tuner.config import Config, Source
from tuner.config.model import (
    BackendSection,
    DatasetSection,
    RetrieverSection,
    TrackingSection,
)
from tuner.core import registry
from tuner.core.corpus import Corpus, Document, Query
from tuner.core.errors import InputError, Problem, TunerError
from tuner.core.policy import Policy, is_policy
from tuner.core.space import SearchSpace
from tuner.core.trial import Outcome, Params
from tuner.datasets import Dataset, open_dataset, split_queries
from tuner.datasets._runs import read_run
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.evaluator import metric_problems as name_problems
from tuner.evaluation.objective import COMPOSITE, Bounds, Objective, paid_metric
from tuner.evaluation.racing import Racing, check_racing
from tuner.evaluation.self_measured import SelfMeasured
from tuner.evaluation.system_metrics import is_better_lower, of_another_scale
from tuner.execution._cluster import Elsewhere
from tuner.execution.base import Execution
from tuner.metrics.efficiency import Tokenizer, load_tokenizer
from tuner.retrieval._knobs import knob_params, knob_problems
from tuner.retrieval._policy import POLICY, PolicyRetriever, WithPolicy
from tuner.retrieval.base import (
    DeclaresKnobs,
    Knob,
    Measures,
    MeasuresKind,
    ResolvesOptions,
    Retriever,
)
from tuner.study.results import BASELINE_ARM

Say = Callable[[str], None]

# Half of fewer queries tells two configurations apart only if they differ grossly.
FEWEST_TO_SPLIT = 60

CONTEXT_TOKENS = "context_tokens"

# What stands in the place of a data set where the system measures itself.
NO_DATASET = Dataset("", "", Corpus(()), (), {})

_PACKAGES = ("graphrag-tuner", "numpy", "scipy", "scikit-optimize", "optuna", "joblib", "mlflow")


@dataclass(frozen=True)
class Plan:
    """What can be known from the configuration alone, checked, before any data is opened."""

    space: SearchSpace
    objective: Objective
    metric_names: tuple[str, ...]
    arms: tuple[tuple[str, Backend, int], ...]  # name, backend, budget
    execution: Execution
    tokenizer: Tokenizer | None = None


@dataclass(frozen=True, eq=False)
class Assembly:
    """A configuration with its data opened and its index built, ready to evaluate.

    ``policy`` is the baseline's, where it is one; ``baseline`` then only names it.
    """

    config: Config
    plan: Plan
    dataset: Dataset
    tune_queries: tuple[Query, ...]
    holdout_queries: tuple[Query, ...]
    retriever: Retriever | Measures
    baseline: Params | None
    policy: Policy | None = None

    def evaluator(self, queries: Sequence[Query]) -> Evaluator | SelfMeasured:
        """Make the evaluate function over some of the data set's queries."""
        if isinstance(self.retriever, Measures):
            return SelfMeasured(self.retriever, self.fixed)
        return self._evaluator(self.retriever, queries)

    def _evaluator(self, retriever: Retriever, queries: Sequence[Query]) -> Evaluator:
        return Evaluator.build(
            retriever,
            queries,
            self.dataset.qrels,
            self.plan.metric_names,
            documents=self.dataset.corpus.documents,
            evidences=self.dataset.evidences,
            tokenizer=self.plan.tokenizer,
            discount=self.config.context.discount,
            budget_tokens=self.config.objective.budget_tokens,
            fixed=self.fixed,
        )

    def trial_evaluator(self) -> Evaluator | SelfMeasured | Racing:
        """Make the evaluate function of the trials: over the tune queries, racing if configured.

        Raises:
            InputError: a race over the queries of a system that measures itself.
        """
        section, dataset = self.config.racing, self.config.dataset
        if section is None:
            return self.evaluator(self.tune_queries)
        if dataset is None or isinstance(self.retriever, Measures):
            message = "the retriever measures itself, so there are no queries to race over"
            raise InputError(f"{message}; leave it out", key=("racing",))
        return Racing.build(
            partial(self._evaluator, self.retriever),
            self.tune_queries,
            self.plan.objective,
            shares=section.rungs,
            stop_below=section.stop_below,
            stratify_by=dataset.split.stratify_by,
            seed=self.config.study.seed,
        )

    @property
    def fixed(self) -> Params:
        """Return the parameters that are not tuned: as the baseline has them, in every trial."""
        baseline = (self.baseline or {}) if self.policy is None else self.policy.default
        names = self.plan.space.names
        return {name: value for name, value in baseline.items() if name not in names}

    def part(self, name: str) -> tuple[Query, ...]:
        """Return the queries of a part: ``"all"``, ``"tune"`` or ``"holdout"``.

        Raises:
            InputError: there are none.
        """
        parts = {
            "all": self.dataset.queries,
            "tune": self.tune_queries,
            "holdout": self.holdout_queries,
        }
        if self.config.dataset is None and name == "all":
            return ()
        if self.config.dataset is None:
            kind = self.config.retriever.kind
            raise InputError(f"the retriever {kind!r} measures itself: there are no queries")
        if not parts[name]:
            raise InputError("no query is held out; write --queries all")
        return parts[name]

    def params(self, given: Mapping[str, Any]) -> Params:
        """Check parameters against the retriever's knobs; those left out take the baseline's
        value where they are not tuned, else the default. Of a baseline that is a policy, all of it.

        Raises:
            InputError: a knob that does not exist, or a value outside its range.
        """
        if self.policy is not None and POLICY in given:
            return self.policy.to_record()
        return knob_params({**self.fixed, **given}, self.retriever.knobs)

    def choice(self, given: Mapping[str, Any]) -> Params | Policy:
        """Check parameters, or a policy's parameters by query type, against the knobs.

        Raises:
            InputError: a knob that does not exist, a value outside its range, or a broken policy.
        """
        if self.policy is not None and POLICY in given:
            return self.policy
        return _policy(given, self.params) if is_policy(given) else self.params(given)

    def answering(self, choice: Params | Policy) -> tuple[Retriever, Params]:
        """Return the retriever and the parameters that answer as a choice says.

        Raises:
            InputError: the system measures itself, so it answers no queries.
        """
        if isinstance(self.retriever, Measures):
            raise InputError(f"{self.config.retriever.kind!r} measures itself: it answers nothing")
        if isinstance(choice, Policy):
            return PolicyRetriever(self.retriever, choice), {}
        return self.retriever, choice

    def evaluate(self, choice: Params | Policy, queries: Sequence[Query]) -> Outcome:
        """Evaluate parameters or a policy on some of the data set's queries."""
        evaluator = self.evaluator(queries)
        if isinstance(evaluator, Evaluator):
            retriever, params = self.answering(choice)
            return replace(evaluator, retriever=retriever)(params)
        if isinstance(choice, Policy):
            raise InputError("a policy needs queries, and the retriever measures itself")
        return evaluator(choice)

    def fingerprints(self) -> dict[str, str]:
        """Return a hash for each part of the study that must not change when it is resumed."""
        split, racing = sorted(query.id for query in self.tune_queries), self.config.racing
        return {
            "space": self.plan.space.fingerprint,
            "objective": _digest(self.plan.objective.to_mapping()),
            "metrics": _digest(_measuring(self.plan, self.config)),
            "dataset": self.dataset.fingerprint,
            "split": _digest(split),
            "fixed": _digest(self.fixed),
            "retriever": self.retriever.fingerprint,
            **({} if racing is None else {"racing": _digest(racing.model_dump())}),
        }

    def dataset_record(self) -> dict[str, Any]:
        """Describe the data for the study's header; empty where there are none."""
        if self.config.dataset is None:
            return {}
        return {
            "name": self.dataset.name,
            "path": self.dataset.path,
            "fingerprint": self.dataset.fingerprint,
            "documents": len(self.dataset.corpus.documents),
            "queries": len(self.dataset.queries),
            "tune_queries": len(self.tune_queries),
            "holdout_queries": len(self.holdout_queries),
        }


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
    arms = _arms(config, problems)
    if (racing := config.racing) is not None:
        _collect(problems, ("racing",), lambda: check_racing(racing.rungs, racing.stop_below))
    execution = _collect(problems, ("execution",), lambda: _execution(config))
    if to_run and isinstance(execution, Elsewhere):
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
    return Plan(space, objective, names, arms, execution, tokenizer)


def assemble(config: Config, source: Source, plan: Plan, *, say: Say) -> Assembly:
    """Open the data, build the index or open it from the cache, and check that all of it fits.

    Raises:
        InputError: a problem in the data, the retriever's options, its knobs, or the baseline.
    """
    with _located(source, ("retriever",)):
        config = _resolved(config, source)
    section = config.dataset
    if section is None:
        return _assemble_measured(config, source, plan)
    with _located(source, ("dataset",)):
        dataset = open_dataset(section.path, format=section.format)
        tune_ids, holdout_ids = split_queries(
            dataset.queries,
            holdout=_holdout(section, len(dataset.queries), say),
            stratify_by=section.split.stratify_by,
            seed=config.study.seed,
        )
    for warning in dataset.warnings:
        say(f"note: {warning}")
    by_id = {query.id: query for query in dataset.queries}
    with _located(source, ("retriever",)):
        retriever = _retriever(config, plan, dataset)
    if not dataset.corpus.documents:
        plan = _without_token_counts(plan, say)
    problems = knob_problems(plan.space, retriever.knobs)
    if problems:
        raise source.error(InputError(problems=problems))
    with _located(source, ("baseline",)):
        baseline, policy = _baseline(config, retriever.knobs)
    if policy is not None:
        retriever = WithPolicy(retriever, policy)
    with _explained(config):
        retriever.prepare(dataset.queries)
    return Assembly(
        config=config,
        plan=plan,
        dataset=dataset,
        tune_queries=tuple(by_id[id_] for id_ in tune_ids),
        holdout_queries=tuple(by_id[id_] for id_ in holdout_ids),
        retriever=retriever,
        baseline=baseline,
        policy=policy,
    )


def _baseline(config: Config, knobs: Sequence[Knob]) -> tuple[Params | None, Policy | None]:
    """Return the baseline's parameters and, where it is a policy, that policy."""
    given = config.baseline
    if given is None or isinstance(given, str):  # a file's name is read with the configuration
        return None, None
    if not is_policy(given):
        return knob_params(given, knobs, ("baseline",)), None
    if any(knob.name == POLICY for knob in knobs):
        raise InputError(f"the retriever has a parameter {POLICY!r}, so a policy cannot be it")
    policy = _policy(given, lambda params: knob_params(params, knobs))
    return {POLICY: f"by query type ({_digest(policy.to_record())[:6]})"}, policy


def _policy(record: Mapping[str, Any], checked: Callable[[Mapping[str, Any]], Params]) -> Policy:
    policy = Policy.from_record(record)
    types = {name: checked(params) for name, params in policy.types.items()}
    return Policy(checked(policy.default), types, policy.rule)


def _assemble_measured(config: Config, source: Source, plan: Plan) -> Assembly:
    """Assemble a system that measures itself."""
    kind = registry.load("retrieval", config.retriever.kind)
    with _located(source, ("retriever",)), _explained(config):
        given = _named(kind.build_measure, {"space": plan.space, "baseline": _today(config)})
        system: Measures = registry.construct(kind.build_measure, config.retriever.options, **given)
    problems = knob_problems(plan.space, system.knobs)
    if problems:
        raise source.error(InputError(problems=problems))
    with _located(source, ("baseline",)):
        baseline, policy = _baseline(config, system.knobs)
        if policy is not None:
            raise InputError("a policy needs queries, and the retriever measures itself")
    return Assembly(config, plan, NO_DATASET, (), (), system, baseline)


def _no_dataset_problems(config: Config, kind: Any) -> Iterator[Problem]:
    if not isinstance(kind, MeasuresKind):
        yield Problem("this key is required", key=("dataset",))
        return
    if config.racing is not None:
        yield Problem("there is no data set, so no queries to race over", key=("racing",))
    if config.verdict.guardrails:
        message = "a guard-rail is tested on held-out queries, and there is no data set"
        yield Problem(message, key=("verdict", "guardrails"))


def _resolved(config: Config, source: Source) -> Config:
    """Return the configuration with the retriever's options as they hold from any folder."""
    kind = registry.load("retrieval", config.retriever.kind)
    if not isinstance(kind, ResolvesOptions):
        return config
    folder = Path(source.file).parent
    options = kind.resolve_options(config.retriever.options, folder)
    section = RetrieverSection(kind=config.retriever.kind, **options)
    return config.model_copy(update={"retriever": section})


def _today(config: Config) -> Params:
    """Return the baseline's parameters; of a policy those that hold where no type is known."""
    if not isinstance(config.baseline, Mapping):
        return {}
    if not is_policy(config.baseline):
        return dict(config.baseline)
    default = config.baseline.get("default")
    return dict(default) if isinstance(default, Mapping) else {}


def _named(build: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of what can be given that ``build`` names."""
    names = inspect.signature(build).parameters
    return {name: value for name, value in given.items() if name in names}


def declared_knobs(kind_name: str, options: Mapping[str, Any]) -> tuple[Knob, ...]:
    """Return the knobs of a kind of retriever, as far as its options tell them.

    Raises:
        InputError: no such kind, or options that are missing or wrong.
    """
    kind = registry.load("retrieval", kind_name)
    if isinstance(kind, DeclaresKnobs):
        return tuple(registry.construct(kind.declare_knobs, options))
    declared = getattr(kind, "knobs", None)
    if isinstance(declared, tuple):
        return declared
    # A kind that tells its knobs only when it is built: over nothing, or where it refuses that,
    # over the least that can be indexed.
    section = RetrieverSection(kind=kind_name, **options)
    documents = (Document("1", "Lima", "Lima lies in Peru."), Document("2", "Peru", "A country."))
    with TemporaryDirectory() as folder:
        try:
            return _build(kind, section, Corpus(()), cache_dir=Path(folder)).knobs
        except InputError:
            return _build(kind, section, Corpus(documents), cache_dir=Path(folder)).knobs


def _retriever(config: Config, plan: Plan, dataset: Dataset) -> Retriever:
    kind = registry.load("retrieval", config.retriever.kind)
    if not callable(getattr(kind, "build", None)):
        message = f"{config.retriever.kind!r} has no `build`; see tuner/retrieval/base.py"
        raise InputError(message, key=("kind",))
    today = {"space": plan.space, "baseline": _today(config)}
    with _explained(config):
        return _build(kind, config.retriever, dataset.corpus, cache_dir=cache_dir(), **today)


def _build(
    kind: Any, section: RetrieverSection, corpus: Corpus, *, cache_dir: Path, **today: Any
) -> Retriever:
    # Rooms of families do not import each other, so a retriever is handed what reads files.
    given = _named(kind.build, {"read_run": _read_run, **today})
    retriever: Retriever = registry.construct(
        kind.build, section.options, corpus=corpus, cache_dir=cache_dir, **given
    )
    return retriever


def _read_run(path: Path) -> Mapping[str, Any]:
    return read_run(path).answers


def _without_token_counts(plan: Plan, say: Say) -> Plan:
    """Return the plan without context_tokens, unless the objective is made of it."""
    if CONTEXT_TOKENS not in plan.metric_names or CONTEXT_TOKENS in plan.objective.metric_names:
        return plan
    say(f"note: the data set has no texts, so {CONTEXT_TOKENS} is not reported")
    names = tuple(name for name in plan.metric_names if name != CONTEXT_TOKENS)
    return replace(plan, metric_names=names)


@contextmanager
def _explained(config: Config) -> Iterator[None]:
    """Turn whatever a retriever of the user's raises while it starts into one line."""
    try:
        yield
    except TunerError:
        raise
    except Exception as error:
        kind, reason = type(error).__name__, " ".join(str(error).split())
        raise TunerError(
            f"the retriever {config.retriever.kind!r} could not start: {kind}: {reason}"
        ) from error


def _holdout(section: DatasetSection, queries: int, say: Say) -> float:
    """Return the share to hold out: none of a few queries, unless the configuration asks for it."""
    split = section.split
    if "holdout" in split.model_fields_set or queries >= FEWEST_TO_SPLIT:
        return float(split.holdout)
    say(
        f"note: {queries} queries are too few to hold some out; all are tuned on, and the gain is "
        "corrected for the search's luck (set dataset.split.holdout to split all the same)"
    )
    return 0.0


def cache_dir() -> Path:
    """Return the folder of built indexes: ``$TUNER_CACHE_DIR``, else one below the user's cache."""
    own = os.environ.get("TUNER_CACHE_DIR")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "graphrag-tuner"


def versions() -> dict[str, str]:
    """Return the versions that a result depends on."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _objective(config: Config) -> Objective:
    section = config.objective
    bounds = {name: Bounds(part.min, part.max) for name, part in section.constraints.items()}
    return Objective(section.maximize, section.price, bounds, tuple(section.pareto))


def _metric_name_problems(config: Config) -> Iterator[Problem]:
    section = config.objective
    metric_problems = partial(name_problems, discount=config.context.discount)
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


def _arms(config: Config, problems: list[Problem]) -> tuple[tuple[str, Backend, int], ...]:
    arms: dict[str, tuple[str, Backend, int]] = {}
    for index, section in enumerate(config.backends):
        name = section.name or section.kind.replace(":", ".")
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
    return backend


def _execution(config: Config) -> Execution:
    section = config.execution
    try:
        kind = registry.load("execution", section.kind)
    except InputError as error:
        raise InputError(str(error), key=("kind",)) from error
    given: dict[str, Any] = {"trial_timeout_s": section.trial_timeout_s}
    if section.workers != "auto":
        given["workers"] = section.workers
    elif not _counts_workers(kind):
        given["workers"] = (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    execution: Execution = registry.construct(kind, section.options, **given)
    return execution


def _counts_workers(kind: Callable[..., Any]) -> bool:
    """Say whether an execution finds out by itself how many workers there are, as a cluster can."""
    workers = inspect.signature(kind).parameters.get("workers")
    return workers is not None and workers.default is None


def _check_tracking(section: TrackingSection) -> None:
    from tuner.tracking.mlflow import Mlflow

    Mlflow.check(section.uri, section.experiment)


def _collect(problems: list[Problem], key: tuple[str | int, ...], make: Callable[[], Any]) -> Any:
    """Call ``make``; where it finds problems keep them, below ``key``, and return None."""
    try:
        return make()
    except InputError as error:
        problems += [_below(problem, key) for problem in error.problems]
        return None


@contextmanager
def _located(source: Source, key: tuple[str | int, ...]) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        problems = [_below(problem, key) for problem in error.problems]
        raise source.error(InputError(problems=problems)) from error


def _below(problem: Problem, key: tuple[str | int, ...]) -> Problem:
    """Put a problem's key below that of its section, unless it starts there already."""
    if problem.file is not None or problem.key[: len(key)] == key:
        return problem
    return replace(problem, key=(*key, *problem.key))


def _measuring(plan: Plan, config: Config) -> Any:
    """Return what decides a metric's values; in the form of older studies where it can be."""
    context = config.context.model_dump(exclude_defaults=True)
    if config.objective.budget_tokens is not None:
        context["budget_tokens"] = config.objective.budget_tokens
    return [*plan.metric_names, context] if context else plan.metric_names


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
