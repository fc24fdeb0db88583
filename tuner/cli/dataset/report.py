"""tuner dataset stats and check: what a data set holds, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.dataset.options import (
    format_option,
    path_argument,
    qrels_option,
    read_shown,
    relevant_from_option,
    threshold_option,
)
from tuner.cli.options import note, showing
from tuner.cli.out import echo
from tuner.core.errors import InputError, Problem
from tuner.core.json_text import json_text
from tuner.core.shown import as_percent

if TYPE_CHECKING:
    from tuner.datasets import Dataset
    from tuner.evalset.reach import Reach
    from tuner.evalset.statistics import Spread, Statistics

_NOT_KNOWN = "not known: no corpus"


@click.command("stats", short_help="Count what is there, and what any retriever could find.")
@path_argument
@format_option
@qrels_option
@relevant_from_option
@threshold_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def stats(
    path: str,
    format_name: str | None,
    qrels: str | None,
    relevant_from: float,
    threshold: float,
    as_json: bool,
) -> None:
    """Describe the data set at PATH: sizes, judgements, duplicates, and the reach of retrievers.

    Reach is the highest recall that is possible at any depth: for any retriever (what is in the
    corpus), by matching words, by walks of 1, 2, ... steps through the graph that the built-in
    engine makes of the corpus, and by words and walks together. Only vectors may find the rest.
    """
    from tuner.evalset.reach import reach_of

    dataset = read_shown(path, format_name, qrels, relevant_from, is_strict=False)
    with showing("counting"):
        found = _describe(dataset, threshold)
    with showing("reach"):
        reach = reach_of(dataset)
    if as_json:
        record = {
            "name": dataset.name,
            "path": dataset.path,
            "fingerprint": dataset.fingerprint,
            **asdict(found),
            "reach": None if reach is None else asdict(reach),
            "lacking": [str(problem) for problem in dataset.lacking],
            "warnings": dataset.warnings,
        }
        echo(json_text(record, indent=2))
        return
    _print(dataset, found, reach)
    for warning in (*dataset.lacking, *dataset.warnings):
        note(f"warning: {warning}")


@click.command("check", short_help="Report everything that is wrong with a data set.")
@path_argument
@format_option
@qrels_option
@relevant_from_option
@threshold_option
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
def check(
    path: str,
    format_name: str | None,
    qrels: str | None,
    relevant_from: float,
    threshold: float,
    strict: bool,
) -> None:
    """Check the data set at PATH: every broken line, and what would make scores wrong.

    The exit code is 2 if there is an error, and with --strict also if there is a warning.
    """
    from tuner.evalset.statistics import errors_of, warnings_of

    dataset = read_shown(path, format_name, qrels, relevant_from, is_strict=False)
    found = _describe(dataset, threshold)
    errors, warnings = errors_of(dataset, found), [*dataset.warnings, *warnings_of(found)]
    if strict:
        errors, warnings = [*errors, *warnings], []
    for warning in warnings:
        note(f"warning: {warning}")
    if errors or dataset.lacking:
        told = [Problem(message, dataset.path) for message in errors]
        raise InputError(problems=[*dataset.lacking, *told])
    echo(
        f"ok: {found.counts['documents']} documents, {found.counts['queries']} queries, "
        f"{found.counts['judgements']} judgements, fingerprint {dataset.fingerprint[:12]}"
    )


commands: tuple[click.Command, ...] = (stats, check)


def _describe(dataset: Dataset, threshold: float) -> Statistics:
    from tuner.core.words import count_tokens
    from tuner.evalset.statistics import describe

    return describe(dataset, count_tokens=count_tokens, threshold=threshold)


def _print(dataset: Dataset, found: Statistics, reach: Reach | None) -> None:
    from rich.table import Table

    from tuner.cli.console import console

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in _rows(dataset, found, reach):
        table.add_row(name, value)
    console().print(table)


def _rows(dataset: Dataset, found: Statistics, reach: Reach | None) -> list[tuple[str, str]]:
    has_corpus = bool(dataset.corpus.documents)
    rows = [("name", dataset.name), ("fingerprint", dataset.fingerprint[:12])]
    rows += [(name.replace("_", " "), str(count)) for name, count in found.counts.items()]
    rows += [
        ("query types", _listed(found.query_types)),
        ("difficulties", _listed(found.difficulties)),
        ("grades", _listed(found.grades)),
        ("relevant per query", _spread(found.relevant_per_query)),
        ("tokens in a query", _spread(found.query_tokens)),
        ("tokens in a document", _spread(found.document_tokens)),
        ("unjudged queries", _counted(found.unjudged)),
        ("queries without relevant", _counted(found.without_relevant)),
        ("duplicate queries", _counted(found.duplicate_queries)),
        ("near-duplicate queries", _counted(found.near_duplicate_queries)),
        ("duplicate documents", _counted(found.duplicate_documents)),
        ("gold not in the corpus", _counted(found.unknown_gold)),
        ("others judged, not in it", _counted(found.unknown_judged)),
        ("gold without text", _counted(found.empty_gold if has_corpus else None)),
        ("unjudged copies of gold", _counted(found.twins if has_corpus else None)),
        (
            "highest possible recall",
            ", ".join(
                f"@{k}: {as_percent(value, '.1%')}" for k, value in found.recall_ceiling.items()
            ),
        ),
    ]
    if reach is None:
        return [*rows, ("reach", _NOT_KNOWN)]
    return [
        *rows,
        ("reach: in the corpus", as_percent(reach.in_corpus, ".1%")),
        ("reach: by shared words", as_percent(reach.by_words, ".1%")),
        ("reach: by graph, max_hops", _by_hops(reach.by_graph)),
        ("reach: by words or graph", _by_hops(reach.by_either)),
    ]


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name or '(none)'}: {count}" for name, count in counts.items())


def _counted(things: Sequence[Any] | None) -> str:
    if things is None:
        return _NOT_KNOWN
    if not things:
        return "0"
    from tuner.evalset.statistics import some

    return f"{len(things)} ({some(things)})"


def _spread(spread: Spread) -> str:
    if spread.mean is None:
        return "–"
    return f"{spread.least} to {spread.most}, median {spread.median:g}, mean {spread.mean:.2f}"


def _by_hops(shares: Mapping[int, float | None]) -> str:
    return ", ".join(f"{hops}: {as_percent(part, '.1%')}" for hops, part in shares.items())
