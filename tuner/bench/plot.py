"""The picture of `tuner bench`: throughput and latency by load."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tuner.bench.levels import Level
from tuner.core.errors import InputError


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
