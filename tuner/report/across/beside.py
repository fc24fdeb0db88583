"""Studies side by side: their figures in one table, and their searches over each other."""

from __future__ import annotations

from collections.abc import Sequence

from tuner.report.convergence import overlay
from tuner.report.parts import MISSING, Block, Charts, Section, Table, Text, shown, shown_params
from tuner.report.review import Review

# What must be the same for two objectives to be comparable, and what to call it.
_SAME = {"dataset": "data set", "split": "split of the queries", "objective": "objective"}


def section(studies: Sequence[Review], labels: Sequence[str]) -> Section:
    """Tabulate the studies, and lay their searches over each other; the first is the reference."""
    review, *others = studies
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
        Text(
            f"{label} differs from {labels[0]} in {', '.join(differ)}: their figures cannot be "
            "held against each other."
        )
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
            is_own=False,
        )
        blocks.append(Charts("compared", (chart,)))
    lead = "How each study ended, and how its search went."
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


def labels_of(studies: Sequence[Review]) -> list[str]:
    """Return the names of the run directories, numbered where they are the same.

    Without the study's name, which the page's title has, where all begin with the same: what is
    left is the time, which tells them apart also where a figure has little room.
    """
    names = [one.run_dir.resolve().name or one.header.name for one in studies]
    begin = f"{studies[0].header.name}-" if studies else ""
    is_shared = all(one.header.name == studies[0].header.name for one in studies)
    if is_shared and all(name.startswith(begin) and name != begin for name in names):
        names = [name.removeprefix(begin) for name in names]
    return [
        name if names.count(name) == 1 else f"{name} ({number})"
        for number, name in enumerate(names, start=1)
    ]


def _differences(review: Review, other: Review) -> list[str]:
    mine, theirs = review.header.fingerprints, other.header.fingerprints
    return [called for name, called in _SAME.items() if mine.get(name) != theirs.get(name)]
