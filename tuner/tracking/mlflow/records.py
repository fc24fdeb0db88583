"""What MLflow is told about a study: names, tags, params and metrics, as plain records.

Nothing here touches MLflow, so a view can be computed, compared and tested without a server.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tuner.core.index_costs import index_metrics_of
from tuner.core.study_record import ArmRecord, Standing, StudyHeader, StudySummary
from tuner.core.trial import Trial, TrialState
from tuner.tracking.mlflow.values import logarithms, metrics_and_rest, params_and_long, tags_of

STUDY_ID = "tuner.study_id"
ROLE = "tuner.role"
ARM = "tuner.arm"
TRIAL = "tuner.trial"
IS_BEST = "tuner.is_best"
IS_WINNER = "tuner.is_winner"
NOT_FINITE = "tuner.not_finite"
PARENT_RUN = "mlflow.parentRunId"
RUN_NAME = "mlflow.runName"

_RUN_STATUS = {"finished": "FINISHED", "failed": "FAILED", "interrupted": "KILLED"}


@dataclass(frozen=True)
class RunContent:
    """Everything one MLflow run should hold; ``long_params`` are cut and kept as an artifact."""

    name: str
    tags: Mapping[str, str]
    start_ms: int
    params: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    status: str = "RUNNING"
    end_ms: int | None = None
    long_params: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Point:
    """One value of a metric at a step."""

    name: str
    value: float
    step: int
    time_ms: int


@dataclass(frozen=True)
class Curve:
    """An arm's convergence so far: how many trials were told, and the best feasible objective."""

    told: int = 0
    best: float | None = None

    def add(self, trial: Trial) -> tuple[Curve, list[Point]]:
        """Return the curve with one more told trial, and the points that the trial adds."""
        best = self.best
        objective = _finite(trial.objective)
        if trial.is_feasible and objective is not None:
            best = objective if best is None else max(best, objective)
        values = {"objective": objective, "best_so_far": best}
        points = [
            Point(name, value, self.told, told_ms(trial))
            for name, value in values.items()
            if value is not None
        ]
        return Curve(self.told + 1, best), points


def short_verdict(summary: StudySummary) -> str:
    """Return how a study came out in a few words, such as ``deploy +0.026``; empty without."""
    if summary.state == "failed":
        return "failed"
    if summary.verdict is None:
        return ""
    outcome, difference = str(summary.verdict["outcome"]), _difference(summary.verdict)[0]
    return outcome if difference is None else f"{outcome} {difference:+.3f}"


def _difference(verdict: Mapping[str, Any]) -> tuple[float | None, float | None, float | None]:
    """Return a verdict's difference and its interval, corrected where nothing was held out."""
    found = verdict.get("comparison") or verdict.get("corrected") or {}
    low, high = found.get("interval") or (None, None)
    return found.get("mean_difference", found.get("estimate")), low, high


def study_content(header: StudyHeader) -> RunContent:
    """Describe the parent run of a study."""
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(header.created_at))
    params: dict[str, Any] = {"seed": header.seed}
    for source, name in (("name", "dataset"), ("fingerprint", "dataset_fingerprint")):
        if source in header.dataset:
            params[name] = header.dataset[source]
    for source in ("people", "kappa") if "labels" in header.dataset else ():
        params[f"labels.{source}"] = header.dataset["labels"][source]
    for arm in header.arms:
        params[f"budget.{arm.name}"] = arm.budget
    tags = {
        STUDY_ID: header.study_id,
        ROLE: "study",
        "tuner.study": header.name,
        "mlflow.source.name": "tuner",
        "mlflow.source.type": "LOCAL",
        **{f"tuner.fingerprint.{key}": value for key, value in header.fingerprints.items()},
        # Params hold what it began with, and cannot change.
        **{f"tuner.budget.{arm.name}": f"{arm.budget}" for arm in header.arms},
        **{f"tuner.version.{key}": value for key, value in header.versions.items() if key != "git"},
    }
    if "git" in header.versions:
        tags["mlflow.source.git.commit"] = header.versions["git"]
    texts, long_params = params_and_long(params)
    return RunContent(
        name=f"{header.name} {when}",
        tags=tags_of(tags),
        start_ms=_ms(header.created_at),
        params=texts,
        long_params=long_params,
    )


def arm_content(header: StudyHeader, name: str) -> RunContent:
    """Describe the run of one arm, a child of the study's."""
    arm = arm_record(header, name)
    tags = {
        STUDY_ID: header.study_id,
        ROLE: "arm",
        ARM: arm.name,
        "tuner.backend": arm.kind,
        "tuner.study": header.name,
        **({"tuner.budget": f"{arm.budget}"} if arm.budget else {}),
    }
    params, _ = params_and_long(
        {"backend": arm.kind, **({"budget": arm.budget} if arm.budget else {})}
    )
    return RunContent(arm.name, tags_of(tags), _ms(header.created_at), params)


def arm_record(header: StudyHeader, name: str) -> ArmRecord:
    """Find an arm by its name; one that the header lacks, such as the baseline, is its own kind."""
    found = (arm for arm in header.arms if arm.name == name)
    return next(found, ArmRecord(name, kind=name, budget=0))


def trial_content(header: StudyHeader, trial: Trial) -> RunContent:
    """Describe the run of one told trial, a child of its arm's."""
    values: dict[str, float | None] = dict(trial.metrics)
    values |= {f"seconds_{stage}": seconds for stage, seconds in trial.seconds.items()}
    values["objective"] = trial.objective
    if trial.is_scored:
        values["violation"] = trial.violation
    if trial.race is not None:
        values |= {"estimate": trial.race.estimate, "raced_queries": trial.race.queries}
    if trial.index is not None:
        values |= index_metrics_of(trial.index)
    metrics, not_finite = metrics_and_rest(values)
    params, long_params = params_and_long(
        {**trial.params, **logarithms(header.space, trial.params)}
    )
    tags = {
        STUDY_ID: header.study_id,
        ROLE: "trial",
        ARM: trial.arm,
        TRIAL: str(trial.number),
        "tuner.backend": arm_record(header, trial.arm).kind,
        "tuner.state": trial.state.value,
    }
    if trial.is_scored:
        tags["tuner.feasible"] = str(trial.is_feasible).lower()
    if trial.shared_from is not None:
        tags["tuner.shared_from"] = str(trial.shared_from)
    if trial.index is not None:
        tags["tuner.index"] = trial.index.name
        tags["tuner.index_is_new"] = str(trial.index.is_new).lower()
    if trial.error is not None:
        tags["tuner.error"] = trial.error
    if not_finite:
        tags[NOT_FINITE] = not_finite
    return RunContent(
        name=f"{trial.arm} #{trial.number}",
        tags=tags_of(tags),
        start_ms=_ms(trial.asked_at or header.created_at),
        params=params,
        metrics=metrics,
        status="FAILED" if trial.state is TrialState.FAILED else "FINISHED",
        end_ms=told_ms(trial),
        long_params=long_params,
    )


def finished_study(header: StudyHeader, summary: StudySummary, end_ms: int) -> RunContent:
    """Describe what the parent run holds once the study has ended, beside its beginning."""
    values: dict[str, float | None] = {
        "finished_trials": summary.finished_trials,
        "failed_trials": summary.failed_trials,
        "shared_trials": summary.shared_trials,
        "raced_out_trials": summary.raced_out_trials,
        "seconds": summary.seconds,
        "failed_share": summary.failed_share,
        **{f"queries_asked.{purpose}": n for purpose, n in summary.queries_asked.items()},
        "seconds_in_all": summary.seconds_in_all,
        **{f"seconds_{phase}": spent for phase, spent in summary.seconds_by_phase.items()},
    }
    if summary.indexes is not None:
        values |= summary.indexes.to_metrics()
        values["seconds_search_indexes"] = summary.index_wait_s
    if summary.spent is not None:
        values |= summary.spent.to_metrics()
    if summary.racing is not None:
        values["query_evaluations_saved"] = summary.racing.saved
    if summary.baseline is not None:
        values |= _figures("baseline", summary.baseline)
    if summary.verdict is not None:
        # Cohen's d_z of the winner against the baseline.
        values["winner_effect_size"] = summary.verdict.get("effect_size")
    found = {"best": summary.best, "winner": summary.winner}
    beginning = study_content(header)
    if (short := short_verdict(summary)) != "":
        # First, as MLflow's table cuts long names.
        beginning = replace(beginning, name=f"{short} · {beginning.name}")
    more_tags = {"tuner.state": summary.state}
    if summary.ended_by:
        more_tags["tuner.ended_by"] = summary.ended_by
    if summary.verdict is not None:
        names = ("difference", "difference_low", "difference_high")
        values |= dict(zip(names, _difference(summary.verdict), strict=True))
        outcome, sentence = (str(summary.verdict[name]) for name in ("outcome", "sentence"))
        more_tags |= {"tuner.outcome": outcome, "tuner.verdict": sentence}
    if summary.state == "failed":
        more_tags |= {"tuner.outcome": "failed", "tuner.verdict": summary.reason}
    content = _ended(beginning, found, values, end_ms)
    tags = {**content.tags, **tags_of(more_tags)}
    return replace(content, tags=tags, status=_RUN_STATUS.get(summary.state, "FINISHED"))


def finished_arm(
    header: StudyHeader, summary: StudySummary, name: str, best: Trial | None, end_ms: int
) -> RunContent:
    """Describe what an arm's run holds once the study has ended, beside its beginning.

    ``best`` is the arm's trial with the highest objective, of every arm that has trials: the
    summary leaves out those that do not search, such as the baseline's.
    """
    content = _ended(arm_content(header, name), {"best": _standing(summary, best)}, {}, end_ms)
    return replace(content, status=_RUN_STATUS.get(summary.state, "FINISHED"))


def _standing(summary: StudySummary, trial: Trial | None) -> Standing | None:
    """Return how a trial did: with its holdout figures, where it met the held-out queries."""
    if trial is None or trial.objective is None:
        return None
    known = (summary.winner, summary.baseline, *summary.arms)
    found = (one for one in known if one is not None and one.trial == trial.number)
    alone = Standing(trial.arm, trial.number, trial.params, trial.objective, trial.metrics)
    return next(found, alone)


@dataclass(frozen=True)
class SystemSample:
    """What the machine and the study's processes use, under MLflow's names (``system/…``).

    ``at`` is in seconds since the epoch.
    """

    at: float
    values: Mapping[str, float]

    def points(self, study_began_at: float) -> list[Point]:
        """Return a point for each finite figure; steps are seconds since the study began.

        So a study that is resumed goes on to the right of where it stopped.
        """
        step = max(0, round(self.at - study_began_at))
        return [
            Point(name, value, step, round(self.at * 1000))
            for name, value in self.values.items()
            if math.isfinite(value)
        ]


def told_ms(trial: Trial) -> int:
    """Return when the trial was told, in milliseconds since the epoch."""
    return _ms(trial.asked_at if trial.told_at is None else trial.told_at)


def in_order_of_telling(trials: Iterable[Trial]) -> list[Trial]:
    """Return the told trials in the order in which the study learned of them."""
    told = (trial for trial in trials if trial.is_told)
    return sorted(told, key=lambda trial: (trial.told_at or trial.asked_at, trial.number))


def _ended(
    beginning: RunContent,
    found: Mapping[str, Standing | None],
    values: Mapping[str, float | None],
    end_ms: int,
) -> RunContent:
    """Add figures, params and tags of what was ``found``, such as the best, under its name."""
    values = dict(values)
    params: dict[str, Any] = {}
    tags: dict[str, str] = {}
    for name, standing in found.items():
        if standing is None:
            continue
        values |= _figures(name, standing)
        params |= {f"{name}.{key}": value for key, value in standing.params.items()}
        tags |= {f"tuner.{name}_trial": str(standing.trial), f"tuner.{name}_arm": standing.arm}
    tags |= {f"tuner.{name}": str(value) for name, value in params.items()}
    metrics, not_finite = metrics_and_rest(values)
    if not_finite:
        tags[NOT_FINITE] = not_finite
    texts, long_params = params_and_long(params)
    return replace(
        beginning,
        tags=tags_of(tags),
        params=texts,
        metrics=metrics,
        end_ms=end_ms,
        long_params=long_params,
    )


def _figures(name: str, standing: Standing) -> dict[str, float | None]:
    return {
        f"{name}_objective": standing.tune_objective,
        f"{name}_holdout_objective": standing.holdout_objective,
        **{f"{name}_tune_{metric}": value for metric, value in standing.tune_metrics.items()},
        **{f"{name}_holdout_{metric}": value for metric, value in standing.holdout_metrics.items()},
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
