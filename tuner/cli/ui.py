"""tuner ui: look at the study in MLflow's own pages."""

from __future__ import annotations

from pathlib import Path

import click

from tuner.core.run_files import CONFIG_FILE


@click.command("ui", short_help="Open MLflow's pages on a study's store.")
@click.argument("where", required=False, metavar="[CONFIG|RUN_DIR]")
@click.option("--uri", help="The MLflow store, instead of the one that CONFIG names.")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=5000, show_default=True, type=click.IntRange(1, 65535))
def command(where: str | None, uri: str | None, host: str, port: int) -> None:
    """Serve MLflow's pages on the store of CONFIG or RUN_DIR (default: sqlite:///mlflow.db).

    A store that is a server already is only named, not served a second time.
    """
    from tuner.tracking._uri import check_uri, mask
    from tuner.tracking.mlflow import serve_ui

    store = uri or _store(where)
    check_uri(store)
    if store.startswith(("http", "databricks")):
        click.echo(f"the store is a server: open {mask(store)}")
        return
    serve_ui(store, host=host, port=port, say=click.echo)


def _store(where: str | None) -> str:
    from tuner.config import load_config
    from tuner.config.model import TrackingSection
    from tuner.core.errors import InputError

    if where is None:
        return TrackingSection().uri
    path = Path(where)
    config, source = load_config(path / CONFIG_FILE if path.is_dir() else path)
    if config.tracking is None:
        raise InputError("tracking is off, so there is no store", file=source.file)
    return config.tracking.uri
