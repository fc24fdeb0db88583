"""tuner export: a study in another tool's form."""

from __future__ import annotations

from pathlib import Path

import click

from tuner.cli.completion import run_dirs
from tuner.cli.out import echo


@click.command("export", short_help="Write a study for Optuna's dashboard and plots.")
@click.argument("run_dir", type=click.Path(path_type=Path), shell_complete=run_dirs)
@click.option(
    "--optuna",
    "storage",
    required=True,
    metavar="STORAGE",
    help="sqlite:///study.db, another database, or the path of a journal file.",
)
@click.option("--name", help="Another name for the study in that storage.")
def command(run_dir: Path, storage: str, name: str | None) -> None:
    """Write the study in RUN_DIR with all its trials to a storage of Optuna.

    optuna-dashboard and optuna.visualization then show it. A storage may hold many studies.
    Thousands of trials take seconds to write to a journal file, and minutes to a database.
    """
    from tuner.core.journal import read_journal
    from tuner.report.optuna_study import optuna_study
    from tuner.run.folder import journal_in
    from tuner.tracking.uri import mask

    content = read_journal(journal_in(run_dir))
    study = optuna_study(content.header, tuple(content.trials.values()), storage=storage, name=name)
    shown = mask(storage)
    echo(f"{len(content.trials)} trials are in {shown} as the study {study.study_name!r}")
    echo(f"Look at them:  optuna-dashboard {shown}")
