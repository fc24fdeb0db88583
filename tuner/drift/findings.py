"""What a look for drift found, as records, as a sentence and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tuner.core.files import save_plot
from tuner.core.shown import as_percent
from tuner.drift.mix import MixChange
from tuner.drift.observations import Observation, Windows, by_day
from tuner.drift.windows import Change

if TYPE_CHECKING:
    from tuner.drift.detection import Measure


MOSTLY_MIX = 0.8
"""From this share of a change on it counts as one of the mix, where no type changed by itself."""

Test = Literal["window", "trend", "mix"]
Status = Literal["alarm", "no alarm", "insufficient data"]


@dataclass(frozen=True)
class Finding:
    """What one test found.

    Attributes:
        measure: its name; ``QUERY_MIX`` for the mix of query types.
        test: recent against reference window, the trend, or the mix of types.
        group: the query type that was looked at, empty for all queries.
        change: the movement; None for the mix.
        mix: the movement of the mix; None for any other.
        adjusted_p: by Holm over all findings of the report.
        min_effect: the smallest effect for an alarm: relative, or of the stability index.
        is_clear: whether chance is ruled out at the report's false-alarm rate.
        is_alarm: whether it is clear and as large as ``min_effect``.
        mix_part: how much of the difference of the windows the query types' shares alone explain;
            None where there is no telling.
    """

    measure: str
    test: Test
    group: str
    change: Change | None
    mix: MixChange | None
    adjusted_p: float
    min_effect: float
    is_clear: bool
    is_alarm: bool
    mix_part: float | None = None


@dataclass(frozen=True)
class DriftReport:
    """One look at the data.

    Attributes:
        status: "insufficient data" where nothing could be tested.
        findings: every test, alarms first.
        untested: what could not be tested, and why, one sentence each.
        windows: the days that were compared.
        alpha: the chance that a look without any drift raises an alarm, over all tests together.
    """

    status: Status
    findings: tuple[Finding, ...]
    untested: tuple[str, ...]
    windows: Windows
    alpha: float

    @property
    def sentence(self) -> str:
        """Return what to think of it, in words."""
        if not self.findings:
            return f"Insufficient data: {'; '.join(self.untested)}."
        told = self.alarms or tuple(one for one in self.findings if one.group == "")[:1]
        head = "Alarm" if self.alarms else "No alarm"
        text = f"{head}: {'; '.join(_told(one, self) for one in told)}."
        minor = [one for one in self.findings if one.is_clear and not one.is_alarm]
        if minor and not self.alarms:
            text = f"{head}." if told[:1] == tuple(minor[:1]) else text
            text += f" Clear, but too small to matter: {'; '.join(_told(o, self) for o in minor)}."
        return text

    @property
    def alarms(self) -> tuple[Finding, ...]:
        """Return the findings that call for somebody."""
        return tuple(finding for finding in self.findings if finding.is_alarm)

    def to_record(self) -> dict[str, Any]:
        """Return the report as a JSON-ready mapping."""
        windows = {
            name: [first.isoformat(), last.isoformat()]
            for name, (first, last) in asdict(self.windows).items()
        }
        return {
            "status": self.status,
            "alpha": self.alpha,
            "windows": windows,
            "findings": [asdict(finding) for finding in self.findings],
            "untested": list(self.untested),
        }


def _told(finding: Finding, report: DriftReport) -> str:
    if finding.change is not None:
        return _told_change(finding, finding.change, report)
    if finding.mix is None:
        return finding.measure
    mix = finding.mix
    moves = [after - before for before, after in zip(mix.before, mix.after, strict=True)]
    most = max(range(len(moves)), key=lambda place: abs(moves[place]))
    return (
        f"the mix of query types moved by a stability index of {mix.stability_index:.3f} "
        f"(p = {finding.adjusted_p:.2g}), {mix.kinds[most]} most, from "
        f"{as_percent(mix.before[most], '.1%')} to {as_percent(mix.after[most], '.1%')}"
    )


def _of_the_mix(finding: Finding, report: DriftReport) -> str:
    """Say how much of a change is that other kinds of queries came: no answer got worse by it."""
    change, part = finding.change, finding.mix_part
    if change is None or part is None or finding.group or part * change.difference <= 0:
        return ""
    share = part / change.difference
    if share < 0.5:
        return ""
    of_types = [one for one in report.findings if one.group and one.measure == finding.measure]
    if share >= MOSTLY_MIX and not any(one.is_clear for one in of_types):
        return "; no query type changed by itself: it is the mix of queries that changed"
    return f"; {as_percent(min(share, 1.0))} of that is the changed mix of query types"


def _told_change(finding: Finding, change: Change, report: DriftReport) -> str:
    subject = f"{finding.measure} of {finding.group}" if finding.group else finding.measure
    last = report.windows.recent[1]
    if finding.test == "trend":
        where = f"along a line through {change.days_before} days with data up to {last}"
    else:
        recent = (last - report.windows.recent[0]).days + 1
        before = (report.windows.reference[1] - report.windows.reference[0]).days + 1
        had = "" if change.days_after >= recent else f", {change.days_after} of them with data,"
        held = f"the {before} before"
        if change.days_before < before:
            held = f"{change.days_before} days with data before"
        where = f"in the {recent} days to {last}{had} against {held}"
    interval = "no spread to give an interval"
    if change.interval is not None:
        low, high = change.interval
        interval = (
            f"{as_percent(change.confidence)} interval of the change {low:+.4g} to {high:+.4g}"
        )
    moved = f"from {change.before:.4g} to {change.after:.4g}"
    size = "" if change.relative is None else f" by {as_percent(abs(change.relative), '.1%')}"
    verb = "fell" if change.difference < 0 else "rose"
    if change.difference == 0.0:
        return f"{subject} stayed at {change.after:.4g} {where} ({interval})"
    if finding.is_clear:
        return f"{subject} {verb}{size} {where}, {moved} ({interval}){_of_the_mix(finding, report)}"
    # One-sided: no change for the worse has a p-value this high where one for the better is clear.
    if 1.0 - change.p_value <= report.alpha / 2.0:
        return f"{subject} {verb}{size} {where}, {moved}, for the better ({interval})"
    return f"{subject} went {moved} {where}, which may be chance ({interval})"


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
    save_plot(figure, path)


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
