"""The table of A against B: a row a metric, with the paired difference and what it is worth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tuner.cli.console import console, new_table
from tuner.cli.out import echo
from tuner.core.shown import figure, shown_p
from tuner.stats import PairedComparison

_COLUMNS = (
    "",
    "A",
    "B",
    "B less A",
    "95 % interval",
    "d_z",
    "p",
    "p (Holm)",
    "queries",
    "better",
    "worse",
)

_EFFECT_SIZE = (
    "d_z: Cohen's d of paired values, the mean difference in standard deviations of the differences"
)
# Shown of those that gained and of those that lost most.
_CHANGED_QUERIES = 5


def print_pairs(metrics: Mapping[str, tuple[PairedComparison, float | None]]) -> None:
    """Print each metric's comparison; with it stands its p after Holm's correction."""
    table = new_table(*_COLUMNS)
    for name, (comparison, adjusted) in metrics.items():
        low, high = comparison.interval or (None, None)
        table.add_row(
            name,
            figure(comparison.control_mean),
            figure(comparison.treatment_mean),
            figure(comparison.mean_difference, "+.4f"),
            "–" if low is None else f"{low:+.4f} to {high:+.4f}",
            figure(comparison.effect_size, "+.2f"),
            shown_p(comparison.p_value),
            shown_p(adjusted),
            str(comparison.n),
            str(comparison.wins),
            str(comparison.losses),
        )
    console().print(table)
    echo(_EFFECT_SIZE)


def print_changes(
    changes: Sequence[tuple[int, float]], told: Callable[[int], str], *, title: str
) -> None:
    """Print the first of the rows, each with its change, and with what is told of its query."""
    if changes:
        echo(f"\n{title}")
    for row, change in changes[:_CHANGED_QUERIES]:
        echo(f"  {change:+.3f}  {told(row)}")
