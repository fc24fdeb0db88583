"""The picture of `tuner drift`: each measure by day, the two windows, and the trend."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuner.core.errors import InputError
from tuner.core.shown import as_percent

if TYPE_CHECKING:
    from tuner.drift.detection import Measure
    from tuner.drift.findings import DriftReport, Finding
    from tuner.drift.observations import Observation


def draw(
    observations: Sequence[Observation],
    measures: Sequence[Measure],
    report: DriftReport,
    path: Path,
) -> None:
    """Draw one panel for each measure: days without data stay empty.

    Raises:
        InputError: the file cannot be written.
    """
    from matplotlib.figure import Figure

    from tuner.drift.observations import by_day

    figure = Figure(figsize=(9, 2.8 * max(1, len(measures))), layout="constrained")
    for number, measure in enumerate(measures, start=1):
        axes = figure.add_subplot(max(1, len(measures)), 1, number)
        daily = by_day(observations, measure.name, percentile=measure.percentile)
        shown = daily.within(report.windows.trend)
        days: Any = [date.fromordinal(int(day)) for day in shown.days]
        axes.plot(days, shown.values, "o", markersize=4, color="tab:blue")
        is_alarm = False
        for finding in report.findings:
            if finding.measure == measure.name and finding.group == "":
                _draw_finding(axes, finding, report, days)
                is_alarm = is_alarm or finding.is_alarm
        percentile = f", p{measure.percentile:g}" if measure.percentile is not None else ""
        title = f"{measure.name}{percentile}: {'alarm' if is_alarm else 'no alarm'}"
        axes.set_title(title, loc="left", color="tab:red" if is_alarm else "black")
        axes.grid(alpha=0.3)
        axes.legend(loc="best", fontsize="small")
    try:
        figure.savefig(path)
    except OSError as error:
        raise InputError(f"--plot {path}: cannot be written: {error.strerror}") from error


def _draw_finding(axes: Any, finding: Finding, report: DriftReport, days: Sequence[date]) -> None:
    change = finding.change
    if change is None:
        return
    if finding.test == "trend":
        line = [change.before, change.after]
        axes.plot([days[0], days[-1]], line, "--", color="tab:gray", label="trend")
        return
    windows = report.windows
    for window, level in ((windows.reference, change.before), (windows.recent, change.after)):
        color = "tab:green" if window is windows.reference else "tab:orange"
        label = "reference" if window is windows.reference else "recent"
        axes.plot(window, [level, level], color=color, label=label)
        axes.axvspan(*window, color=color, alpha=0.08)
    if change.interval is not None:
        low, high = (change.before + end for end in change.interval)
        label = f"{as_percent(change.confidence)} interval"
        axes.fill_between(windows.recent, low, high, color="tab:orange", alpha=0.25, label=label)
