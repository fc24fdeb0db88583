"""What ``tuner bench`` shows: a row a load, and the stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tuner.bench.levels import Level
from tuner.cli.console import console, new_table
from tuner.cli.tables import shown_params
from tuner.core.policy import Policy
from tuner.core.trial import Params
from tuner.monitoring.latency import TOTAL, LatencySummary

_TIMES = ("mean", "p50", "p90", "p95", "p99", "max")


def print_levels(levels: Sequence[Level], choice: Params | Policy) -> None:
    """Print a row for each load, then the stages of the first and of the heaviest one."""
    shown = choice.told if isinstance(choice, Policy) else shown_params(choice)
    times = [f"{name} ms" for name in _TIMES]
    table = new_table("", "queries", "failed", "QPS", *times, no_wrap=True)
    for level in levels:
        summary = level.load.latencies.summary()
        counts = (str(summary.count), str(summary.errors), _figure(level.load.qps))
        table.add_row(level.label, *counts, *_times(summary))
    console().print(shown)
    console().print(table)
    staged = [level for level in levels if len(level.load.latencies.stages) > 1]
    if not staged:
        return
    table = new_table("stage", "", *times, words=("stage", ""), no_wrap=True)
    for level in dict.fromkeys((staged[0], staged[-1])):
        for stage in level.load.latencies.stages:
            if stage != TOTAL:
                table.add_row(stage, level.label, *_times(level.load.latencies.summary(stage)))
    console().print()
    console().print(table)


def _times(summary: LatencySummary) -> list[str]:
    return [_figure(getattr(summary, f"{name}_ms")) for name in _TIMES]


def _figure(value: Any) -> str:
    return "–" if value != value else f"{value:.3g}" if value < 100 else f"{value:.0f}"
