"""tuner report: one page that says what a study found."""

from __future__ import annotations

from pathlib import Path

import click

from tuner.cli.out import echo
from tuner.core.errors import InputError


@click.command("report", short_help="Write one page that says what a study found.")
@click.argument("run", metavar="RUN_DIR|RUN_ID")
@click.argument("others", nargs=-1, metavar="")
@click.option(
    "--compare",
    "compared",
    multiple=True,
    metavar="OTHER...",
    help="Other studies to show beside it: run directories or MLflow run ids.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to write the page. Default: report.html in the run directory; for an MLflow run "
    "report-RUN_ID.html in this folder.",
)
@click.option("--uri", default="sqlite:///mlflow.db", show_default=True, help="The MLflow store.")
def command(
    run: str,
    others: tuple[str, ...],
    compared: tuple[str, ...],
    output: Path | None,
    uri: str,
) -> None:
    """Write one self-contained page on a study: its verdict, figures, queries and provenance.

    \b
    RUN_DIR: the run directory of a study in any state; its data and its system are not needed.
    RUN_ID:  the MLflow run of a study; its files are fetched from the store.

    The numbers of every figure are written beside the page, as CSV files.
    """
    if others and not compared:
        raise InputError(f"one study at a time; to show {others[0]!r} beside it: --compare OTHER")
    from tempfile import TemporaryDirectory

    from tuner.report.review import open_review
    from tuner.report.writing import report_on

    with TemporaryDirectory(prefix="tuner-report-") as folder:
        review = open_review(run, uri, Path(folder))
        beside = [open_review(other, uri, Path(folder)) for other in (*compared, *others)]
        if output is None and not Path(run).is_dir():
            output = Path(f"report-{run}.html")
        echo(report_on(review, compare=beside, output=output))
