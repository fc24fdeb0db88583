"""tuner nightly: tune, test, promote, look for drift; for cron and its kind."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import TYPE_CHECKING

import click

from tuner.cli.options import config_argument, note, set_option
from tuner.cli.out import echo
from tuner.core.errors import InputError
from tuner.core.json_text import json_text
from tuner.core.steps import Phases
from tuner.run.progress import Progress, progress_for

if TYPE_CHECKING:
    from tuner.run.session import Session
    from tuner.study.loop import Event


@click.command("nightly", short_help="Do a night's work: tune, test, promote, look for drift.")
@config_argument
@set_option
@click.option("--date", "day", metavar="YYYY-MM-DD", help="Which night it is. Default: today.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress, only what needs attention.")
def command(config: str, settings: tuple[str, ...], day: str | None, quiet: bool) -> int:
    """Tune CONFIG within `budget`, and test what was found against the champion.

    The champion is what runs today: the one in MLflow's registry, else the last one known, else
    CONFIG's baseline. Prints one JSON object; everything else goes to standard error. A night that
    was killed goes on when it is called again on the same date; one that is done is left alone.

    \b
    Exit codes:
      0    the champion is kept, or there was nothing to do
      10   something was promoted, or waits for `tuner promote`
      20   the champion's score drifts (also where something was promoted: the JSON says both)
      1    failed
      2    bad input
      3    another job is at work
      130  interrupted
    """
    from tuner.config import load_config
    from tuner.nightly.night import Refused, run_night
    from tuner.nightly.pruning import Locked
    from tuner.nightly.showing import tell
    from tuner.nightly.summary import failed

    night = _night(day)
    loaded, source = load_config(config, settings)
    try:
        with progress_for(quiet=quiet) as progress:
            summary = run_night(
                loaded,
                source,
                night=night,
                say=progress.say,
                follow=lambda session: _follow(session, progress),
                phases=Phases(progress.step),
                watch=progress.watch,
            )
    except Locked:
        raise
    except Exception as error:
        summary = failed(night, loaded.study.name, error)
        if not isinstance(error, Refused):
            summary = tell(loaded, summary, say=note)
        echo(json_text(summary, indent=2))
        raise
    summary = tell(loaded, summary, say=note)
    echo(json_text(summary, indent=2))
    if summary["error"] is not None and summary["outcome"] != "nothing to do":
        note(f"error: {summary['sentence']}")
    return int(summary["exit_code"])


def _follow(session: Session, progress: Progress) -> Callable[[Event], None]:
    progress.follow(session.study.shown_arms, session.study.trials)
    return progress.show


def _night(day: str | None) -> date:
    if day is None:
        return date.today()
    try:
        night = date.fromisoformat(day)
    except ValueError as error:
        raise InputError(f"--date {day}: write it as 2026-11-30") from error
    if night > date.today() + timedelta(days=1):
        note(f"{night} lies in the future: nights before it will be refused from now on")
    return night
