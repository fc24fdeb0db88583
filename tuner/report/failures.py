"""What went wrong: how trials ended, and why."""

from __future__ import annotations

from collections import Counter

from tuner.core.trial import Trial, TrialState
from tuner.report.parts import Block, Section, Table, Text, counted, shortened, shown_params
from tuner.report.review import Review

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
    else:
        blocks.append(Text("No trial failed."))
    broken = sum(trial.is_scored and not trial.is_feasible for trial in review.trials)
    if broken:
        text = f"{counted(broken, 'trial')} broke a constraint of the objective: never chosen"
        blocks.append(Text(f"{text} while another keeps them all."))
    return Section("failures", "Failures", "What went wrong, how often, and why?", tuple(blocks))


def _reasons(failed: list[Trial]) -> list[Block]:
    examples: dict[str, Trial] = {}
    counts: Counter[str] = Counter()
    for trial in failed:
        reason = trial.error or "no reason was given"
        examples.setdefault(reason, trial)
        counts[reason] += 1
    rows = tuple(
        (
            shortened(reason, LONGEST_REASON),
            f"{count:,}",
            f"{examples[reason].arm} #{examples[reason].number}: "
            f"{shown_params(examples[reason].params)}",
        )
        for reason, count in counts.most_common(MOST_REASONS)
    )
    columns = ("reason", "trials", "the first of them")
    blocks: list[Block] = [Table("Why trials failed", columns, rows, frozenset({"trials"}))]
    if len(counts) > MOST_REASONS:
        text = f"{counted(len(counts) - MOST_REASONS, 'other reason')}: see journal.jsonl."
        blocks.append(Text(text, True))
    return blocks
