"""tuner history: the nights, as a table and a plot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.cli.options import check_plot, note
from tuner.cli.out import echo
from tuner.core.errors import InputError
from tuner.core.json_text import json_text

if TYPE_CHECKING:
    from tuner.nightly.history import History, Row


@click.command("history", short_help="List the nights: champion, challenger, verdict, drift.")
@click.argument("source", metavar="RUNS_DIR|CONFIG", type=click.Path(path_type=Path))
@click.option("--plot", type=click.Path(path_type=Path), metavar="FILE.png", help="Draw it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each study.")
def command(source: Path, plot: Path | None, as_json: bool) -> None:
    """List the nights in RUNS_DIR, or those of CONFIG: who was champion, what challenged it.

    Scores are the objective on the queries that are tuned on. The difference is that of the
    verdict, with an interval at the level of significance that was left for that night.
    """
    from tuner.nightly.history import draw, read_histories

    if plot is not None:
        check_plot(plot)
    histories = read_histories(source)
    if plot is not None:
        if len(histories) > 1:
            names = ", ".join(history.study for history in histories)
            raise InputError(f"--plot draws one study, and here are {names}: give its CONFIG")
        draw(histories[0], plot)
        note(f"plot: {plot}")
    for history in histories:
        if as_json:
            echo(json_text(history.to_record(), indent=2))
        else:
            _print(history)


def _print(history: History) -> None:
    from tuner.cli.console import console, new_table
    from tuner.nightly.history import told_unreadable

    echo(f"nights of {history.study}", bold=True)
    words = ("night", "champion", "challenger", "verdict", "outcome", "drift")
    table = new_table(
        "night", "champion", "score", "challenger", "score ", "difference", "interval", "alpha",
        "verdict", "outcome", "drift", words=words, no_wrap=True,
    )  # fmt: skip
    for row in history.rows:
        style = "bold" if row.outcome == "promoted" or row.drift == "alarm" else ""
        table.add_row(*_cells(row), style=style)
    console().print(table)
    for row in history.rows:
        if row.error is not None:
            echo(f"{row.night} {row.outcome}: {row.error}")
        if row.told is False:
            echo(f"{row.night} nobody was told: {row.why_not_told}")
    for move in history.promotions:
        night = "" if move.night is None else f"night of {move.night}, "
        echo(f"champion: {move.to.called} ({night}{move.when}, by {move.who}: {move.why})")
    if history.unreadable:
        note(f"note: {told_unreadable(history.unreadable)}")


def _cells(row: Row) -> list[str]:
    interval = ""
    if row.interval is not None:
        interval = f"{row.interval[0]:+.3f} to {row.interval[1]:+.3f}"
    return [
        row.night.isoformat(),
        row.champion,
        "" if row.champion_score is None else f"{row.champion_score:.4f}",
        row.challenger,
        "" if row.challenger_score is None else f"{row.challenger_score:.4f}",
        "" if row.difference is None else f"{row.difference:+.4f}",
        interval,
        "" if row.alpha is None else f"{row.alpha:.2g}",
        row.verdict,
        row.outcome if row.approved is None else f"approved since, by {row.approved}",
        row.drift,
    ]
