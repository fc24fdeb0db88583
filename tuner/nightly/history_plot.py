"""The picture of `tuner history`: scores by day, promotions, alarms, and what the verdicts saw."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuner.core.errors import InputError

if TYPE_CHECKING:
    from tuner.nightly.history import History


def draw(history: History, path: Path) -> None:
    """Draw the scores above, and the challenger less the champion with its interval below.

    Raises:
        InputError: the file cannot be written.
    """
    from matplotlib.dates import DateFormatter
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(9, 5.6), layout="constrained")
    scores, differences = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    _draw_scores(scores, history)
    _draw_differences(differences, history)
    for axes in (scores, differences):
        axes.grid(alpha=0.3)
        axes.legend(loc="best", fontsize="small")
    # Dates are whole numbers of days; between them there is nothing.
    differences.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))
    formatter = DateFormatter("%Y-%m-%d")  # type: ignore[no-untyped-call]  # as matplotlib has it
    differences.xaxis.set_major_formatter(formatter)
    try:
        figure.savefig(path)
    except OSError as error:
        raise InputError(f"--plot {path}: cannot be written: {error.strerror}") from error


def _draw_scores(axes: Any, history: History) -> None:
    rows = history.rows
    axes.set_title(f"nights of {history.study}", loc="left")
    axes.set_ylabel("objective (tune queries)")
    for name, marker, color in (("champion", "o", "tab:blue"), ("challenger", "^", "tab:orange")):
        shown = [(row.night, getattr(row, f"{name}_score")) for row in rows]
        days = [day for day, score in shown if score is not None]
        values = [score for _, score in shown if score is not None]
        line = "-" if name == "champion" else ""
        axes.plot(days, values, marker + line, markersize=5, color=color, label=name)
    alarms = [row for row in rows if row.drift == "alarm" and row.champion_score is not None]
    if alarms:
        places = ([row.night for row in alarms], [row.champion_score for row in alarms])
        axes.plot(*places, "o", markersize=9, color="tab:red", label="drift alarm", zorder=1)
    for move in history.promotions:
        if move.night is not None:
            axes.axvline(move.night, color="tab:green", alpha=0.6, linestyle="--")
            text = f" {move.to.called}"
            place = (move.night, 0.97)
            axes.annotate(
                text, place, xycoords=("data", "axes fraction"), va="top", fontsize="small",
                color="tab:green",
            )  # fmt: skip


def _draw_differences(axes: Any, history: History) -> None:
    axes.set_ylabel("challenger - champion")
    axes.axhline(0.0, color="black", linewidth=0.8)
    for row in history.rows:
        if row.difference is None:
            continue
        color = "tab:green" if row.verdict == "deploy" else "tab:gray"
        axes.plot([row.night], [row.difference], "o", markersize=5, color=color)
        if row.interval is not None:
            axes.plot([row.night, row.night], list(row.interval), color=color)
    axes.plot([], [], "o-", color="tab:green", label="verdict: deploy")
    axes.plot([], [], "o-", color="tab:gray", label="other verdicts, with tonight's interval")
