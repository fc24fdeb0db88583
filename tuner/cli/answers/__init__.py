"""tuner answers: what retrieval is for, by how good the answers are that are made from it."""

from __future__ import annotations

import click

from tuner.cli.answers.correlate import correlate
from tuner.cli.answers.positions import positions


@click.group(
    "answers",
    short_help="See which metric, and which positions, good answers depend on.",
    commands=[correlate, positions],
)
def command() -> None:
    """See what good answers depend on: which metric predicts them, and which positions count.

    A function of yours answers a query from its passages, and says how good the answer is.
    """
