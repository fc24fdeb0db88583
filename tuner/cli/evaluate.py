"""tuner evaluate: one configuration, all metrics."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from tuner.cli._options import config_argument, load, note, set_option
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
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@set_option
def command(
    config: str,
    params: str | None,
    part: str,
    per_query: str | None,
    as_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Evaluate one set of parameters on the queries of CONFIG and print every metric."""
    from tuner.assemble import BASELINE

    assembly = load(config, settings, say=note)
    given = assembly.baseline if params is None else _read_params(params)
    if given is None:
        raise InputError(f"give --params, or a `{BASELINE}:` section in the configuration")
    chosen = assembly.params(given)
    queries = {
        "all": assembly.dataset.queries,
        "tune": assembly.tune_queries,
        "holdout": assembly.holdout_queries,
    }[part]
    if not queries:
        raise InputError("no query is held out; set dataset.split.holdout above 0")
    evaluator = assembly.evaluator(queries)
    outcome = evaluator(chosen)
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
            "params": chosen,
            "queries": len(queries),
            "defined_queries": evaluator.defined_queries,
            "metrics": figures,
        }
        click.echo(json.dumps(record, indent=2))
        return
    from rich.table import Table

    from tuner.cli._console import console

    table = Table("metric", "value", box=None, padding=(0, 2, 0, 0))
    table.columns[1].justify = "right"
    for name, value in figures.items():
        table.add_row(name, f"{value:.4f}")
    click.echo(f"{json.dumps(chosen)}  on {len(queries)} queries ({part})")
    console().print(table)
    if per_query is not None:
        note(f"every query: {per_query}")


def _read_params(text: str) -> dict[str, Any]:
    """Read ``--params``: JSON in place, or a YAML file whose ``params`` (or whole) they are."""
    from tuner.config.source import read_source

    if text.lstrip().startswith("{"):
        try:
            return dict(json.loads(text))
        except json.JSONDecodeError as error:
            raise InputError(
                f"--params is not valid JSON: {error.msg} at column {error.colno}; write for "
                'example \'{"graph_weight": 0.6, "top_k": 10}\''
            ) from error
    source = read_source(text)
    params = source.data.get("params", source.data)
    if not isinstance(params, dict):
        raise InputError("must be a mapping of parameters", file=text, key=("params",))
    return params


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
