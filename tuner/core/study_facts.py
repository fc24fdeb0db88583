"""What a study found, as facts that every view of it words: terminal, report, MLflow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tuner.core.calls import TRIALS, calls_sentence
from tuner.core.index_costs import IndexCosts
from tuner.core.policy import POLICY, is_policy
from tuner.core.shown import as_percent, counted
from tuner.core.study_record import Standing, StudyHeader, StudySummary, is_clear
from tuner.core.trial import Params, Scalar

OBJECTIVE = "objective"


class NextStep(StrEnum):
    """What to do with a study; a view knows the words and the command."""

    RESUME = "go on with it"
    RETRY = "solve what made it fail, and evaluate the failed trials again"
    LOOK = "look at the failures"
    DEPLOY = "put the winner into service"
    KEEP = "leave the service as it is"
    LABEL = "label more queries"
    DECIDE = "decide without a verdict"


_NEXT = {
    "deploy": NextStep.DEPLOY,
    "keep the baseline": NextStep.KEEP,
    "not enough queries": NextStep.LABEL,
}


@dataclass(frozen=True)
class Figure:
    """One figure of the chosen configuration beside the baseline's, where that has one.

    ``name`` is ``OBJECTIVE`` or a metric's; ``is_held_out``: on which queries it was measured.
    """

    name: str
    is_held_out: bool
    chosen: float
    baseline: float | None


@dataclass(frozen=True)
class Change:
    """A parameter of either; None where the baseline does not set it."""

    name: str
    baseline: Scalar | None
    chosen: Scalar | None


@dataclass(frozen=True)
class TypeFound:
    """Winner less baseline on the queries of one type; ``clear`` is None where they are too few."""

    name: str
    queries: int
    difference: float
    better: int
    worse: int
    clear: bool | None


@dataclass(frozen=True)
class StudyFacts:
    """What stands in every view of a study.

    Attributes:
        headline: the verdict's sentence, or what there is in place of a verdict.
        state: the headline's first words where there is no verdict: "Failed", "No verdict", …
        why: why there is no verdict; empty where there is one.
        figures: objective, its metrics and costs, the held-out ones first.
        changes: the chosen configuration's parameters, and those that only the baseline has.
        types: by query type, as far as they could be compared.
        types_are_flattered: whether the types were compared on the queries that chose the winner.
        trials: how many trials there were, by what became of them, in words.
        indexes: what the indexes cost, where there was more than the system's own; else empty.
        next_step: what to do now.
        may_retry: whether evaluating the failed trials again is worth the while.
    """

    headline: str
    state: str
    why: str
    figures: tuple[Figure, ...]
    changes: tuple[Change, ...]
    types: tuple[TypeFound, ...]
    types_are_flattered: bool
    trials: tuple[str, ...]
    indexes: str
    next_step: NextStep
    may_retry: bool


def study_facts(
    header: StudyHeader, summary: StudySummary, *, costs: tuple[str, ...] = ()
) -> StudyFacts:
    """Return the facts of a study; ``costs`` are metrics to show beside those of the objective."""
    verdict = summary.verdict
    state, why = ("", "") if _has_verdict(summary) else _without_verdict(header, summary)
    return StudyFacts(
        headline=str(verdict["sentence"])
        if verdict and not why
        else _headline(state, why, summary),
        state=state,
        why=why,
        figures=tuple(_figures(header, summary, costs)),
        changes=changes(header, summary),
        types=types_found(verdict),
        types_are_flattered="corrected" in (verdict or {}),
        trials=_trials(summary),
        indexes="" if (told := indexes_to_tell(summary)) is None else told.sentence,
        next_step=_next_step(summary),
        may_retry=bool(summary.state == "finished" and header.config and summary.is_worth_retrying),
    )


def indexes_to_tell(summary: StudySummary) -> IndexCosts | None:
    """Return what the indexes cost, where there was more than the system's own."""
    told = summary.indexes
    return told if told is not None and told.count > 1 else None


def changes(header: StudyHeader, summary: StudySummary) -> tuple[Change, ...]:
    """Return every parameter of the chosen configuration and of the baseline."""
    chosen, baseline = summary.chosen, summary.baseline
    if chosen is None:
        return ()
    then = {} if baseline is None else _named(header, baseline.params)
    now = whole_params(header, summary, chosen)
    return tuple(
        Change(name, then.get(name), now.get(name)) for name in dict.fromkeys([*now, *then])
    )


def whole_params(header: StudyHeader, summary: StudySummary, standing: Standing) -> Params:
    """Return a configuration's parameters with those that are not tuned: as in the baseline.

    Those that neither the space nor the baseline of the configuration names are left out: they have
    their defaults, in every trial.
    """
    baseline = {} if summary.baseline is None else summary.baseline.params
    fixed = {n: v for n, v in baseline.items() if n not in header.space and n != POLICY}
    return _named(header, {**fixed, **standing.params})


def _named(header: StudyHeader, params: Params) -> Params:
    given = header.config.get("baseline")
    if not isinstance(given, Mapping) or is_policy(given):
        return params
    return {n: v for n, v in params.items() if n in header.space or n in given or n == POLICY}


def asked_told(header: StudyHeader, summary: StudySummary) -> str:
    """Say how many queries were asked, and what for, whatever became of the study."""
    told = calls_sentence(summary.queries_asked)
    if not header.dataset or TRIALS not in summary.queries_asked or summary.spent is not None:
        return told
    uncounted = []
    if summary.failed_trials:
        uncounted.append(f"what {counted(summary.failed_trials, 'trial')} asked before failing")
    if summary.state == "interrupted":
        uncounted.append("what was under way in trials that did not end")
    if not uncounted:
        return told
    return f"{told or 'no query answered in trials'}; not counted: {', '.join(uncounted)}"


def spent_told(summary: StudySummary) -> list[tuple[str, str]]:
    """Return what was spent, on what, and what was saved, as pairs of a label and words."""
    spent = summary.spent
    if spent is None:
        return []
    lines = [
        ("spent", spent.in_all(summary.seconds_in_all)),
        ("spent on", spent.by_part),
        ("unspent", spent.unspent if summary.state == "finished" else ""),
        ("saved", spent.saved),
    ]
    return [(label, words) for label, words in lines if words]


def types_found(verdict: Mapping[str, Any] | None) -> tuple[TypeFound, ...]:
    """Return what a recorded verdict found by query type, without those that say nothing."""
    return tuple(
        TypeFound(
            name=str(group["group"]),
            queries=found["n"],
            difference=found["mean_difference"],
            better=found["wins"],
            worse=found["losses"],
            clear=None if group["adjusted_p"] is None else is_clear(group["adjusted_p"]),
        )
        for group in (verdict or {}).get("by_type") or ()
        if (found := group["comparison"])["mean_difference"] is not None
    )


def _has_verdict(summary: StudySummary) -> bool:
    return summary.verdict is not None and summary.state != "failed"


def _without_verdict(header: StudyHeader, summary: StudySummary) -> tuple[str, str]:
    """Name the state, and say why nothing was decided."""
    reason, chosen = summary.reason, summary.chosen
    if summary.state == "failed":
        return "Failed", reason.removeprefix("Failed: ") or "too many of its trials did"
    if chosen is None:
        if not summary.told_trials:
            return "No result yet", "no trial has ended so far"
        return "No result", f"none of {counted(summary.told_trials, 'trial')} could be scored"
    if summary.state != "finished":
        state = "Interrupted" if summary.state == "interrupted" else "Not finished"
        why = "a verdict is given at the end of a study, on queries that it has not seen"
        return state, f"{reason}; {why}" if reason else why
    maximize = header.objective.get("maximize", {})
    if summary.baseline is None and header.baseline is not None:
        why = "the baseline could not be evaluated"
    elif summary.baseline is None:
        why = "the configuration names no baseline to compare with"
    elif not header.dataset:
        why = "the system measures itself, so no queries could be compared"
    elif not any(chosen.tune_metrics.get(name) for name in maximize):
        why = "nothing relevant was found, so there is nothing to choose from"
    else:
        why = "winner and baseline could not be compared query by query"
    return "No verdict", why


def _headline(state: str, why: str, summary: StudySummary) -> str:
    chosen = summary.chosen
    if state == "Failed":  # by an error's own words
        return f"{state}: {why}"
    if chosen is None or chosen.violation <= 0.0:
        return f"{state}: {why}."
    closest = "No configuration met the constraints; the best is the one closest to them."
    return f"{state}: {why}. {closest}"


def _figures(
    header: StudyHeader, summary: StudySummary, costs: tuple[str, ...]
) -> Iterator[Figure]:
    chosen = summary.chosen
    if chosen is None:
        return
    for is_held_out in (True, False):
        objective, metrics = _measured(chosen, is_held_out=is_held_out)
        if objective is None:
            continue
        other, others = _measured(summary.baseline, is_held_out=is_held_out)
        yield Figure(OBJECTIVE, is_held_out, objective, other)
        for name in (*header.objective.get("maximize", ()), *costs):
            if name in metrics:
                yield Figure(name, is_held_out, metrics[name], others.get(name))
        costs = ()  # once is enough


def _measured(
    standing: Standing | None, *, is_held_out: bool
) -> tuple[float | None, Mapping[str, float]]:
    if standing is None:
        return None, {}
    if is_held_out:
        return standing.holdout_objective, standing.holdout_metrics
    return standing.tune_objective, standing.tune_metrics


def _trials(summary: StudySummary) -> tuple[str, ...]:
    counts = (
        (summary.raced_out_trials, "stopped early, behind the best"),
        (summary.shared_trials, "shared with an equal one"),
        (summary.failed_trials, f"failed ({as_percent(summary.failed_share)})"),
    )
    evaluated = f"{counted(summary.finished_trials, 'trial')} evaluated"
    return (evaluated, *(f"{count:,} {what}" for count, what in counts if count))


def _next_step(summary: StudySummary) -> NextStep:
    if summary.state == "failed":
        return NextStep.RETRY
    if summary.state != "finished":
        return NextStep.RESUME
    if summary.chosen is None:
        return NextStep.LOOK
    if summary.verdict is None:
        return NextStep.DECIDE
    return _NEXT.get(str(summary.verdict["outcome"]), NextStep.DECIDE)
