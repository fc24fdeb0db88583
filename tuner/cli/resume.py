"""tuner resume: go on with a study that was interrupted, or with more trials."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.cli.completion import run_dirs
from tuner.core.steps import START

if TYPE_CHECKING:
    from tuner.core.steps import Phases
    from tuner.run.progress import Progress
    from tuner.run.session import Session


@click.command("resume", short_help="Go on with a study: interrupted, or with more trials.")
@click.argument("run_dir", type=click.Path(path_type=Path), shell_complete=run_dirs)
@click.option(
    "--trials",
    multiple=True,
    metavar="ARM=+N",
    help="Go on with N more trials of an arm; +N alone: of every arm. ARM=N: N in all, also of an "
    "arm that is not there yet. Several are several options.",
)
@click.option(
    "--minutes",
    metavar="+N",
    help="Go on with N more minutes of the budget; N without + is for all sessions.",
)
@click.option(
    "--query-evaluations",
    metavar="+N",
    help="Go on with N more query evaluations of the budget; N without + is for all sessions.",
)
@click.option(
    "--money",
    metavar="+N",
    help="Go on with N more money of the budget; N without + is for all sessions.",
)
@click.option("--workers", type=click.IntRange(1), help="Evaluate this many trials at once.")
@click.option("--retry-failed", is_flag=True, help="Evaluate the failed trials again.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress, only the result.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end.")
def command(
    run_dir: Path,
    trials: tuple[str, ...],
    minutes: str | None,
    query_evaluations: str | None,
    money: str | None,
    workers: int | None,
    retry_failed: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Go on with the study in RUN_DIR: no finished trial is repeated, none is lost.

    Where the system was out of reach, it is asked now. With --retry-failed the trials that failed
    are evaluated again too, for any reason, and their new results replace the old ones.

    A study that has ended goes on with --trials: as one that had so many from the start. It is
    then judged anew, which is a further look at the held-out queries where another setting wins.

    If the data, the index or the configuration have changed, it stops and says what has changed.
    """
    from tuner.cli.tuning import tune

    limits = {"minutes": minutes, "query_evaluations": query_evaluations, "money": money}

    def reopened(progress: Progress, phases: Phases) -> Session:
        with phases.phase(START):
            from tuner.run.going_on import Wish
            from tuner.run.session import reopen

        return reopen(
            run_dir,
            say=progress.say,
            workers=workers,
            retry_failed=retry_failed,
            more=[Wish.parse(written) for written in trials],
            limits={name: one for name, one in limits.items() if one is not None},
            phases=phases,
        )

    return tune(reopened, quiet=quiet, as_json=as_json)
