"""Arguments and options that the commands on data sets share."""

from __future__ import annotations

import click

from tuner.cli._options import FiniteRange

AT_LEAST_1 = click.IntRange(min=1)

path_argument = click.argument("path", metavar="PATH")

format_option = click.option(
    "--format", "format_name", metavar="NAME", help="Its format, where it is not recognised."
)

threshold_option = click.option(
    "--threshold",
    default=0.9,
    show_default=True,
    type=FiniteRange(0, 1, min_open=True),
    help="From which similarity two queries are near duplicates.",
)

relevant_from_option = click.option(
    "--relevant-from",
    default=1.0,
    show_default=True,
    type=FiniteRange(0, min_open=True),
    metavar="GRADE",
    help="The lowest grade that says relevant, such as 0.5 where grades run from 0 to 1.",
)

qrels_option = click.option(
    "--qrels", metavar="NAME", help="Which of several sets of judgements, such as dev."
)
