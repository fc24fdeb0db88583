"""Tune any Python function from a script or a notebook: ``tuner.tune(evaluate, space)``."""

from __future__ import annotations

import time
import uuid
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuner.config import START_FROM
from tuner.core import registry
from tuner.core.checks import check_whole, native
from tuner.core.errors import InputError, Problem, did_you_mean
from tuner.core.space import Categorical, Integer, Parameter, Real, SearchSpace
from tuner.core.study_record import AHEAD, ArmRecord, StudyHeader, StudySummary
from tuner.core.trial import Outcome, Params, Trial
from tuner.evaluation.objective import DEFAULT_WEIGHTS, Objective, Score
from tuner.evaluation.self_measured import as_outcome
from tuner.execution.base import Execution, NeedsCluster, available_cores, make_execution
from tuner.report.frames import trials_frame
from tuner.run.folder import earlier_seconds
from tuner.run.given import check_more, given_budget, given_stop, limit_of, shared_out
from tuner.run.known_points import check_same_start, starting_points
from tuner.run.lifecycle import carry_through, closed_on_error, open_study
from tuner.run.planning import below
from tuner.run.progress import Progress, progress_here
from tuner.run.versions import versions
from tuner.study.arms import Arm, Fixed
from tuner.study.limit import first_of
from tuner.study.loop import Event, State, run_study
from tuner.study.results import EARLIER_ARM, summarise
from tuner.study.spec import StudySpec
from tuner.study.stopping import enough
from tuner.study.study import Study
from tuner.tracking.base import EXPERIMENT

if TYPE_CHECKING:
    import pandas

    from tuner.tracking.mlflow.tracker import Mlflow

Answer = float | Mapping[str, float] | Outcome
Evaluate = Callable[[Params], Answer]


@dataclass(frozen=True, eq=False)
class TunedStudy:
    """What ``tune`` returns.

    Attributes:
        best: the feasible trial with the highest objective, or None where all failed.
        trials: all trials in the order of asking.
        summary: the best of each arm, counts, and how the study ended.
        journal: the path of the journal, or None where no ``run_dir`` was given.
        mlflow_run_id: of the study's run, where it is tracked and MLflow answered.
    """

    best: Trial | None
    trials: tuple[Trial, ...] = field(repr=False)
    summary: StudySummary = field(repr=False)
    journal: Path | None
    mlflow_run_id: str | None = None

    @property
    def best_params(self) -> Params:
        """Return the parameters of ``best``.

        Raises:
            InputError: no trial succeeded.
        """
        if self.best is None:
            reasons = [trial.error for trial in self.trials if trial.error]
            last = f"; the last one: {reasons[-1]}" if reasons else ""
            last = f"; {self.summary.reason}" if not reasons and self.summary.reason else last
            raise InputError(f"no trial succeeded, so there is no best one{last}")
        return dict(self.best.params)

    def frame(self) -> pandas.DataFrame:
        """Return the trials as a pandas DataFrame, one row a trial."""
        return trials_frame(self.trials).reset_index()


@dataclass(frozen=True)
class _Reported:
    """Turns what a user's function returns into an outcome, in whichever process it runs."""

    function: Evaluate

    def __call__(self, params: Params) -> Outcome:
        return as_outcome(self.function(params))


@dataclass(frozen=True)
class _NumberOrMetrics:
    """Takes a number as the objective itself, and a mapping by the default weights."""

    weighted: Objective
    plain: Objective

    def score(self, metrics: Mapping[str, float], /) -> Score:
        """Score by ``objective`` where it is the only metric, else by the weights."""
        if set(metrics) == {"objective"}:
            return self.plain.score(metrics)
        missing = [name for name in self.weighted.weights if name not in metrics]
        if missing:
            example = f"maximize={{{next(iter(metrics), 'recall')!r}: 1.0}}"
            hint = did_you_mean(missing[0], metrics)
            raise InputError(f"metric {missing[0]!r} is missing{hint}; or weigh others: {example}")
        return self.weighted.score(metrics)

    def to_mapping(self) -> dict[str, Any]:
        """Return the weights that a mapping of metrics is added up by."""
        return self.weighted.to_mapping()


def tune(
    evaluate: Evaluate,
    space: SearchSpace | Mapping[str, Parameter | Mapping[str, Any]],
    *,
    backends: str | Sequence[str] | Mapping[str, int] = ("tpe",),
    trials: int = 50,
    budget: Mapping[str, float] | None = None,
    workers: int | None = None,
    seed: int = 0,
    ahead: int = AHEAD,
    maximize: Mapping[str, float] | Objective | None = None,
    baseline: Params | None = None,
    start_from: Sequence[Params] = (),
    stop: Mapping[str, Any] | None = None,
    execution: str | Mapping[str, Any] = "auto",
    trial_timeout_s: float | None = None,
    run_dir: str | Path | None = None,
    tracking: str | Mapping[str, str] | None = None,
    name: str = "study",
    progress: bool = True,
    on_trial: Callable[[Trial], None] | None = None,
) -> TunedStudy:
    """Search ``space`` for the parameters that ``evaluate`` likes best.

    ``evaluate(params)`` returns a number (higher is better) or a mapping of metrics, such as
    ``{"recall": 0.7, "mrr": 0.6, "ndcg": 0.5}``. ``maximize`` weighs the metrics (default: recall
    0.5, mrr 0.3, ndcg 0.2). ``backends`` lists search backends that get ``trials`` each, or maps
    them to their trials. An exception in ``evaluate`` costs its own trial only. With ``run_dir``
    every trial is kept in ``run_dir/journal.jsonl``, and a call with the folder of an unfinished
    study goes on with it. So does one with more ``trials``, or a further backend, where it had
    ended: each backend's trials are those of a study that was long from the start. Where
    ``evaluate`` gets no answer from a service (``ConnectionError``, ``TimeoutError``, and what
    clients raise for them) 5 times in a row, the study is interrupted, with a warning; those trials
    are evaluated when it goes on.

    ``start_from`` are parameters that are known to be good: each is evaluated before the search,
    beside the ``trials``, and all backends learn from it; a later call with its ``run_dir`` has the
    same. ``stop={"gain_below": 0.002}`` ends the search where the rest would hardly gain that much.

    A trial is suggested without the results of the ``ahead`` trials before it, whether they are
    there or not: so the same ``seed`` gives the same trials on any number of workers, and at least
    ``ahead + 1`` of them are kept busy. Several backends share that number.

    ``execution`` is a kind such as ``"processes"``, or what a configuration's ``execution`` section
    holds, such as ``{"kind": "dask", "address": "tcp://10.0.0.5:8786"}``. ``workers`` (by default
    1, and as many as a cluster has) and ``trial_timeout_s`` (by default none) stand beside it or in
    it, not both.

    ``tracking`` shows the study in MLflow: a URI such as ``"http://mlflow:5000"``, or what a
    configuration's section holds, ``{"uri": …, "experiment": …}``. It needs ``run_dir``, from whose
    journal the view is made; ``tuner sync RUN_DIR`` completes it where the server was down.

    ``budget`` is what a configuration's section of that name holds, such as ``{"minutes": 30}``:
    ``trials`` of all backends together, and ``minutes`` of all calls for one ``run_dir``.

    ``progress`` shows a bar a backend in a terminal or a notebook; elsewhere nothing is shown.
    ``on_trial`` is called with every trial that has ended, in the order in which they end and in
    the caller's thread. An exception in it ends the study as Ctrl-C does: evaluations under way are
    waited for, every trial is in the journal, and a call with the same ``run_dir`` goes on; then it
    is raised.

    >>> study = tune(lambda params: -(params["x"] - 2) ** 2, {"x": {"type": "integer",
    ...              "low": 0, "high": 4}}, backends=["grid"], trials=5)
    >>> study.best_params
    {'x': 2}

    Raises:
        InputError: an unknown backend, a point to start from that the space does not have, a space
            or a weight that means nothing, a cluster that does not answer, a ``run_dir`` that holds
            another study, or tracking that MLflow would refuse.
    """
    search_space = _space(space)
    objective = _objective(maximize)
    tracker = _tracker(tracking, run_dir)
    if isinstance(backends, str):
        backends = (backends,)
    budgets = dict(backends) if isinstance(backends, Mapping) else dict.fromkeys(backends, trials)
    section = given_budget(budget)
    arms = [_arm(kind, most) for kind, most in shared_out(budgets, section).items()]
    if not arms:
        raise InputError("no backend; write for example backends=['tpe']")
    wanted = given_stop(stop)
    known = starting_points(start_from, search_space)
    runner = _execution(execution, workers=workers, trial_timeout_s=trial_timeout_s)
    header = StudyHeader(
        study_id=uuid.uuid4().hex,
        name=name,
        created_at=time.time(),
        seed=seed,
        arms=tuple(ArmRecord(arm.name, arm.name, arm.budget) for arm in arms),
        space=search_space.to_mapping(),
        objective=objective.to_mapping(),
        baseline=baseline,
        versions=versions(),
        config={START_FROM: list(known)} if known else {},
        ahead=_whole("ahead", ahead, least=0),
    )
    shown = progress_here(is_wanted=progress)
    folder = None if run_dir is None else Path(run_dir)
    if known:
        arms.insert(0, Arm(EARLIER_ARM, Fixed(known), len(known)))
    check_more(folder, section, {arm.name: arm.budget for arm in header.arms})
    study = open_study(header, StudySpec(arms, search_space, objective), folder)
    with closed_on_error(study):
        check_same_start(study.header, known)
    begin = time.monotonic()
    earlier_s = earlier_seconds(study.earlier)
    limit = limit_of(section, study, lambda: earlier_s + time.monotonic() - begin)
    heard = _Heard(on_trial, study, shown)

    def search() -> State:
        shown.follow(study.shown_arms, study.trials)
        return run_study(
            study,
            runner,
            _Reported(evaluate),
            tracker=tracker,
            on_event=heard.take,
            limit=first_of(limit, enough(study, wanted)),
        )

    def sum_up(state: State) -> StudySummary:
        seconds, reason = time.monotonic() - begin, study.stopped_by
        found = summarise(state, study.header, study.trials, seconds=seconds, stopped_by=reason)
        return replace(found, ended_by=study.ended_by if state == "finished" else "")

    summary = carry_through(
        study,
        search,
        sum_up,
        tracker=tracker,
        meanwhile=shown,
        afterwards=partial(_finished, tracker),
    )
    if heard.error is not None:
        raise heard.error
    if summary.state == "interrupted" and summary.reason:
        others = "without run_dir nothing is kept for another one"
        how = others if run_dir is None else "the same call goes on where it stopped"
        warnings.warn(f"{summary.reason}; {how}", stacklevel=2)
    mlflow_run_id = None if tracker is None else tracker.run_id
    journal = None if study.journal is None else study.journal.path
    return TunedStudy(study.best, tuple(study.trials), summary, journal, mlflow_run_id)


@dataclass
class _Heard:
    """Shows each event, and calls the user's function with each trial that ends.

    Where that raises, the study ends.
    """

    on_trial: Callable[[Trial], None] | None
    study: Study
    shown: Progress
    error: Exception | None = None

    def take(self, event: Event) -> None:
        """Take one event of the study's loop."""
        self.shown.show(event)
        if event.trial is None or self.on_trial is None or self.error is not None:
            return
        try:
            self.on_trial(event.trial)
        except Exception as error:  # raised when the study is safe
            self.error = error
            self.study.stop()


def _finished(tracker: Mlflow | None, summary: StudySummary) -> StudySummary:
    if tracker is not None:
        tracker.finish(summary)
    return summary


def _tracker(given: str | Mapping[str, str] | None, run_dir: str | Path | None) -> Mlflow | None:
    if given is None:
        return None
    from tuner.tracking.mlflow.tracker import Mlflow

    section = {"uri": given} if isinstance(given, str) else dict(given)
    section.setdefault("experiment", EXPERIMENT)
    key = ("tracking",)
    for name in section:
        if name not in ("uri", "experiment"):
            hint = did_you_mean(name, ("uri", "experiment"))
            raise InputError(f"unknown key{hint}", key=(*key, name))
    if "uri" not in section:
        raise InputError("write it as 'http://mlflow:5000' or {'uri': …, 'experiment': …}", key=key)
    if run_dir is None:
        message = "needs run_dir as well: MLflow's view is made from the journal there"
        raise InputError(message, key=key)
    try:
        Mlflow.check(section["uri"], section["experiment"])
    except InputError as error:
        raise InputError(problems=[below(p, key) for p in error.problems]) from error
    warn = partial(warnings.warn, stacklevel=2)
    return Mlflow(section["uri"], section["experiment"], warn=warn)


def _space(space: SearchSpace | Mapping[str, Parameter | Mapping[str, Any]]) -> SearchSpace:
    if isinstance(space, SearchSpace):
        return space
    if all(isinstance(parameter, Mapping) for parameter in space.values()):
        return SearchSpace.from_mapping(space)
    plain = [name for name, parameter in space.items() if isinstance(parameter, Mapping)]
    if plain:
        message = "write all parameters as mappings, or all as Real, Integer and Categorical"
        raise InputError(problems=[Problem(message, key=("space", name)) for name in plain])
    objects = {name: p for name, p in space.items() if not isinstance(p, Mapping)}
    strange = [n for n, p in objects.items() if not isinstance(p, Real | Integer | Categorical)]
    if strange:
        message = "write it as {'type': 'real', 'low': 0, 'high': 1}, or as Real(0, 1)"
        raise InputError(problems=[Problem(message, key=("space", name)) for name in strange])
    return SearchSpace(objects)


def _objective(
    maximize: Mapping[str, float] | Objective | None,
) -> Objective | _NumberOrMetrics:
    if isinstance(maximize, Objective):
        return maximize
    if maximize is not None:
        given: object = maximize
        if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
            message = f"must weigh metrics by their names, as {{'recall': 1.0}}; got {given!r}"
            raise InputError(message, key=("maximize",))
        return Objective(maximize)
    return _NumberOrMetrics(Objective(DEFAULT_WEIGHTS), Objective({"objective": 1.0}))


def _execution(
    given: str | Mapping[str, Any], *, workers: int | None, trial_timeout_s: float | None
) -> Execution:
    section: dict[str, Any] = {"kind": given} if isinstance(given, str) else dict(given)
    beside = {"workers": workers, "trial_timeout_s": trial_timeout_s}
    twice = [name for name, value in beside.items() if value is not None and name in section]
    try:
        if twice:
            raise InputError("stands beside the execution as well", key=(twice[0],))
        kind, chosen = section.pop("kind", "auto"), section.pop("workers", workers)
        if not isinstance(kind, str):
            raise InputError(f"must be a name such as 'processes', got {kind!r}", key=("kind",))
        execution = make_execution(
            kind,
            {name: value for name, value in section.items() if name != "trial_timeout_s"},
            workers=None if chosen == "auto" else chosen,
            otherwise=available_cores() if chosen == "auto" else 1,
            trial_timeout_s=section.get("trial_timeout_s", trial_timeout_s),
        )
        if isinstance(execution, NeedsCluster):
            execution.check()
    except InputError as error:
        raise InputError(problems=[below(p, ("execution",)) for p in error.problems]) from error
    return execution


def _arm(kind: str, budget: int) -> Arm:
    budget = _whole(f"trials of {kind!r}", budget, least=1)
    backend = registry.construct(registry.load("backends", kind), {}, budget=budget)
    return Arm(kind, backend, budget)


def _whole(name: str, value: int, *, least: int) -> int:
    number: int = native(value)  # numpy's too
    check_whole(name, number, least=least)
    return number
