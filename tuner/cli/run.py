"""tuner run: the main job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tuner.cli.options import config_argument, load, set_option
from tuner.core.steps import START

if TYPE_CHECKING:
    from tuner.core.steps import Phases
    from tuner.run.progress import Progress
    from tuner.run.session import Session


@click.command("run", short_help="Tune: search, evaluate, keep every trial.")
@config_argument
@set_option
@click.option("--workers", type=click.IntRange(1), help="Evaluate this many trials at once.")
@click.option(
    "--name", help="The name of the study, with which the name of its run directory begins."
)
@click.option(
    "--watch",
    "is_watched",
    is_flag=True,
    help="Serve the study's live page, as `tuner watch` does.",
)
@click.option("-q", "--quiet", is_flag=True, help="Show no progress, only the result.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end.")
def command(
    config: str,
    settings: tuple[str, ...],
    workers: int | None,
    name: str | None,
    is_watched: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Tune the retriever of CONFIG with all its backends, and keep every trial in MLflow.

    After Ctrl-C nothing is lost: `tuner resume RUN_DIR` goes on. Exit codes: 0 done, 1 failed (too
    many failed trials), 2 bad input, 130 interrupted.

    With --watch a page shows the trials as they are told. Its address, which goes to standard
    error, holds a token. After the study has ended and its result is printed, the page stays until
    Ctrl-C; the exit code is the study's. A study that is interrupted ends its page.
    """
    if workers is not None:
        settings = (*settings, f"execution.workers={workers}")
    if name is not None:
        settings = (*settings, f'study.name="{name}"')
    from tuner.cli.tuning import tune

    def begun(progress: Progress, phases: Phases) -> Session:
        with phases.phase(START):
            from tuner.run.session import begin
            from tuner.run.tunable import check_can_tune

        assembly = load(config, settings, say=progress.say, phases=phases, to_run=True)
        check_can_tune(assembly)
        return begin(assembly, say=progress.say)

    return tune(begun, quiet=quiet, as_json=as_json, is_watched=is_watched)
