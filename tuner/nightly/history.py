"""The nights of a study, one row each, for a table, a plot, or as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from tuner.config import load_config
from tuner.core.errors import InputError
from tuner.core.files import save_plot
from tuner.core.run_files import JOURNAL_FILE
from tuner.nightly.records import NIGHTS_FILE, Promotion, Records, read_records, studies_in


@dataclass(frozen=True)
class Row:
    """One night; None where something was not measured, or the night did not end.

    ``error`` says why it failed. ``told`` is None where nobody was to be told.
    ``approved`` is who made champion since what the night left to be approved.
    Scores are the objective on the tune queries; the difference is that of the verdict.
    """

    night: date
    outcome: str
    champion: str
    champion_score: float | None = None
    challenger: str = ""
    challenger_score: float | None = None
    difference: float | None = None
    interval: tuple[float, float] | None = None
    alpha: float | None = None
    verdict: str = ""
    drift: str = ""
    error: str | None = None
    told: bool | None = None
    why_not_told: str | None = None
    approved: str | None = None


@dataclass(frozen=True)
class History:
    """The nights of one study, and every move of its champion.

    ``run_dirs`` are those of the nights' studies that are still there, oldest first.
    """

    study: str
    rows: tuple[Row, ...]
    promotions: tuple[Promotion, ...]
    unreadable: int = 0
    run_dirs: tuple[Path, ...] = ()

    def to_record(self) -> dict[str, Any]:
        """Return it as a JSON-ready mapping."""
        return {
            "study": self.study,
            "nights": [{**vars(row), "night": row.night.isoformat()} for row in self.rows],
            "champions": [
                {
                    "at": datetime.fromtimestamp(move.at, tz=UTC).isoformat(timespec="seconds"),
                    "night": None if move.night is None else move.night.isoformat(),
                    "version": move.to.version,
                    "called": move.to.called,
                    "params": move.to.params,
                    "who": move.who,
                    "why": move.why,
                }
                for move in self.promotions
            ],
            "unreadable": self.unreadable,
        }


def read_histories(source: Path) -> list[History]:
    """Return the histories in a folder of runs, or that of the study of a configuration.

    Raises:
        InputError: there is no night yet.
    """
    if source.is_dir():
        runs_dir, names = source, studies_in(source)
    else:
        study = load_config(source)[0].study
        runs_dir, names = Path(study.runs_dir), [study.name]
    found = [_history(read_records(runs_dir, name)) for name in names]
    if not any(history.rows or history.promotions for history in found):
        raise InputError(
            f"{runs_dir / NIGHTS_FILE} holds no night; the first: tuner nightly CONFIG"
        )
    return found


def _history(records: Records) -> History:
    rows = {}
    for night in records.nights:
        known = {score.night: score.mean for score in records.scores}
        summary = night.summary or {"outcome": "not finished"}
        # Of several attempts at a night the latest counts.
        row = _row(night.night, night.champion.called, summary, known)
        move = records.approval_of(night)
        rows[night.night] = row if move is None else replace(row, approved=move.who)
    for day, (outcome, error) in records.failures.items():
        rows[day] = replace(rows.get(day, Row(day, "", "")), outcome=outcome, error=error)
    for day in rows:
        if (notice := records.notice(day)) is not None:
            rows[day] = replace(rows[day], told=notice.is_told, why_not_told=notice.why)
    for score in records.scores:  # such as those brought in from before the first night
        rows.setdefault(score.night, Row(score.night, "scored only", "", champion_score=score.mean))
    return History(
        records.study,
        tuple(rows[night] for night in sorted(rows)),
        tuple(records.promotions),
        records.unreadable,
        _run_dirs(records),
    )


def _run_dirs(records: Records) -> tuple[Path, ...]:
    """Return the run directory of each night's latest attempt, where it was not deleted since."""
    latest = {night.night: records.runs_dir / night.run_dir for night in records.nights}
    ordered = [latest[day] for day in sorted(latest)]
    return tuple(path for path in ordered if (path / JOURNAL_FILE).is_file())


def _row(
    night: date, champion: str, summary: Mapping[str, Any], scores: Mapping[date, float]
) -> Row:
    challenger = summary.get("challenger") or {}
    verdict = summary.get("verdict") or {}
    interval = verdict.get("interval")
    version = challenger.get("version")
    return Row(
        night,
        str(summary["outcome"]),
        champion,
        scores.get(night),
        "" if not challenger else "no version" if version is None else f"version {version}",
        challenger.get("score"),
        verdict.get("difference"),
        None if interval is None else (float(interval[0]), float(interval[1])),
        verdict.get("alpha"),
        str(verdict.get("outcome", "")).replace("the baseline", "the champion"),
        str((summary.get("drift") or {}).get("status", "")),
        summary.get("error"),
    )


def told_unreadable(lines: int) -> str:
    """Say that lines of the nights cannot be read.

    >>> told_unreadable(1)
    '1 line of nights.jsonl cannot be read and is left out'
    """
    if lines == 1:
        return f"1 line of {NIGHTS_FILE} cannot be read and is left out"
    return f"{lines} lines of {NIGHTS_FILE} cannot be read and are left out"


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
    save_plot(figure, path)


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
