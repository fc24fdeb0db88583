"""How fast each arm found its best, and whether more trials would have helped."""

from __future__ import annotations

from collections.abc import Sequence

from tuner.core.shown import counted
from tuner.core.trial import Trial, TrialState, best_trial
from tuner.report.chart import Axis, Chart, Numbers, Series, Value
from tuner.report.parts import (
    MISSING,
    Block,
    Charts,
    Section,
    Table,
    Text,
    shown,
    shown_params,
)
from tuner.report.review import Review
from tuner.study.results import BASELINE_ARM

# An improvement within this last share of an arm's trials says that it had not settled; of so few
# that the share is under 3 trials, nothing can be said but that it improved in the last 3.
LATE = 0.1
FEWEST_LATE = 3


def best_so_far(trials: Sequence[Trial]) -> list[tuple[int, Trial]]:
    """Return where the best of an arm changes: how many trials it had asked for, and the new best.

    By the study's own rule: a feasible one before any other, then the higher objective.
    """
    steps: list[tuple[int, Trial]] = []
    for count, trial in enumerate(trials, start=1):
        before = [steps[-1][1]] if steps else []
        if trial.is_scored and best_trial([*before, trial]) is trial:
            steps.append((count, trial))
    return steps


def section(review: Review) -> Section:
    """Overlay the best objective so far of every arm."""
    title, lead = "Convergence", "Did each search settle, and which was quickest?"
    arms = [(arm, [t for t in review.trials if t.arm == arm]) for arm in review.arms]
    blocks: tuple[Block, ...] = ()
    if any(trial.is_scored for _, trials in arms for trial in trials):
        blocks = (Charts("convergence", (_chart(review, arms),)),)
    if not arms:
        return Section("convergence", title, lead, (Text("No arm has asked for a trial."),))
    return Section("convergence", title, lead, (*blocks, _table(review, arms)))


def overlay(
    name: str,
    title: str,
    caption: str,
    curves: Sequence[tuple[str, Sequence[Trial]]],
    *,
    along: str,
    places: Sequence[int],
    level: float | None = None,
    is_own: bool = True,
) -> Chart:
    """Draw curves of the best so far over each other, with the baseline as a level line.

    ``along`` says which trials the axis counts; ``places`` are those of the curves' colours.
    ``is_own``: the trials are those of the study that the page is about.
    """
    series: list[Series] = []
    rows: list[tuple[Value, ...]] = []
    for place, (label, trials) in zip(places, curves, strict=True):
        steps = best_so_far(trials)
        if not steps:
            continue
        ends = [*steps, (len(trials), steps[-1][1])] if steps[-1][0] < len(trials) else steps
        series.append(
            Series(
                label,
                "steps",
                "arm",
                tuple(float(count) for count, _ in ends),
                tuple(trial.objective or 0.0 for _, trial in ends),
                tuple(
                    f"{label} after {count}: {shown(trial.objective)} (trial #{trial.number}: "
                    f"{shown_params(trial.params)})"
                    for count, trial in ends
                ),
                place=place,
                trials=tuple(trial.number for _, trial in ends) if is_own else (),
            )
        )
        rows += [(label, count, trial.number, trial.objective) for count, trial in ends]
    longest = max((len(trials) for _, trials in curves), default=1)
    if level is not None:
        width = (1.0, float(max(longest, 2)))
        text = f"baseline: {shown(level)}"
        line = Series("baseline", "line", "baseline", width, (level, level), (text, text))
        series.append(line)
        rows.append((BASELINE_ARM, None, None, level))
    return Chart(
        name,
        title,
        caption,
        "; ".join(f"{one.name} reaches {shown(one.y[-1])}" for one in series),
        Axis(along),
        Axis("best objective so far"),
        tuple(series),
        Numbers(("curve", "trials", "trial", "best_objective"), tuple(rows)),
    )


def _chart(review: Review, arms: Sequence[tuple[str, Sequence[Trial]]]) -> Chart:
    baseline = review.baseline
    return overlay(
        "convergence",
        "Best objective so far, by arm",
        f"{_late(arms)} On the tune queries, where the best of many trials looks better than it is."
        if review.header.dataset
        else _late(arms),
        arms,
        along="trials of the arm",
        places=[review.arm_places[arm] for arm, _ in arms],
        level=None if baseline is None else baseline.tune_objective,
    )


def _late(arms: Sequence[tuple[str, Sequence[Trial]]]) -> str:
    """Say which arms still improved at their end."""
    late = []
    for arm, trials in arms:
        steps = best_so_far(trials)
        last = max(FEWEST_LATE, LATE * len(trials))
        if len(trials) >= 1 / LATE and steps and steps[-1][0] > len(trials) - last:
            late.append(arm)
    if late:
        whose = "its" if len(late) == 1 else "their"
        still = f"{', '.join(late)} still improved in {whose} last trials"
        return f"{still}: a larger budget may find more."
    if any(LATE * len(trials) < FEWEST_LATE for _, trials in arms):
        return "With so few trials an arm, nobody can say whether more of them would find more."
    return "No arm improved in the last tenth of its trials: more of them promise little."


def _table(review: Review, arms: Sequence[tuple[str, Sequence[Trial]]]) -> Table:
    records = {arm.name: arm for arm in review.header.arms}
    rows = []
    for arm, trials in arms:
        steps = best_so_far(trials)
        record = records.get(arm)
        count = f"{len(trials):,}" if record is None else f"{len(trials):,} of {record.budget:,}"
        stopped = sum(trial.state is TrialState.RACED_OUT for trial in trials)
        failed = sum(trial.state is TrialState.FAILED for trial in trials)
        rows.append(
            (
                arm if record is None or record.kind == arm else f"{arm} ({record.kind})",
                count,
                shown(steps[-1][1].objective) if steps else MISSING,
                f"{steps[-1][0]:,}" if steps else MISSING,
                f"{stopped:,}",
                f"{failed:,}",
            )
        )
    columns = ("arm", "trials", "best objective", "found after", "stopped early", "failed")
    caption = f"{counted(len(review.trials), 'trial')} in all, the baseline's included"
    return Table(caption, columns, tuple(rows), frozenset(columns[1:]))
