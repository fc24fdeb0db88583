"""tuner abtest assign: ids in, arms out."""

from __future__ import annotations

import csv
import sys
from io import TextIOWrapper
from typing import BinaryIO

import click

from tuner.cli.options import config_argument, note, set_option
from tuner.core.errors import InputError, Problem


@click.command("assign", short_help="Say which arm each id belongs to.")
@config_argument
@click.argument("ids", type=click.File("rb"), default="-")
@click.option(
    "--beside",
    "others",
    multiple=True,
    metavar="CONFIG",
    help="Another experiment that runs at the same time: stop where the two could share units of a "
    "layer. May be repeated.",
)
@set_option
def command(config: str, ids: BinaryIO, others: tuple[str, ...], settings: tuple[str, ...]) -> None:
    """Print the arm of each id as CSV. IDS has one id a line; default: standard input.

    The arm is empty for an id that takes no part. The first 8 bytes of SHA-256(salt, zero byte, id)
    divided by 2^64 decide where an id belongs, so any language on any machine gives the same arms.
    """
    from tuner.abtest.assignment import check_apart
    from tuner.abtest.experiment import load_experiment

    experiment, _ = load_experiment(config, settings)
    assignment = experiment.assignment()
    for other in others:
        beside = load_experiment(other)[0].assignment().range
        if not check_apart(assignment.range, beside, (config, other)):
            note(f"note: {config} and {other} are not in one layer: units may be in both")
    if isinstance(sys.stdout, TextIOWrapper):
        # Ids go out as they came in, whatever the terminal's encoding; \n on every system.
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["id", "arm"])
    problems: list[Problem] = []
    for line, raw in enumerate(ids, 1):
        try:
            unit = raw.decode("utf-8-sig" if line == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            problems.append(Problem("not valid UTF-8", file=_name(ids), line=line))
            continue
        if unit:
            writer.writerow([unit, assignment.arm(unit) or ""])
    if problems:
        raise InputError(problems=problems)


def _name(ids: BinaryIO) -> str:
    name = getattr(ids, "name", "-")
    return "standard input" if name in ("-", "<stdin>") else str(name)
