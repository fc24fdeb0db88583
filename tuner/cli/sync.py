"""tuner sync: complete MLflow's view of a study from its journal."""

from __future__ import annotations

from pathlib import Path

import click

from tuner.cli.completion import run_dirs
from tuner.cli.out import echo
from tuner.core.errors import InputError, TunerError


@click.command("sync", short_help="Write to MLflow what it lacks of a study.")
@click.argument("run_dir", type=click.Path(path_type=Path), shell_complete=run_dirs)
@click.option("--uri", help="The MLflow store, instead of the study's own.")
def command(run_dir: Path, uri: str | None) -> None:
    """Write to MLflow what it lacks of the study in RUN_DIR; run it as often as you like."""
    from tuner.run.folder import read_run, timed_summary
    from tuner.tracking.base import EXPERIMENT
    from tuner.tracking.mlflow.tracker import Mlflow
    from tuner.tracking.uri import mask, without_password

    content, config = read_run(run_dir)
    store = uri or (config.tracking.uri if config.tracking else None)
    if store is None:
        raise InputError("the study has no tracking section; name the store: --uri URI")
    experiment = config.tracking.experiment if config.tracking else EXPERIMENT
    Mlflow.check(store, experiment)
    tracker = Mlflow(store, experiment, warn=echo)
    trials = content.trials.values()
    status = tracker.sync(content.header, trials, timed_summary(content), run_dir)
    echo(
        f"MLflow at {mask(store)} holds the study's {status.written} trials: "
        f"{status.added} missing runs and curve points added, "
        f"{status.repaired} half-written or duplicate runs repaired"
    )
    if status.error is not None:
        reason = without_password(status.error, store)
        raise TunerError(f"all trials are there, but not every file: {reason}")
