"""Options of commands that ask a function of yours for answers, and what they say of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.options import FiniteRange, note
from tuner.core.shown import counted

if TYPE_CHECKING:
    from tuner.answers.asking import Plan, Replies

_OPTIONS = (
    click.option(
        "--kept",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Where each answer is kept as it comes, so that none is paid for twice. Default: "
        "replies.jsonl in the run directory, or in runs/NAME-answers without a study.",
    ),
    click.option(
        "--budget",
        type=FiniteRange(0, min_open=True),
        metavar="MONEY",
        help="Stop before the answers cost more than this, those kept included.",
    ),
    click.option(
        "--price",
        type=FiniteRange(0),
        metavar="MONEY",
        help="What one answer costs, where the function does not tell (`money`).",
    ),
    click.option(
        "--retries",
        default=3,
        show_default=True,
        type=click.IntRange(min=0),
        help="How often what fails, or is of no use, is asked for again.",
    ),
)


sample_option = click.option(
    "--sample",
    type=click.IntRange(min=2),
    metavar="N",
    help="Ask N of the queries that are tuned on, drawn at random. Default: all of them.",
)
"""How many of the queries are asked: an option of both commands, at a place of its own in each."""


def asking_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of asking to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def plan_of(asked: dict[str, Any], seed: int) -> Plan:
    """Return how answers are asked for."""
    from tuner.answers.asking import Plan

    return Plan(asked["budget"], asked["price"], asked["retries"], seed)


def say_asked(replies: Replies, kept: Path) -> None:
    """Say what was asked, what it cost, and what has no answer."""
    note(f"{replies.sentence}; they are kept in {kept}")
    if replies.failed:
        note(
            f"note: {counted(replies.failed, 'question')} got no answer of use, and the queries "
            f"are left out; the first: {replies.reason}"
        )
