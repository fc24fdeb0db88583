"""The nights as a page: champions over time, and what the nights' studies say together."""

from __future__ import annotations

from pathlib import Path

from tuner.core.errors import InputError
from tuner.nightly.history import History, Row, read_histories, told_unreadable
from tuner.nightly.records import NIGHTS_FILE, Promotion
from tuner.report.across.page import Nights, write_across
from tuner.report.across.timeline import Step
from tuner.report.review import read_review


def is_of_nights(source: Path) -> bool:
    """Say whether this is where nights are: a folder with their record, or a configuration."""
    return source.is_file() or (source / NIGHTS_FILE).is_file()


def write_nights(source: Path, *, output: Path | None = None) -> Path:
    """Write the page of the nights in a folder of runs, or of the study of a configuration.

    Raises:
        InputError: there is no night yet, or nights of several studies; or the page cannot be
            written.
    """
    histories = read_histories(source)
    if len(histories) > 1:
        names = ", ".join(history.study for history in histories)
        raise InputError(
            f"{str(source)!r} holds nights of several studies, {names}: give the configuration of "
            "one in place of the folder"
        )
    history = histories[0]
    studies = [read_review(run_dir) for run_dir in history.run_dirs]
    return write_across(studies, nights=nights_of(history), output=output)


def nights_of(history: History) -> Nights:
    """Return the nights in the words of the report."""
    notes = [f"{row.night} {row.outcome}: {row.error}" for row in history.rows if row.error]
    if history.unreadable:
        notes.append(told_unreadable(history.unreadable))
    return Nights(
        history.study,
        tuple(_step(row) for row in history.rows),
        tuple(_move(move) for move in history.promotions),
        tuple(notes),
    )


def _step(row: Row) -> Step:
    return Step(
        row.night.isoformat(),
        row.champion,
        row.champion_score,
        row.challenger,
        row.challenger_score,
        row.difference,
        row.interval,
        row.verdict,
        row.outcome if row.approved is None else f"approved since, by {row.approved}",
        row.drift,
        is_promoted=row.outcome == "promoted" or row.approved is not None,
    )


def _move(move: Promotion) -> str:
    night = "" if move.night is None else f"night of {move.night}, "
    return f"Champion: {move.to.called} ({night}{move.when}, by {move.who}: {move.why})"
