"""The table at the end of a run: each arm's best and the baseline, tune and holdout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from tuner.cli._console import console
from tuner.core.study_record import Standing, StudySummary
from tuner.core.trial import Params


def print_summary(summary: StudySummary, metric_names: Sequence[str]) -> None:
    """Print who won, by how much, and on which queries."""
    console().print(_table(summary, metric_names))


def _table(summary: StudySummary, metric_names: Sequence[str]) -> Table:
    has_holdout = summary.best is not None and summary.best.holdout_objective is not None
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("")
    table.add_column("tune", justify="right")
    if has_holdout:
        table.add_column("holdout", justify="right")
        for name in metric_names:
            table.add_column(name, justify="right")
    table.add_column("parameters", overflow="fold")
    for label, standing, style in _rows(summary):
        metrics = [_number(standing.holdout_metrics.get(name)) for name in metric_names]
        figures = [_number(standing.tune_objective)]
        if has_holdout:
            figures += [_number(standing.holdout_objective), *metrics]
        table.add_row(label, *figures, shown_params(standing.params), style=style)
    return table


def _rows(summary: StudySummary) -> list[tuple[str, Standing, str]]:
    rows = [(standing.arm, standing, "") for standing in summary.arms]
    if summary.baseline is not None:
        rows.insert(0, ("baseline", summary.baseline, ""))
    if summary.best is not None:
        rows.append((f"best ({summary.best.arm})", summary.best, "bold"))
    return rows


def shown_params(params: Params | Mapping[str, Any]) -> str:
    """Return parameters on one line, floats to four digits."""
    return " ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in params.items()
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"
