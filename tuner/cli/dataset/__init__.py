"""tuner dataset: look at evaluation sets, copy and split them, and build new ones."""

from __future__ import annotations

import click

from tuner.cli.dataset import build, copies, grade, report


@click.group(
    "dataset",
    short_help="Look at evaluation sets, split them, build new ones.",
    commands=[
        *report.commands,
        *copies.commands,
        *build.commands,
        *grade.commands,
    ],
)
def command() -> None:
    """Look at an evaluation set, copy or split it, or build a new one.

    PATH is a folder or file in any known format, or builtin:atlas.
    """
