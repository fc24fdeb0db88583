"""What went wrong: how trials ended, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tuner.core.shown import counted, shortened
from tuner.core.trial import Trial, TrialState
from tuner.report.failing_region import Region, failing_region
from tuner.report.parts import Block, Section, Table, Text, shown_params
from tuner.report.review import Review
from tuner.study.failures import by_cause, reason_of

MOST_REASONS = 20
LONGEST_REASON = 500

_MEANINGS = {
    TrialState.FINISHED: ("finished", "evaluated on all tune queries"),
    TrialState.SHARED: ("shared", "took the result of an equal trial of another arm"),
    TrialState.RACED_OUT: ("stopped early", "fell behind the best, and was not asked further"),
    TrialState.FAILED: ("failed", "has a reason, and no score"),
    TrialState.RUNNING: ("not told", "was under way when the study stopped"),
}


def section(review: Review) -> Section:
    """Count how trials ended, and the reasons of those that failed."""
    states = Counter(trial.state for trial in review.trials)
    rows = tuple(
        (called, f"{states[state]:,}", meaning)
        for state, (called, meaning) in _MEANINGS.items()
        if states[state]
    )
    blocks: list[Block] = []
    if rows:
        blocks.append(
            Table("How trials ended", ("state", "trials", ""), rows, frozenset({"trials"}))
        )
    if (racing := review.summary.racing) is not None:
        note = f": {racing.note}" if racing.note else ""
        blocks.append(Text(f"{racing.sentence}{note}."))
    failed = [trial for trial in review.trials if trial.state is TrialState.FAILED]
    if failed:
        blocks += _reasons(failed)
        if (region := failing_region(review.trials)) is not None:
            blocks.append(Text(_told(region, review)))
    else:
        blocks.append(Text("No trial failed."))
    broken = sum(trial.is_scored and not trial.is_feasible for trial in review.trials)
    if broken:
        text = f"{counted(broken, 'trial')} broke a constraint of the objective: never chosen"
        blocks.append(Text(f"{text} while another keeps them all."))
    return Section("failures", "Failures", "What went wrong, how often, and why?", tuple(blocks))


def _told(region: Region, review: Review) -> str:
    """Say where trials fail, and whether what is chosen lies there."""
    if review.chosen is None:
        return region.sentence
    where = "in" if region.holds(review.chosen.params) else "outside"
    return f"{region.sentence} The {review.called} lies {where} this region."


def _reasons(failed: Sequence[Trial]) -> list[Block]:
    causes = by_cause(failed)
    rows = tuple(
        (
            f"{shortened(reason_of(trials[0]), LONGEST_REASON)}{_variants(trials)}",
            f"{len(trials):,}",
            f"{trials[0].arm} #{trials[0].number}: {shown_params(trials[0].params)}",
        )
        for trials in causes[:MOST_REASONS]
    )
    columns = ("reason", "trials", "the first of them")
    blocks: list[Block] = [Table("Why trials failed", columns, rows, frozenset({"trials"}))]
    if len(causes) > MOST_REASONS:
        text = f"{counted(len(causes) - MOST_REASONS, 'other reason')}: see journal.jsonl."
        blocks.append(Text(text, True))
    return blocks


def _variants(trials: Sequence[Trial]) -> str:
    reasons = {reason_of(trial) for trial in trials}
    if len(reasons) == 1:
        return ""
    return " (numbers or names in it differ from trial to trial)"
