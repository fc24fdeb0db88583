"""Arguments and options that the commands on data sets share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tuner.cli.completion import data_sets
from tuner.cli.options import FiniteRange, showing
from tuner.core.steps import READING

if TYPE_CHECKING:
    from tuner.datasets import Dataset

AT_LEAST_1 = click.IntRange(min=1)

path_argument = click.argument("path", metavar="PATH", shell_complete=data_sets)

format_option = click.option(
    "--format",
    "format_name",
    metavar="NAME",
    help="The format of the data set, where it is not recognised.",
)

threshold_option = click.option(
    "--threshold",
    default=0.9,
    show_default=True,
    type=FiniteRange(0, 1, min_open=True),
    help="How similar two queries must be to count as near duplicates.",
)

relevant_from_option = click.option(
    "--relevant-from",
    default=1.0,
    show_default=True,
    type=FiniteRange(0, min_open=True),
    metavar="GRADE",
    help="The lowest grade of a relevant document, such as 0.5 where grades run from 0 to 1.",
)

qrels_option = click.option(
    "--qrels", metavar="NAME", help="Which of several sets of judgements, such as dev."
)


def read_shown(
    path: str,
    format_name: str | None,
    qrels: str | None,
    relevant_from: float,
    *,
    is_strict: bool = True,
) -> Dataset:
    """Read a data set by these options, and show how far that is where it takes long."""
    from tuner.core.grades import GradeScale
    from tuner.datasets import open_dataset

    scale = GradeScale(relevant_from)
    with showing(READING) as advance:
        return open_dataset(
            path,
            format=format_name,
            split_name=qrels,
            is_strict=is_strict,
            scale=scale,
            advance=advance,
        )
