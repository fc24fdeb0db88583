"""The verdict in a sentence, what to do next, and the few figures that belong beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tuner.core.shown import shortened
from tuner.core.steps import duration, where_it_went
from tuner.core.study_record import Standing, StudySummary
from tuner.evaluation.system_metrics import CONTEXT_TOKENS
from tuner.report.parts import (
    LONGEST_VALUE,
    MISSING,
    Headline,
    counted,
    percent,
    shown,
    shown_param,
    signed,
)
from tuner.report.review import UNFINISHED, Review
from tuner.study.failures import Failures, by_cause, reason_of
from tuner.study.results import BASELINE_ARM

# Outcome: its tone on the page, and a mark that tells them apart without colour.
_OUTCOMES = {
    "deploy": ("deploy", "✓"),
    "keep the baseline": ("keep", "="),
    "not enough queries": ("open", "?"),
}


def headline(review: Review) -> Headline:
    """Say what the study found, in the verdict's words, or why there is no verdict."""
    facts = _facts(review)
    goals = (*(one["sentence"] for one in review.summary.goals), *review.summary.front_notes)
    if not review.verdict or review.summary.state == "failed":
        outcome, sentence = _without_verdict(review)
        following = _next_step(review)
        return Headline("none", "–", outcome, sentence, following, facts=facts, goals=goals)
    outcome = review.verdict["outcome"]
    tone, mark = _OUTCOMES.get(outcome, ("none", "–"))
    sentence, caveat = _told(review.verdict)
    following = _next_step(review)
    worse = [one["goal"] for one in review.summary.goals if one["reading"] == "worse"]
    called = outcome.capitalize()
    if worse and tone == "deploy":
        # Green says that nothing was lost.
        tone, mark, called = "mixed", "±", f"{called}, at a price: {' and '.join(worse)} got worse"
    return Headline(tone, mark, called, sentence, following, caveat, facts, goals)


def _told(verdict: Mapping[str, Any]) -> tuple[str, str]:
    """Return why, with what to do about it, and what weakens that."""
    if "finding" in verdict:
        caveats = " ".join(one["text"] for one in verdict["caveats"])
        return f"{verdict['finding']} {verdict['advice']}".strip(), caveats
    # Of a study before those were kept apart: what weakens a verdict follows it in brackets.
    sentence = verdict["sentence"].removeprefix(f"{verdict['outcome'].capitalize()}: ")
    sentence, _, caveat = f"{sentence[:1].upper()}{sentence[1:]}".partition(". (")
    if not caveat:
        return sentence, ""
    return f"{sentence}.", caveat.replace(".) (", ". ").removesuffix(")")


def _without_verdict(review: Review) -> tuple[str, str]:
    """Name the state, and say why nothing was decided."""
    state, chosen, baseline = review.summary.state, review.chosen, review.baseline
    reason = review.summary.reason
    if state == "failed":
        reason = reason or Failures.of(review.trials).sentence
        reason = reason.removeprefix("Failed: ")
        return "Failed", reason[:1].upper() + reason[1:]
    if chosen is None:
        told = [trial for trial in review.trials if trial.is_told]
        if not told:
            return "No result yet", "No trial has ended so far."
        return "No result", f"None of {counted(len(told), 'trial')} could be scored."
    if state in ("interrupted", UNFINISHED):
        outcome = "Interrupted" if state == "interrupted" else "Not finished"
        why = f"{reason}; " if reason else ""
        why += "a verdict is given at the end of a study, on queries that it has not seen"
    elif any(trial.arm == BASELINE_ARM for trial in review.trials) and baseline is None:
        outcome, why = "No verdict", "the baseline could not be evaluated"
    elif baseline is None:
        outcome, why = "No verdict", "the configuration names no baseline to compare with"
    elif not review.header.dataset:
        outcome, why = "No verdict", "the system measures itself, so no queries could be compared"
    elif not any(chosen.tune_metrics.get(name) for name in review.weights):
        outcome, why = (
            "No verdict",
            "nothing relevant was found, so there is nothing to choose from",
        )
    else:
        outcome, why = "No verdict", "winner and baseline could not be compared query by query"
    return outcome, f"{_so_far(review)}; {why}."


def _so_far(review: Review) -> str:
    chosen, baseline = review.chosen, review.baseline
    assert chosen is not None
    if chosen.violation > 0.0:
        return "No configuration met the objective's constraints"
    found = f"The objective of the {review.called} is {shown(chosen.tune_objective)}"
    if baseline is None:
        return found
    if review.is_baseline:
        return f"{found}, the baseline's own"
    by = signed(chosen.tune_objective - baseline.tune_objective)
    on = " on the queries that were searched on, which flatters it" if review.header.dataset else ""
    return f"{found}, {by} against the baseline{on}"


def _next_step(review: Review) -> str:
    """Say what to do now, and what besides where trials failed."""
    step, is_over = _main_step(review), review.summary.state == "finished"
    if not (is_over and review.header.config and review.summary.is_worth_retrying):
        return step
    again = f"tuner resume {review.run_dir} --retry-failed"
    return f"{step} To evaluate the failed trials again: {again}".lstrip()


def _main_step(review: Review) -> str:
    state, outcome = review.summary.state, review.verdict.get("outcome")
    if state in ("interrupted", UNFINISHED):
        return f"Go on with: tuner resume {review.run_dir}"
    if state == "failed":
        return f"Once that is solved: tuner resume {review.run_dir} --retry-failed"
    if review.chosen is None:
        return _most_frequent_failure(review)
    if outcome == "deploy":
        return f"{_changes(review)}All its parameters are in best.yaml of the run directory."
    more, to_show = review.verdict.get("more_queries"), review.verdict.get("difference_to_show")
    # Newer verdicts say so in their own words.
    if outcome == "not enough queries" and more and to_show and "advice" not in review.verdict:
        queries = counted(more, "query", "queries")
        return f"{queries} held out would show a difference of {shown(to_show)}, in 4 of 5 studies."
    return ""


def _most_frequent_failure(review: Review) -> str:
    causes = by_cause([trial for trial in review.trials if trial.error])
    if not causes:
        return "Look at the failures below."
    return f"Look at the failures below, such as: {shortened(reason_of(causes[0][0]), 300)}"


def _changes(review: Review) -> str:
    """Say what to set in a service that runs the baseline."""
    chosen, baseline = review.chosen, review.baseline
    if chosen is None or baseline is None:
        return ""
    changes = [
        f"{name} {shortened(then, LONGEST_VALUE)} → {shortened(now, LONGEST_VALUE)}"
        for name, value in chosen.params.items()
        if (now := shown_param(value)) != (then := shown_param(baseline.params.get(name, MISSING)))
    ]
    return f"Set {', '.join(changes)}. " if changes else ""


def _price(review: Review) -> tuple[tuple[str, str, str], ...]:
    """Return what the chosen configuration costs a query, beside the baseline."""
    chosen, baseline = review.chosen, review.baseline
    if chosen is None:
        return ()
    is_held_out = chosen.holdout_objective is not None

    def tokens(standing: Standing | None) -> float | None:
        if standing is None:
            return None
        metrics = standing.holdout_metrics if is_held_out else standing.tune_metrics
        return metrics.get(CONTEXT_TOKENS)

    mine, theirs = tokens(chosen), tokens(baseline)
    if mine is None:
        return ()
    remark = ""
    if theirs and not review.is_baseline:
        remark = f"baseline {shown(theirs)}, {percent(mine, theirs)}"
    return (("tokens of context a query", shown(mine), remark),)


def _facts(review: Review) -> tuple[tuple[str, str, str], ...]:
    """Return name, figure and remark of what a reader asks first."""
    chosen, baseline, data = review.chosen, review.baseline, review.header.dataset
    facts = []
    if chosen is not None:
        is_held_out = chosen.holdout_objective is not None
        value = chosen.holdout_objective if is_held_out else chosen.tune_objective
        other = None
        if baseline is not None:
            other = baseline.holdout_objective if is_held_out else baseline.tune_objective
        where = "held-out queries" if is_held_out else "tune queries" if data else "all trials"
        remark = f"on the {where}" if data else ""
        if other is not None and not review.is_baseline:
            remark = f"baseline {shown(other)}, {remark}" if remark else f"baseline {shown(other)}"
        called = "baseline" if review.is_baseline else review.called
        facts.append((f"objective of the {called}", shown(value), remark))
    if review.rows:
        changes = [row.change for row in review.rows if row.change is not None]
        won, lost = sum(c > 1e-12 for c in changes), sum(c < -1e-12 for c in changes)
        tied = len(changes) - won - lost
        facts.append(("queries better / worse", f"{won} / {lost}", f"{tied} the same"))
    facts += _price(review)
    summary = review.summary
    told = sum(trial.is_told for trial in review.trials)
    arms = ", ".join(review.arms)
    failed = f"{summary.failed_trials:,} failed"
    if summary.failed_trials:
        failed += f" ({summary.failed_share:.0%})"
    facts.append(("trials", f"{told:,}", f"{arms}; {failed}"))
    if data:
        size = f"{data.get('documents', 0):,} documents"
        facts.append(("queries", f"{data.get('queries', 0):,}", f"of {data.get('name')}, {size}"))
    facts.append(("took", duration(summary.seconds), _where_time_went(summary)))
    return tuple(facts)


def _where_time_went(summary: StudySummary) -> str:
    parts = where_it_went(summary.seconds_by_phase, summary.seconds)
    return "; ".join(filter(None, (summary.state, summary.with_earlier_sessions, parts)))
