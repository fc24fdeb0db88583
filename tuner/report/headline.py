"""The verdict in a sentence, what to do next, and the few figures that belong beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tuner.core.shown import as_percent, counted, shortened
from tuner.core.spent import amount
from tuner.core.steps import duration
from tuner.core.study_facts import NextStep, StudyFacts, indexes_to_tell, study_facts
from tuner.core.study_record import StudySummary
from tuner.evaluation.system_metrics import CONTEXT_TOKENS
from tuner.report.failing_region import failing_region
from tuner.report.parts import (
    LONGEST_VALUE,
    Headline,
    percent,
    shown,
    shown_param,
    signed,
)
from tuner.report.review import Review
from tuner.study.failures import Failures, by_cause, reason_of

# Outcome: its tone on the page, and a mark that tells them apart without colour.
_OUTCOMES = {
    "deploy": ("deploy", "✓"),
    "keep the baseline": ("keep", "="),
    "not enough queries": ("open", "?"),
}


def headline(review: Review) -> Headline:
    """Say what the study found, in the verdict's words, or why there is no verdict."""
    summary = review.summary
    if summary.state == "failed" and not summary.reason:
        summary = replace(summary, reason=Failures.of(review.trials).sentence)
    found = study_facts(review.header, summary, costs=(CONTEXT_TOKENS,))
    facts = _facts(review, found)
    goals = (*(one["sentence"] for one in review.summary.goals), *review.summary.front_notes)
    if found.why:
        sentence = _without_verdict(review, found)
        following = _next_step(review, found)
        return Headline("none", "–", found.state, sentence, following, facts=facts, goals=goals)
    outcome = review.verdict["outcome"]
    tone, mark = _OUTCOMES.get(outcome, ("none", "–"))
    sentence, caveat = _told(review.verdict)
    if (region := failing_region(review.trials)) is not None:
        caveat = f"{caveat} {region.sentence}".lstrip()
    caveat = f"{_lost_gain(review)} {caveat}".strip()
    following = _next_step(review, found)
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
    # Of a study before those were kept apart.
    return str(verdict["sentence"]), ""


def _lost_gain(review: Review) -> str:
    """Say that the gain on the tune queries is not there on held-out ones; empty where it may be.

    That is so where it lies above the whole interval of the held-out gain. Both are of the
    composite: a price does not change what luck gave.
    """
    compared = review.verdict.get("comparison") or {}
    highest = (compared.get("interval") or (None, None))[1]
    held_out = compared.get("mean_difference")
    chosen, baseline = review.trial(review.chosen), review.trial(review.baseline)
    if chosen is None or baseline is None or review.is_baseline:
        return ""
    # By a judge's labels the two gains are not of the same measure; and where each part of the
    # queries met a winner of its own, no winner's gain was tested.
    if compared.get("judge") or review.verdict.get("parts"):
        return ""
    values = review.composite(chosen), review.composite(baseline)
    if highest is None or held_out is None or values[0] is None or values[1] is None:
        return ""
    tuned = values[0] - values[1]
    if tuned <= max(0.0, highest):
        return ""
    part = "all" if held_out <= 0.0 else "most" if held_out < tuned / 2 else "part"
    return (
        f"On the queries it was tuned on the {review.called} was ahead by {tuned:+.3f}; on "
        f"held-out queries it is {held_out:+.3f}: {part} of that gain was luck of the choice."
    )


def _without_verdict(review: Review, found: StudyFacts) -> str:
    """Say why nothing was decided, and how the study stands."""
    why = found.why[:1].upper() + found.why[1:]
    if review.summary.state == "failed":  # by an error's own words
        return why
    if review.chosen is None:
        return f"{why}."
    return f"{_so_far(review)}; {found.why}."


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


def _next_step(review: Review, found: StudyFacts) -> str:
    """Say what to do now, and what besides where trials failed."""
    step = _main_step(review, found)
    if not found.may_retry:
        return step
    again = f"tuner resume {review.run_dir} --retry-failed"
    return f"{step} To evaluate the failed trials again: {again}".lstrip()


def _main_step(review: Review, found: StudyFacts) -> str:
    match found.next_step:
        case NextStep.RESUME:
            return f"Go on with: tuner resume {review.run_dir}"
        case NextStep.RETRY:
            return f"Once that is solved: tuner resume {review.run_dir} --retry-failed"
        case NextStep.LOOK:
            return _most_frequent_failure(review)
        case NextStep.DEPLOY:
            changes = _changes(review, found)
            return f"{changes}All its parameters are in best.yaml of the run directory."
        case NextStep.LABEL:
            return _more_queries(review.verdict)
    return ""


def _more_queries(verdict: Mapping[str, Any]) -> str:
    """Say how many queries would tell, where the verdict is of before it said so itself."""
    more, to_show = verdict.get("more_queries"), verdict.get("difference_to_show")
    if "advice" in verdict or not more or not to_show:
        return ""
    queries = counted(more, "query", "queries")
    return f"{queries} held out would show a difference of {shown(to_show)}, in 4 of 5 studies."


def _most_frequent_failure(review: Review) -> str:
    causes = by_cause([trial for trial in review.trials if trial.error])
    if not causes:
        return "Look at the failures below."
    return f"Look at the failures below, such as: {shortened(reason_of(causes[0][0]), 300)}"


def _changes(review: Review, found: StudyFacts) -> str:
    """Say what to set in a service that runs the baseline."""
    if review.baseline is None:
        return ""
    told = [
        f"{change.name} {shortened(then, LONGEST_VALUE)} → {shortened(now, LONGEST_VALUE)}"
        for change in found.changes
        if change.chosen is not None  # not active: there is nothing to set
        and (now := shown_param(change.chosen)) != (then := shown_param(change.baseline))
    ]
    return f"Set {', '.join(told)}. " if told else ""


def _price(review: Review, found: StudyFacts) -> tuple[tuple[str, str, str], ...]:
    """Return what the chosen configuration costs a query, beside the baseline."""
    for figure in found.figures:
        if figure.name == CONTEXT_TOKENS:
            remark = ""
            if figure.baseline and not review.is_baseline:
                by = percent(figure.chosen, figure.baseline)
                remark = f"baseline {shown(figure.baseline)}, {by}"
            return (("tokens of context a query", shown(figure.chosen), remark),)
    return ()


def _facts(review: Review, found: StudyFacts) -> tuple[tuple[str, str, str], ...]:
    """Return name, figure and remark of what a reader asks first."""
    data, facts = review.header.dataset, []
    if found.figures:
        objective = found.figures[0]
        where = "held-out" if objective.is_held_out else "tune"
        remark = f"on the {where} queries" if data else ""
        if objective.baseline is not None and not review.is_baseline:
            other = f"baseline {shown(objective.baseline)}"
            remark = f"{other}, {remark}" if remark else other
        called = "baseline" if review.is_baseline else review.called
        facts.append((f"objective of the {called}", shown(objective.chosen), remark))
    if review.rows:
        changes = [row.change for row in review.rows if row.change is not None]
        won, lost = sum(c > 1e-12 for c in changes), sum(c < -1e-12 for c in changes)
        tied = len(changes) - won - lost
        facts.append(("queries better / worse", f"{won} / {lost}", f"{tied} the same"))
    facts += _price(review, found)
    summary = review.summary
    told = sum(trial.is_told for trial in review.trials)
    failed = f"{summary.failed_trials:,} failed"
    if summary.failed_trials:
        failed += f" ({as_percent(summary.failed_share)})"
    arms = ", ".join(review.arms) or "the baseline alone"
    facts.append(("trials", f"{told:,}", f"{arms}; {failed}"))
    if data:
        size = f"{data.get('documents', 0):,} documents"
        facts.append(("queries", f"{data.get('queries', 0):,}", f"of {data.get('name')}, {size}"))
    took = duration(summary.seconds)
    if summary.seconds_by_phase:  # of a study that was summed up, before its report was written
        took += " up to the report"
    if (indexes := indexes_to_tell(summary)) is not None:
        facts.append(("indexes", f"{indexes.count:,}", indexes.parts))
    facts.append(("took", took, _where_time_went(summary)))
    facts += _spent(summary)
    return tuple(facts)


def _spent(summary: StudySummary) -> list[tuple[str, str, str]]:
    """Return what was asked, and what that cost, where anything was asked."""
    spent = summary.spent
    if spent is None or not spent.queries:
        return []
    rows = [("queries asked", f"{spent.queries:,}", spent.by_part)]
    if spent.money is not None:
        limit = spent.limits.get("money")
        of = "" if limit is None else f"of {amount(limit)}"
        rows.append(("money spent", amount(spent.money), of))
    return rows


def _where_time_went(summary: StudySummary) -> str:
    state = f"{summary.state}, as {summary.ended_by}" if summary.ended_by else summary.state
    parts = (state, summary.with_earlier_sessions, summary.where_it_went)
    return "; ".join(filter(None, parts))
