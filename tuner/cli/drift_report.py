"""What `tuner drift` prints: a sentence, and a line for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuner.cli.console import console, new_table
from tuner.cli.out import echo
from tuner.core.shown import as_percent

if TYPE_CHECKING:
    from tuner.drift.findings import DriftReport, Finding

_TEXTS = ("", "test", "data", " ")


def print_report(report: DriftReport) -> None:
    """Print the sentence, every test, and what could not be tested."""
    echo(report.sentence, bold=True)
    if report.findings:
        interval = f"{as_percent(1.0 - report.alpha)} interval"
        figures = ("before", "now", "change", interval, "relative", "p (Holm)")
        table = new_table("", "test", *figures, "data", " ", words=_TEXTS, no_wrap=True)
        for finding in report.findings:
            table.add_row(*_cells(finding), style="bold" if finding.is_alarm else "")
        echo()
        console().print(table)
        echo(
            f"\nWithout drift a look raises an alarm in at most {as_percent(report.alpha)} of "
            f"cases, all {len(report.findings)} tests together."
        )
        for sentence in report.untested:
            echo(f"not tested: {sentence}")


def _cells(finding: Finding) -> list[str]:
    state = "ALARM" if finding.is_alarm else "clear, small" if finding.is_clear else ""
    name = f"{finding.measure}: {finding.group}" if finding.group else finding.measure
    p_value = f"{finding.adjusted_p:.3g}"
    if finding.mix is not None:
        mix = finding.mix
        moved = f"{mix.stability_index:.3f} PSI"
        data = f"{len(mix.kinds)} types"
        return [name, finding.test, "", "", moved, "", "", p_value, data, state]
    change = finding.change
    if change is None:
        return [name, finding.test, "", "", "", "", "", p_value, "", state]
    interval = "–"
    if change.interval is not None:
        interval = f"{change.interval[0]:+.4g} to {change.interval[1]:+.4g}"
    data = f"{change.days_before}+{change.days_after} days"
    if finding.test == "trend":
        data = f"{change.days_before} days"
    if change.queries:
        data += f", {change.queries} queries paired"
    return [
        name,
        finding.test,
        f"{change.before:.4g}",
        f"{change.after:.4g}",
        f"{change.difference:+.4g}",
        interval,
        as_percent(change.relative, "+.1%"),
        p_value,
        data,
        state,
    ]
