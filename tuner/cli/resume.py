"""tuner resume: go on with a study that was interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.core.steps import START

if TYPE_CHECKING:
    from tuner.core.steps import Phases
    from tuner.run.progress import Progress
    from tuner.run.session import Session


@click.command("resume", short_help="Go on with a study that was interrupted.")
@click.argument("run_dir", type=click.Path(path_type=Path))
@click.option("--workers", type=click.IntRange(1), help="Evaluate this many trials at once.")
@click.option("--retry-failed", is_flag=True, help="Evaluate the failed trials again.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress, only the result.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end.")
def command(
    run_dir: Path, workers: int | None, retry_failed: bool, quiet: bool, as_json: bool
) -> int:
    """Go on with the study in RUN_DIR: no finished trial is repeated, none is lost.

    Where the system was out of reach, it is asked now. With --retry-failed the trials that failed
    are evaluated again too, for any reason, and their new results replace the old ones.

    If the data, the index or the configuration have changed, it stops and says what has changed.
    """
    from tuner.cli.tuning import tune

    def reopened(progress: Progress, phases: Phases) -> Session:
        with phases.phase(START):
            from tuner.run.session import reopen

        return reopen(
            run_dir,
            say=progress.say,
            workers=workers,
            retry_failed=retry_failed,
            phases=phases,
        )

    return tune(reopened, quiet=quiet, as_json=as_json)
