"""tuner watch: the report of a study while it runs."""

from __future__ import annotations

from pathlib import Path

import click

from tuner.cli.options import note


@click.command("watch", short_help="Watch a study in the browser while it runs.")
@click.argument("run_dir", metavar="RUN_DIR", type=click.Path(path_type=Path))
@click.option(
    "--port",
    default=0,
    show_default="one that is free",
    type=click.IntRange(0, 65535),
    help="The port to serve on.",
)
@click.option(
    "--open/--no-open",
    "is_opened",
    default=True,
    help="Open it in a browser, or only print the address. Default: open.",
)
def command(run_dir: Path, port: int, is_opened: bool) -> None:
    """Serve the report of the study in RUN_DIR on this machine, until Ctrl-C.

    It is brought up to date as trials are told, and shows the verdict when the study ends. The
    study may run in any process, or have ended; RUN_DIR is only read. The address, which goes to
    standard error, holds a token: without it the page is not shown.
    """
    from tuner.core.local_server import open_in_browser
    from tuner.report.live.serving import watch

    watch(run_dir, port=port, say=note, open_page=open_in_browser if is_opened else None)
