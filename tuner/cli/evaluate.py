"""tuner evaluate: one configuration, all metrics."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from tuner.cli._options import config_argument, load, note, set_option
from tuner.cli._params import read_params
from tuner.core.errors import InputError


@click.command("evaluate", short_help="Evaluate one set of parameters.")
@config_argument
@click.option(
    "--params",
    metavar="JSON|FILE",
    help="Parameters as JSON, such as '{\"top_k\": 10}', or a YAML file such as best.yaml. "
    "Default: the configuration's baseline. What is left out takes the retriever's default.",
)
@click.option(
    "--queries",
    "part",
    type=click.Choice(["all", "tune", "holdout"]),
    default="all",
    show_default=True,
    help="Which of the queries to answer.",
)
@click.option("--per-query", type=click.Path(dir_okay=False), help="Write a CSV of every query.")
@click.option(
    "--metric",
    "metric_names",
    multiple=True,
    metavar="NAME",
    help="A further metric, such as coverage, or at several cut-offs: recall@1,5,20. Repeatable.",
)
@click.option(
    "--by", type=click.Choice(["query_type", "difficulty"]), help="Also show each group's means."
)
@click.option(
    "--aggregates", is_flag=True, help="Also show deviation, minimum, quartiles and maximum."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@set_option
def command(
    config: str,
    params: str | None,
    part: str,
    per_query: str | None,
    metric_names: tuple[str, ...],
    by: str | None,
    aggregates: bool,
    as_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Evaluate one set of parameters on the queries of CONFIG and print every metric."""
    from tuner.cli._aggregates import (
        group_record,
        group_table,
        groups,
        spread_record,
        spread_table,
    )

    further = _metrics(metric_names)
    assembly = load(config, settings, say=note)
    names = tuple(dict.fromkeys((*assembly.plan.metric_names, *further)))
    assembly = replace(assembly, plan=replace(assembly.plan, metric_names=names))
    given = assembly.baseline if params is None else read_params(params, "--params")
    if given is None:
        raise InputError("give --params, or a `baseline:` section in the configuration")
    chosen = assembly.choice(given)
    shown = chosen if isinstance(chosen, dict) else chosen.to_record()["types"]
    queries = assembly.part(part)
    labels = None if by is None else groups(queries, by)
    evaluator = assembly.evaluator(queries)
    outcome = assembly.evaluate(chosen, queries)
    score = assembly.plan.objective.score(outcome.metrics)
    figures = {
        "objective": score.objective,
        "composite": score.composite,
        "violation": score.violation,
        **outcome.metrics,
    }
    if per_query is not None:
        _write_csv(Path(per_query), queries, outcome.per_query)
    if as_json:
        record = {
            "params": shown,
            "queries": len(queries),
            "defined_queries": evaluator.defined_queries,
            "metrics": figures,
        }
        if aggregates:
            record["aggregates"] = spread_record(outcome.per_query)
        if labels is not None:
            record["by"] = {str(by): group_record(outcome.per_query, labels)}
        click.echo(json.dumps(record, indent=2))
        return
    from rich.table import Table

    from tuner.cli._console import console

    table = Table("metric", "value", box=None, padding=(0, 2, 0, 0))
    table.columns[1].justify = "right"
    for name, value in figures.items():
        table.add_row(name, f"{value:.4f}")
    click.echo(f"{json.dumps(shown)}  on {len(queries)} queries ({part})")
    console().print(table)
    if aggregates:
        click.echo()
        console().print(spread_table(outcome.per_query))
    if labels is not None:
        click.echo()
        console().print(group_table(outcome.per_query, labels, str(by)))
    if per_query is not None:
        note(f"every query: {per_query}")


def _metrics(names: Sequence[str]) -> list[str]:
    """Return the metrics of ``--metric``, one name a cut-off.

    Raises:
        InputError: one of them does not exist.
    """
    from tuner.evaluation.evaluator import metric_problems
    from tuner.metrics import at_cutoffs

    written_out = [name for written in names for name in at_cutoffs(written)]
    problems = [problem for name in written_out for problem in metric_problems(name, ("--metric",))]
    if problems:
        raise InputError(problems=problems)
    return written_out


def _write_csv(path: Path, queries: Sequence[Any], per_query: Any) -> None:
    names = list(per_query)
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["query_id", "query_type", "difficulty", *names, "text"])
            for row, query in enumerate(queries):
                values = (per_query[name][row] for name in names)
                shown = ["" if value != value else f"{value:.6g}" for value in values]
                writer.writerow([query.id, query.query_type, query.difficulty, *shown, query.text])
    except OSError as error:
        raise InputError(f"--per-query {path}: cannot be written: {error.strerror}") from error
