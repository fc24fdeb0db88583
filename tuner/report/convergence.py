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
) -> Chart:
    """Draw curves of the best so far over each other, with the baseline as a level line.

    ``along`` says which trials the axis counts; ``places`` are those of the curves' colours.
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


# What must be the same for two objectives to be comparable, and what to call it.
_SAME = {"dataset": "data set", "split": "split of the queries", "objective": "objective"}


def beside(review: Review, others: Sequence[Review]) -> Section:
    """Tabulate the studies, and lay their searches over each other."""
    studies = [review, *others]
    labels = _labels(studies)
    columns = (
        "study",
        "verdict",
        "held out",
        "baseline, held out",
        "tune",
        "baseline, tune",
        "trials",
        "parameters",
    )
    table = Table(
        "Objective of winner and baseline, on the held-out queries and on the tune queries",
        columns,
        tuple(_study_row(label, one) for label, one in zip(labels, studies, strict=True)),
        frozenset(columns[2:7]),
        frozenset({0}),
    )
    curves = [(label, one.trials) for label, one in zip(labels, studies, strict=True)]
    # Before any figure: what must not be held against each other.
    blocks: list[Block] = [
        Text(f"{label} differs in {', '.join(differ)}: its figures cannot be held against these.")
        for label, one in zip(labels[1:], others, strict=True)
        if (differ := _differences(review, one))
    ]
    blocks.append(table)
    if any(trial.is_scored for _, trials in curves for trial in trials):
        chart = overlay(
            "compared",
            "Best objective so far, by study",
            "All trials of a study count, whichever arm asked for them and the baseline's too, in "
            "the order in which they were asked for. On the tune queries of each study.",
            curves,
            along="trials of the study",
            places=range(len(curves)),
        )
        blocks.append(Charts("compared", (chart,)))
    lead = "This study beside others."
    return Section("compared", "Studies side by side", lead, tuple(blocks))


def _study_row(label: str, review: Review) -> tuple[str, ...]:
    chosen, baseline = review.chosen, review.baseline
    outcome = review.verdict.get("outcome", f"none ({review.summary.state})")
    return (
        label,
        outcome,
        shown(None if chosen is None else chosen.holdout_objective),
        shown(None if baseline is None else baseline.holdout_objective),
        shown(None if chosen is None else chosen.tune_objective),
        shown(None if baseline is None else baseline.tune_objective),
        f"{sum(trial.is_told for trial in review.trials):,}",
        MISSING if chosen is None else shown_params(chosen.params),
    )


def _labels(studies: Sequence[Review]) -> list[str]:
    """Return the names of the run directories, numbered where they are the same."""
    names = [one.run_dir.resolve().name or one.header.name for one in studies]
    return [
        name if names.count(name) == 1 else f"{name} ({number})"
        for number, name in enumerate(names, start=1)
    ]


def _differences(review: Review, other: Review) -> list[str]:
    mine, theirs = review.header.fingerprints, other.header.fingerprints
    return [called for name, called in _SAME.items() if mine.get(name) != theirs.get(name)]
