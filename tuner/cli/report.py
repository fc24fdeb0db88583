"""tuner report: one page that says what a study found."""

from __future__ import annotations

from pathlib import Path

import click

from tuner.cli.completion import run_dirs
from tuner.cli.out import echo


@click.command("report", short_help="Write one page that says what a study, or several, found.")
@click.argument(
    "runs",
    nargs=-1,
    required=True,
    metavar="RUN_DIR|RUN_ID|RUNS_DIR...",
    shell_complete=run_dirs,
)
@click.option(
    "--compare",
    "compared",
    multiple=True,
    metavar="OTHER...",
    shell_complete=run_dirs,
    help="Other studies to show on the page of one: run directories or MLflow run ids.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to write the page. Default: report.html in the run directory; in this folder "
    "report-RUN_ID.html for an MLflow run, studies.html for several, nights.html for nights.",
)
@click.option("--uri", default="sqlite:///mlflow.db", show_default=True, help="The MLflow store.")
def command(
    runs: tuple[str, ...],
    compared: tuple[str, ...],
    output: Path | None,
    uri: str,
) -> None:
    """Write one self-contained page on a study: its verdict, figures, queries and provenance.

    \b
    RUN_DIR:  the run directory of a study in any state; its data and its system are not needed.
    RUN_ID:   the MLflow run of a study; its files are fetched from the store.
    Several:  one page across them: who was champion when, a paired test between the winners on
              the queries that they share, and what changed from each study to the next.
    RUNS_DIR: the same of the nights in a folder of runs; or the configuration of the nights.

    The numbers of every figure are written beside the page, as CSV files.
    """
    from tempfile import TemporaryDirectory

    from tuner.nightly.page import is_of_nights, write_nights
    from tuner.report.across.page import write_across
    from tuner.report.review import open_review
    from tuner.report.writing import report_on

    if len(runs) == 1 and not compared and is_of_nights(Path(runs[0])):
        echo(write_nights(Path(runs[0]), output=output))
        return
    with TemporaryDirectory(prefix="tuner-report-") as folder:
        review, *others = (open_review(run, uri, Path(folder)) for run in runs)
        if others and not compared:
            echo(write_across([review, *others], output=output))
            return
        beside = [open_review(other, uri, Path(folder)) for other in compared]
        if output is None and not Path(runs[0]).is_dir():
            output = Path(f"report-{runs[0]}.html")
        echo(report_on(review, compare=[*beside, *others], output=output))
