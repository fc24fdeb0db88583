"""tuner ui: look at the study in MLflow's own pages."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.cli.completion import configs_and_runs
from tuner.cli.out import echo
from tuner.core.errors import InputError
from tuner.core.run_files import CONFIG_FILE, JOURNAL_FILE

if TYPE_CHECKING:
    from tuner.config.model import TrackingSection


@click.command("ui", short_help="Open MLflow's pages on a study's store.")
@click.argument(
    "where", required=False, metavar="[CONFIG|RUN_DIR]", shell_complete=configs_and_runs
)
@click.option("--uri", help="The MLflow store, instead of the one that CONFIG names.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to serve on.")
@click.option(
    "--port",
    default=5000,
    show_default=True,
    type=click.IntRange(1, 65535),
    help="The port to serve on.",
)
def command(where: str | None, uri: str | None, host: str, port: int) -> None:
    """Serve MLflow's pages on the store of CONFIG or RUN_DIR (default: sqlite:///mlflow.db).

    Where the store is a server itself, its address is printed and nothing is served.
    """
    from tuner.config.model import TrackingSection
    from tuner.tracking.mlflow.server import serve_ui
    from tuner.tracking.uri import check_uri, mask

    tracking = None if where is None else _tracking(where, is_needed=uri is None)
    store = uri or (TrackingSection() if tracking is None else tracking).uri
    check_uri(store)

    def say_places(address: str) -> None:
        if where is not None and tracking is not None:
            _say_places(address, tracking.experiment, Path(where))

    if store.startswith(("http", "databricks")):
        echo(f"the store is a server: open {mask(store)}")
        say_places(store)
        return
    serve_ui(store, host=host, port=port, say=echo, on_ready=say_places)


def _tracking(where: str, *, is_needed: bool) -> TrackingSection | None:
    from tuner.config import load_config

    path = Path(where)
    config, source = load_config(path / CONFIG_FILE if path.is_dir() else path)
    if config.tracking is None and is_needed:
        raise InputError("tracking is off, so there is no store", file=source.file)
    return config.tracking


def _say_places(address: str, experiment: str, path: Path) -> None:
    """Say where to look first; where that cannot be found out, the pages are there all the same."""
    from tuner.core.journal import read_journal
    from tuner.tracking.mlflow.server import places
    from tuner.tracking.uri import without_password

    with suppress(Exception):
        journal = path / JOURNAL_FILE
        study_id = read_journal(journal).header.study_id if journal.is_file() else None
        for what, place in places(address, experiment, study_id).items():
            shown = without_password(f"{address.rstrip('/')}/{place}", address)
            echo(f"{what:<12} {shown}")
