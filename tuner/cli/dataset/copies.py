"""tuner dataset convert and split: a data set in another layout, or in two parts."""

from __future__ import annotations

from pathlib import Path

import click

from tuner.cli.dataset.options import (
    format_option,
    path_argument,
    qrels_option,
    read_shown,
    relevant_from_option,
)
from tuner.cli.options import FiniteRange, note
from tuner.cli.out import echo


@click.command("convert", short_help="Write a data set in another layout.")
@path_argument
@click.argument("out", metavar="OUT")
@click.option(
    "--to",
    "layout",
    type=click.Choice(["beir", "samples"]),
    default="beir",
    show_default=True,
    help="beir: files for corpus, queries and judgements. samples: one line for each question, "
    "with everything that belongs to it.",
)
@format_option
@qrels_option
@relevant_from_option
def convert(
    path: str,
    out: str,
    layout: str,
    format_name: str | None,
    qrels: str | None,
    relevant_from: float,
) -> None:
    """Write the data set at PATH to the new folder OUT, with the same content and fingerprint."""
    from tuner.evalset.writing import refuse_full, write_dataset

    refuse_full(Path(out))
    dataset = read_shown(path, format_name, qrels, relevant_from)
    for warning in dataset.warnings:
        note(f"warning: {warning}")
    copy = write_dataset(dataset, Path(out), layout=layout)
    echo(f"{out}: {len(copy.queries)} queries, fingerprint {copy.fingerprint[:12]}")


@click.command("split", short_help="Write two parts: one to tune on, one to hold out.")
@path_argument
@click.argument("out", metavar="OUT")
@click.option(
    "--holdout",
    default=0.5,
    show_default=True,
    type=FiniteRange(0, 1, min_open=True, max_open=True),
    help="Share of the queries to hold out.",
)
@click.option("--seed", default=0, show_default=True, help="The same seed gives the same parts.")
@click.option(
    "--stratify-by",
    "fields",
    multiple=True,
    default=["query_type", "difficulty"],
    show_default=True,
    type=click.Choice(["query_type", "difficulty"]),
    help="Both parts get the same share of each of its values. May be repeated.",
)
@format_option
@qrels_option
@relevant_from_option
def split(
    path: str,
    out: str,
    holdout: float,
    seed: int,
    fields: tuple[str, ...],
    format_name: str | None,
    qrels: str | None,
    relevant_from: float,
) -> None:
    """Split the queries of PATH into the folders OUT/tune and OUT/holdout, in the BEIR layout.

    Both parts have the whole corpus. Queries of one group, or with the same text, stay in one part.
    """
    from tuner.datasets import split_queries
    from tuner.evalset.statistics import torn_pairs
    from tuner.evalset.writing import refuse_full, write_dataset

    refuse_full(Path(out))
    dataset = read_shown(path, format_name, qrels, relevant_from)
    tune, held = split_queries(dataset.queries, holdout=holdout, stratify_by=fields, seed=seed)
    torn = torn_pairs(dataset, held)
    for part, ids in (("tune", tune), ("holdout", held)):
        copy = write_dataset(dataset.select(ids), Path(out) / part)
        echo(f"{copy.path}: {len(ids)} queries, fingerprint {copy.fingerprint[:12]}")
    if torn:
        note(
            f"warning: {len(torn)} pairs of queries are worded alike and stand in different parts "
            f"(first: {torn[0][0]!r} and {torn[0][1]!r}); give each pair a group of its own"
        )


commands: tuple[click.Command, ...] = (convert, split)
