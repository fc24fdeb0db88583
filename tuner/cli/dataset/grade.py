"""tuner dataset grade: a page on this machine, on which people grade a sheet."""

from __future__ import annotations

import click

from tuner.cli.completion import files
from tuner.cli.dataset.build_judged import grades_option, read_grades_option
from tuner.cli.options import note
from tuner.cli.out import echo


@click.command("grade", short_help="Grade a sheet on a page in the browser.")
@click.argument("sheet", metavar="SHEET", shell_complete=files)
@click.option("--annotator", metavar="NAME", help="Who grades. Default: the page asks.")
@grades_option
@click.option(
    "--port",
    default=8765,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port to serve on; 0 takes one that is free.",
)
@click.option("--no-open", is_flag=True, help="Open no browser; the address is printed.")
def grade(sheet: str, annotator: str | None, grades: str, port: int, no_open: bool) -> None:
    """Serve a page on which people grade SHEET, until Ctrl-C.

    Each grade is on the disk at once, in SHEET.grades.jsonl. The sheet of each annotator, such as
    SHEET.anna.csv, is what `tuner dataset build agree` reads; SHEET.settled.csv, where two graded,
    is what `tuner dataset build judge` reads.
    """
    from tuner.core.local_server import open_in_browser
    from tuner.evalset.grading.given import Grading
    from tuner.evalset.grading.names import checked_name
    from tuner.evalset.grading.serving import serve, what_is_known

    name = "" if annotator is None else checked_name(annotator)
    with Grading.open(sheet, grades=read_grades_option(grades)) as grading:
        for line in what_is_known(grading):
            note(line)
        written = serve(
            grading,
            port=port,
            annotator=name,
            say=echo,
            open_page=None if no_open else open_in_browser,
        )
    for path in written:
        echo(f"written: {path}")


commands: tuple[click.Command, ...] = (grade,)
