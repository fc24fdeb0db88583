"""tuner dataset build: the steps from a query log, or from a graph, to a new evaluation set."""

from __future__ import annotations

import click

from tuner.cli.dataset import build_from_graph, build_from_log


@click.group(
    "build",
    short_help="Build a new set from a query log, or from a graph.",
    commands=[*build_from_log.commands, *build_from_graph.commands],
)
def build() -> None:
    """Build a new evaluation set, from a query log in four steps or from a graph in one.

    \b
    1. sample      draws queries from a log, without near duplicates
    2. pool        makes a sheet of passages; two people grade it: tuner dataset grade
    3. agree       compares what the two gave, and makes the sheet to settle what differs
    4. judge       turns the settled sheet into a data set
    or from-graph  makes questions with their answers from triples: no log, no people
    """


commands: tuple[click.Command, ...] = (build,)
