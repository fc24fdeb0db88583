"""tuner evaluate: one configuration, all metrics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.cli.completion import parameters
from tuner.cli.options import (
    baseline_is_default,
    config_argument,
    have_ready,
    load_shown,
    note,
    read_params,
    set_option,
    showing,
)
from tuner.cli.out import echo
from tuner.core.calls import calls_sentence
from tuner.core.errors import InputError
from tuner.core.json_text import json_text

if TYPE_CHECKING:
    from tuner.run.judge import Choice


@click.command("evaluate", short_help="Evaluate one set of parameters.")
@config_argument
@click.option(
    "--params",
    callback=baseline_is_default,
    metavar="JSON|FILE",
    shell_complete=parameters,
    help="Parameters as JSON, such as '{\"top_k\": 10}', or a YAML file such as best.yaml. "
    "Default: the configuration's baseline. A parameter that is left out has the baseline's "
    "value where `space:` does not name it; else the retriever's default, which for a function, "
    "command or http is the baseline's value too.",
)
@click.option(
    "--queries",
    "part",
    type=click.Choice(["all", "tune", "holdout"]),
    default="tune",
    show_default=True,
    help="Which queries to answer. The held-out ones are for the last decision: asking them is "
    "remembered.",
)
@click.option(
    "--per-query", "to_csv", type=click.Path(dir_okay=False), help="Write a CSV of every query."
)
@click.option(
    "--metric",
    "metric_names",
    multiple=True,
    metavar="NAME",
    help="A further metric, such as coverage; with several cut-offs (recall@1,5,20) or for all "
    "grades (share_grades@10, recall_levels@10). May be repeated.",
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
    to_csv: str | None,
    metric_names: tuple[str, ...],
    by: str | None,
    aggregates: bool,
    as_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Evaluate one set of parameters on the queries of CONFIG and print every metric."""
    from tuner.cli import aggregate_tables as tables
    from tuner.scoring.evaluated import evaluate_choice, with_metrics
    from tuner.scoring.records import group_record, groups, spread_record

    assembly = with_metrics(load_shown(config, settings), metric_names)
    given = assembly.baseline if params is None else read_params(params, "--params")
    if given is None:
        raise InputError("give --params, or a `baseline:` section in the configuration")
    choice = assembly.choice(given)
    labels = None if by is None else groups(assembly.part(part), by)
    have_ready(assembly, choice)
    with showing("evaluation"):
        found = evaluate_choice(assembly, choice, part)
    for remark in found.remarks:
        note(f"note: {remark}")
    per_query, queries = found.outcome.per_query, len(found.queries)
    if to_csv is not None:
        found.write_queries(Path(to_csv))
    if as_json:
        record = found.to_record()
        if aggregates:
            record["aggregates"] = spread_record(per_query)
        if labels is not None:
            record["by"] = {str(by): group_record(per_query, labels)}
        echo(json_text(record, indent=2))
        return
    where = f"on {queries} queries ({part})" if queries else "by the system's own measure"
    for line in _shown(choice, where):
        echo(line)
    tables.print_figures(found.figures, found.defined)
    if found.defined.get("composite", queries) < queries:
        note(
            f"note: the composite has all of its metrics for {found.defined['composite']} of "
            f"{queries} queries; comparisons and verdicts rest on these alone"
        )
    if aggregates:
        echo()
        tables.print_spread(per_query)
    if labels is not None:
        echo()
        tables.print_groups(per_query, labels, str(by))
    if asked := calls_sentence(found.calls):
        note(asked)
    if to_csv is not None:
        note(f"every query: {to_csv}")


def _shown(choice: Choice, where: str) -> list[str]:
    from tuner.cli.tables import shown_params
    from tuner.core.policy import Policy

    if not isinstance(choice, Policy):
        return [f"{shown_params(choice)}  {where}"]
    rows = [("any other", choice.default), *choice.types.items()]
    width = max(len(name) for name, _ in rows)
    return [
        f"{choice.told}  {where}",
        *(f"  {name:<{width}}  {shown_params(params)}" for name, params in rows),
    ]
