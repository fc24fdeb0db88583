"""tuner dataset build sample and pool: from a query log to a sheet for annotators."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.cli.completion import files
from tuner.cli.dataset.build_judged import agree, corpus_option, judge
from tuner.cli.dataset.options import AT_LEAST_1, threshold_option
from tuner.cli.options import note
from tuner.cli.out import echo
from tuner.core.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

_ROLES = ("query", "time", "user", "clicked")


@click.command("sample", short_help="Draw queries to judge from a query log.")
@click.argument("log", metavar="LOG", shell_complete=files)
@click.option("--out", required=True, metavar="FILE", help="Where the queries go, as JSON lines.")
@click.option(
    "--size", default=100, show_default=True, type=AT_LEAST_1, help="How many queries to draw."
)
@click.option("--seed", default=0, show_default=True, help="The same seed draws the same queries.")
@click.option(
    "--by",
    type=click.Choice(["distinct", "traffic"]),
    default="distinct",
    show_default=True,
    help="distinct: each query is as likely as any other. traffic: the more users asked a query, "
    "the likelier it is drawn.",
)
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="ROLE=NAME",
    help="Which column is the query, time, user or clicked, where its name does not tell.",
)
@click.option(
    "--since", metavar="DATE", help="Leave out what was asked before this date, such as 2026-01-31."
)
@click.option(
    "--min-users",
    default=1,
    show_default=True,
    type=AT_LEAST_1,
    help="Leave out queries that fewer users asked.",
)
@threshold_option
@click.option("--dropped", metavar="FILE", help="Write a CSV of the near duplicates left out.")
@click.option(
    "--classify",
    "classifier",
    metavar="MODULE:FUNCTION",
    help="Your own rule: a function from a query to its type and difficulty.",
)
def sample(
    log: str,
    out: str,
    size: int,
    seed: int,
    by: str,
    columns: tuple[str, ...],
    since: str | None,
    min_users: int,
    threshold: float,
    dropped: str | None,
    classifier: str | None,
) -> None:
    """Draw different queries from LOG, a CSV or JSON lines file, each type with its share."""
    from tuner.evalset.classify import load_classifier
    from tuner.evalset.distinct import write_near_duplicates
    from tuner.evalset.sampling import sample_log, write_sample

    for file in filter(None, (out, dropped)):  # before the work, not after it
        if Path(file).exists():
            raise InputError("is there already; name another file", file=file)
    found = sample_log(
        log,
        size,
        classify=load_classifier(classifier),
        say=note,
        columns=_pairs(columns),
        since=since,
        min_users=min_users,
        threshold=threshold,
        seed=seed,
        by_traffic=by == "traffic",
    )
    read, drawn = found.log, found.drawn
    write_sample(out, drawn)
    if dropped is not None:
        write_near_duplicates(dropped, found.near)
    note("columns: " + ", ".join(f"{role} = {name}" for role, name in read.columns.items()))
    wordless = f", {read.wordless} of punctuation alone" if read.wordless else ""
    note(
        f"{found.entries} entries ({read.blank} more were blank{wordless}), "
        f"{found.distinct} distinct queries, {len(found.near)} near duplicates dropped"
    )
    if len(drawn) < size:
        note(f"note: only {len(drawn)} queries are there, {size} were asked for")
    types = Counter(f"{item.query.query_type} {item.query.difficulty}" for item in drawn)
    note("types: " + ", ".join(f"{name} {count}" for name, count in types.most_common()))
    echo(f"{len(drawn)} queries: {out}")


@click.command("pool", short_help="Make a sheet of passages for annotators to grade.")
@click.argument("queries", metavar="QUERIES", shell_complete=files)
@click.option(
    "--out",
    required=True,
    metavar="FILE",
    help="Where the sheet goes, a CSV file that does not exist yet.",
)
@corpus_option
@click.option(
    "--config",
    metavar="CONFIG",
    help="Pool what this configuration's retriever finds at the corners of its space, in its "
    "data set's corpus unless --corpus is given. Default: the built-in engine.",
)
@click.option(
    "--params",
    "given",
    multiple=True,
    metavar="JSON|FILE",
    help="Pool these parameters instead of the corners. May be repeated.",
)
@click.option(
    "--run",
    "runs",
    multiple=True,
    metavar="FILE",
    help="Pool a run file of another system too. May be repeated.",
)
@click.option(
    "--depth",
    default=10,
    show_default=True,
    type=AT_LEAST_1,
    help="How many passages each setting adds.",
)
@click.option(
    "--some",
    type=AT_LEAST_1,
    metavar="NUMBER",
    help="Pool only so many of the queries, drawn at random: for people to grade what a judge "
    "grades all of.",
)
@click.option("--seed", default=0, show_default=True, help="The same seed gives the same order.")
def pool(
    queries: str,
    out: str,
    corpus_path: str | None,
    config: str | None,
    given: tuple[str, ...],
    runs: tuple[str, ...],
    depth: int,
    some: int | None,
    seed: int,
) -> None:
    """Make a sheet of the passages that several settings find for QUERIES.

    The passages are in random order, and the sheet does not say which setting found them. Give each
    annotator a copy. Documents that users clicked, as a query log says, are on the sheet too.
    """
    from tuner.cli.options import read_params
    from tuner.config import load_config
    from tuner.evalset.corpus import open_corpus
    from tuner.evalset.pool import (
        DEPTH_KNOB,
        configured_retriever,
        pool_queries,
        pool_settings,
    )
    from tuner.evalset.sampling import draw_some, read_sample
    from tuner.evalset.sheets import write_sheet

    if Path(out).exists():  # before the work, not after it
        raise InputError("is there already, and may hold grades; name another file", file=out)
    configured = None if config is None else load_config(config)
    loaded = None if configured is None else configured[0]
    section = None if loaded is None else loaded.dataset
    place = corpus_path or (None if section is None else section.path)
    if place is None:
        raise InputError("give --corpus PATH, or --config CONFIG with a data set")
    sampled = read_sample(queries)
    if some is not None:
        sampled = draw_some(sampled, some, seed=seed)
    corpus = open_corpus(place)
    retriever, space = configured_retriever(configured, corpus)
    settings = pool_settings(
        [read_params(text, "--params") for text in given],
        space,
        retriever.knobs,
        depth=depth,
        baseline=None if loaded is None else loaded.baseline,
    )
    limits = {knob.name: knob.high for knob in retriever.knobs}
    limit = limits.get(DEPTH_KNOB)
    if limit is not None and limit < depth:
        note(f"note: the retriever returns {limit:g} passages at most")
    found = pool_queries(sampled, corpus, retriever, settings, runs, depth=depth, seed=seed)
    write_sheet(out, found.rows)
    if empty := len(sampled) - found.queries:
        note(f"note: queries for which nothing was found, left out of the sheet: {empty}")
    if found.unknown_clicks:
        note(f"note: clicked documents that are not in the corpus: {found.unknown_clicks}")
    pooled = f"{len(settings)} settings, {len(runs)} runs, depth {depth}, {found.clicked} clicks"
    note(f"pooled: {pooled}")
    echo(f"{len(found.rows)} passages to grade for {found.queries} queries: {out}")


commands: tuple[click.Command, ...] = (sample, pool, agree, judge)


def _pairs(written: Sequence[str]) -> dict[str, str]:
    """Read ``--column ROLE=NAME`` options."""
    chosen = {}
    for text in written:
        role, equals, name = text.partition("=")
        if not equals or not name:
            raise InputError(f"--column {text!r}: write ROLE=NAME, such as query=search_term")
        if role not in _ROLES:
            raise InputError(f"--column {text!r}: no role {role!r}{did_you_mean(role, _ROLES)}")
        chosen[role] = name
    return chosen
