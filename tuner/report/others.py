"""Several studies beside each other: what each found, and how fast."""

from __future__ import annotations

from collections.abc import Sequence

from tuner.report.convergence import overlay
from tuner.report.parts import MISSING, Block, Charts, Section, Table, Text, shown, shown_params
from tuner.report.review import Review

# What must be the same for two objectives to be comparable, and what to call it.
_SAME = {"dataset": "data set", "split": "split of the queries", "objective": "objective"}


def section(review: Review, others: Sequence[Review]) -> Section:
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
        tuple(_row(label, one) for label, one in zip(labels, studies, strict=True)),
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


def _row(label: str, review: Review) -> tuple[str, ...]:
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
