"""tuner run: the main job."""

from __future__ import annotations

import click

from tuner.cli._options import config_argument, load, note, set_option


@click.command("run", short_help="Tune: search, evaluate, keep every trial.")
@config_argument
@set_option
@click.option("--workers", type=click.IntRange(1), help="Evaluate this many trials at once.")
@click.option("--name", help="Name of the study, and the start of its run directory's.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, only the result.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end.")
def command(
    config: str,
    settings: tuple[str, ...],
    workers: int | None,
    name: str | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Tune the retriever of CONFIG with all its backends, and keep every trial in MLflow.

    Ctrl-C ends cleanly; `tuner resume RUN_DIR` goes on. Exit code: 0 done, 1 failed (too many
    failed trials), 2 bad input, 130 interrupted.
    """
    if workers is not None:
        settings = (*settings, f"execution.workers={workers}")
    if name is not None:
        settings = (*settings, f'study.name="{name}"')
    from tuner.assemble import check_can_tune

    assembly = load(config, settings, say=note, to_run=True)
    check_can_tune(assembly)

    from tuner.cli._tuning import tune
    from tuner.tuning import begin

    return tune(begin(assembly, say=note), quiet=quiet, as_json=as_json)
