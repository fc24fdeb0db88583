"""What ``tuner bench`` shows: a row a load, the stages, and the curves as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from tuner.cli.console import console
from tuner.cli.tables import shown_params
from tuner.core.errors import InputError
from tuner.core.policy import Policy
from tuner.core.trial import Params
from tuner.monitoring.latency import TOTAL, LatencySummary

if TYPE_CHECKING:
    from tuner.bench.load import Level

_TIMES = ("mean", "p50", "p90", "p95", "p99", "max")
_PICTURES = (".pdf", ".png", ".svg")


def print_levels(levels: Sequence[Level], choice: Params | Policy) -> None:
    """Print a row for each load, then the stages of the first and of the heaviest one."""
    shown = "by query type" if isinstance(choice, Policy) else shown_params(choice)
    table = _table("", "queries", "failed", "QPS", *(f"{name} ms" for name in _TIMES))
    for level in levels:
        summary = level.load.latencies.summary()
        counts = (str(summary.count), str(summary.errors), _figure(level.load.qps))
        table.add_row(level.label, *counts, *_times(summary))
    console().print(shown)
    console().print(table)
    staged = [level for level in levels if len(level.load.latencies.stages) > 1]
    if not staged:
        return
    table = _table("stage", "", *(f"{name} ms" for name in _TIMES))
    for level in dict.fromkeys((staged[0], staged[-1])):
        for stage in level.load.latencies.stages:
            if stage != TOTAL:
                table.add_row(stage, level.label, *_times(level.load.latencies.summary(stage)))
    console().print()
    console().print(table)


def check_plot(path: Path) -> None:
    """Check ahead of the measuring that a picture can be written.

    Raises:
        InputError: another kind of file, or no such folder.
    """
    if path.suffix.lower() not in _PICTURES:
        raise InputError(f"--plot {path}: write a file that ends in {', '.join(_PICTURES)}")
    if not path.absolute().parent.is_dir():
        raise InputError(f"--plot {path}: there is no folder {path.parent}")


def draw(levels: Sequence[Level], path: Path, *, title: str) -> None:
    """Draw throughput and latency by load; closed and open loops have axes of their own.

    Raises:
        InputError: the file cannot be written.
    """
    from matplotlib.figure import Figure

    kinds = [kind for kind in ("closed", "open") if any(row.kind == kind for row in levels)]
    figure = Figure(figsize=(9, 3.6 * len(kinds)), layout="constrained")
    figure.suptitle(title)
    for row, kind in enumerate(kinds):
        chosen = sorted((level for level in levels if level.kind == kind), key=lambda row: row.at)
        left = figure.add_subplot(len(kinds), 2, 2 * row + 1)
        right = figure.add_subplot(len(kinds), 2, 2 * row + 2)
        at = [level.at for level in chosen]
        left.plot(at, [level.load.qps for level in chosen], marker="o")
        left.set_ylabel("answered queries a second")
        for name in ("p50", "p95", "p99"):
            values = [getattr(row.load.latencies.summary(), f"{name}_ms") for row in chosen]
            right.plot(at, values, marker="o", label=name)
        right.set_ylabel("latency, ms")
        right.legend()
        for axes in (left, right):
            axes.set_xlabel("workers" if kind == "closed" else "queries a second that arrive")
            axes.set_ylim(bottom=0)
            if kind == "closed":
                axes.set_xticks(at)
            axes.grid(alpha=0.3)
    try:
        figure.savefig(path)
    except OSError as error:
        raise InputError(f"--plot {path}: cannot be written: {error.strerror}") from error


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        is_name = column in {"", "stage"}
        table.add_column(column, justify="left" if is_name else "right", no_wrap=True)
    return table


def _times(summary: LatencySummary) -> list[str]:
    return [_figure(getattr(summary, f"{name}_ms")) for name in _TIMES]


def _figure(value: Any) -> str:
    return "–" if value != value else f"{value:.3g}" if value < 100 else f"{value:.0f}"
