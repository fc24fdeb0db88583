"""How a study ended: the best of each arm, the baseline beside it, on tune and holdout queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tuner.core.calls import TIMED_IN_TRIALS, TRIALS
from tuner.core.index_costs import index_costs
from tuner.core.study_record import Savings, Standing, StudyHeader, StudySummary
from tuner.core.trial import Params, Trial, TrialState, best_trial, params_key
from tuner.evaluation.rungs import FEWEST, usable_rungs
from tuner.evaluation.system_metrics import LATENCY_PASS, timed_queries
from tuner.study.failures import Failures

BASELINE_ARM = "baseline"
# The arm of what is known before a study begins, and asked first.
EARLIER_ARM = "earlier"


@dataclass(frozen=True)
class HoldoutResult:
    """What one configuration is worth on the queries that were held out."""

    objective: float
    metrics: Mapping[str, float]


ScoreHoldout = Callable[[Params], HoldoutResult | None]


def summarise(
    state: str,
    header: StudyHeader,
    trials: Iterable[Trial],
    *,
    seconds: float,
    score_holdout: ScoreHoldout | None = None,
    winner: Trial | None = None,
    stopped_by: str = "",
) -> StudySummary:
    """Sum up a study.

    The best configuration is chosen by the tune queries alone. Only the winner and the baseline are
    scored on the holdout: to show every arm's best there would be to look once for each, and to
    invite a choice by what was held out. The baseline can be the best configuration. ``stopped_by``
    is what ended a study that did not finish, as ``Study`` has it.
    """
    told = [trial for trial in trials if trial.is_told]
    baseline = best_trial([trial for trial in told if trial.arm == BASELINE_ARM])
    scored: dict[str, HoldoutResult | None] = {}
    for trial in (winner, baseline):
        if score_holdout is not None and trial is not None and trial.objective is not None:
            key = params_key(trial.params)
            scored[key] = scored[key] if key in scored else score_holdout(trial.params)

    def standing(trial: Trial | None) -> Standing | None:
        if trial is None or trial.objective is None:
            return None
        result = scored.get(params_key(trial.params))
        return Standing(
            arm=trial.arm,
            trial=trial.number,
            params=trial.params,
            tune_objective=trial.objective,
            tune_metrics=trial.metrics,
            holdout_objective=None if result is None else result.objective,
            holdout_metrics={} if result is None else result.metrics,
            violation=trial.violation,
        )

    arms = (
        standing(best_trial([trial for trial in told if trial.arm == arm.name]))
        for arm in header.arms
        if arm.name != BASELINE_ARM
    )
    return StudySummary(
        state=state,
        best=standing(best_trial(told)),
        baseline=standing(baseline),
        arms=tuple(arm for arm in arms if arm is not None),
        finished_trials=sum(trial.state is TrialState.FINISHED for trial in told),
        failed_trials=sum(trial.state is TrialState.FAILED for trial in told),
        shared_trials=sum(trial.state is TrialState.SHARED for trial in told),
        raced_out_trials=sum(trial.state is TrialState.RACED_OUT for trial in told),
        seconds=seconds,
        winner=standing(winner),
        racing=_savings(header, told),
        reason=_reason(state, told, stopped_by),
        indexes=index_costs(told),
    )


def _reason(state: str, told: Sequence[Trial], stopped_by: str) -> str:
    if state != "failed":
        return stopped_by
    return f"Failed: {stopped_by}" if stopped_by else Failures.of(told).sentence


def asked_in_trials(header: StudyHeader, trials: Iterable[Trial]) -> dict[str, int]:
    """Return how many queries the trials that ended had answered, and timed; none by 0."""
    queries = int(header.dataset.get("tune_queries", 0))
    answered = [t for t in trials if t.shared_from is None and (t.is_scored or t.race is not None)]
    timed = sum(LATENCY_PASS in trial.seconds for trial in answered)
    asked = {TRIALS: sum(queries if t.race is None else t.race.queries for t in answered)}
    return {**asked, TIMED_IN_TRIALS: timed * timed_queries(queries)} if timed else asked


def _savings(header: StudyHeader, told: Sequence[Trial]) -> Savings | None:
    """Count the query evaluations that racing saved; None where the trials did not race."""
    section = header.config.get("racing")
    queries = header.dataset.get("tune_queries")
    if section is None or queries is None:
        return None
    own = [
        trial
        for trial in told
        if trial.shared_from is None and (trial.is_scored or trial.race is not None)
    ]
    saved = sum(queries - trial.race.queries for trial in own if trial.race is not None)
    note = ""
    if not usable_rungs(queries, section["rungs"]):
        note = (
            f"racing could stop no trial: of {queries} queries to tune on, no rung has the "
            f"{FEWEST} that it takes"
        )
    elif own and not any(trial.is_feasible for trial in own):
        note = "racing could stop no trial: none met the constraints, so there was none to beat"
    return Savings(saved, queries * len(own), note)
