"""Arguments and options that the commands on data sets share."""

from __future__ import annotations

import click

path_argument = click.argument("path", metavar="PATH")

format_option = click.option(
    "--format", "format_name", metavar="NAME", help="Its format, where it is not recognised."
)

qrels_option = click.option(
    "--qrels", metavar="NAME", help="Which of several sets of judgements, such as dev."
)
