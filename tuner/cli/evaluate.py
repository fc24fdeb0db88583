"""tuner evaluate: one configuration, all metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.options import config_argument, load_shown, note, set_option, showing
from tuner.cli.out import echo
from tuner.cli.params import read_params
from tuner.core.calls import EVALUATION, calls_sentence
from tuner.core.errors import InputError
from tuner.core.files import write_csv
from tuner.core.json_text import json_text

if TYPE_CHECKING:
    from tuner.core.policy import Policy
    from tuner.core.trial import Outcome, Params
    from tuner.evaluation.objective import Objective
    from tuner.run.assembly import Assembly
    from tuner.verdict.looks import EarlierLooks


@click.command("evaluate", short_help="Evaluate one set of parameters.")
@config_argument
@click.option(
    "--params",
    metavar="JSON|FILE",
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
@click.option("--per-query", type=click.Path(dir_okay=False), help="Write a CSV of every query.")
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
    per_query: str | None,
    metric_names: tuple[str, ...],
    by: str | None,
    aggregates: bool,
    as_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Evaluate one set of parameters on the queries of CONFIG and print every metric."""
    from tuner.scoring import aggregates as tables

    assembly = load_shown(config, settings)
    further = _metrics(metric_names, assembly)
    names = tuple(dict.fromkeys((*assembly.plan.metric_names, *further)))
    assembly = replace(assembly, plan=replace(assembly.plan, metric_names=names))
    given = assembly.baseline if params is None else read_params(params, "--params")
    if given is None:
        raise InputError("give --params, or a `baseline:` section in the configuration")
    choice = assembly.choice(given)
    queries = assembly.part(part)
    labels = None if by is None else tables.groups(queries, by)
    evaluator = assembly.evaluator(queries)
    assembly = assembly.counting(EVALUATION)
    with showing("evaluation"):
        outcome = assembly.evaluate(choice, queries)
    looks = _looked(assembly, choice, part)
    objective = assembly.plan.objective
    score = objective.score(outcome.metrics)
    figures = {
        "objective": score.objective,
        "composite": score.composite,
        "violation": score.violation,
        **outcome.metrics,
    }
    defined = _defined(outcome, objective)
    if per_query is not None:
        _write_csv(Path(per_query), queries, outcome.per_query)
    if as_json:
        record = {
            "params": _plain(choice),
            "queries": len(queries),
            "defined_queries": evaluator.defined_queries,
            "metrics": {name: None if value != value else value for name, value in figures.items()},
            "defined": defined,
            "holdout_looks": None if looks is None else asdict(looks),
            "queries_asked": dict(assembly.calls),
        }
        if aggregates:
            record["aggregates"] = tables.spread_record(outcome.per_query)
        if labels is not None:
            record["by"] = {str(by): tables.group_record(outcome.per_query, labels)}
        echo(json_text(record, indent=2))
        return
    from tuner.cli.console import console

    where = f"on {len(queries)} queries ({part})" if queries else "by the system's own measure"
    for line in _shown(choice, where):
        echo(line)
    console().print(tables.figures_table(figures, defined))
    if defined.get("composite", len(queries)) < len(queries):
        note(
            f"note: the composite has all of its metrics for {defined['composite']} of "
            f"{len(queries)} queries; comparisons and verdicts rest on these alone"
        )
    if aggregates:
        echo()
        console().print(tables.spread_table(outcome.per_query))
    if labels is not None:
        echo()
        console().print(tables.group_table(outcome.per_query, labels, str(by)))
    if asked := calls_sentence(assembly.calls):
        note(asked)
    if per_query is not None:
        note(f"every query: {per_query}")


def _looked(assembly: Assembly, choice: Params | Policy, part: str) -> EarlierLooks | None:
    """Remember a look at the held-out queries, and say so; None where none were asked."""
    from tuner.run.judge import key_of, look

    if part == "tune" or not assembly.holdout_queries:
        return None
    runs_dir = Path(assembly.config.study.runs_dir)
    looks = look(runs_dir, assembly, [key_of(assembly, choice)])
    for remark in looks.remarks(runs_dir):
        note(f"note: {remark}")
    return looks


def _metrics(names: Sequence[str], assembly: Assembly) -> list[str]:
    """Return the metrics of ``--metric``, one name a cut-off and grade.

    Raises:
        InputError: one of them does not exist, or needs what the configuration does not say.
    """
    from tuner.evaluation.evaluator import metric_problems
    from tuner.metrics import at_grades, listed

    grades = assembly.dataset.qrels.values()
    written_out = [
        name
        for written in names
        for plural in listed(written)
        for name in at_grades(plural, grades)
    ]
    options = assembly.config.context.options
    problems = [
        problem
        for name in written_out
        for problem in metric_problems(name, ("--metric",), options=options)
    ]
    if problems:
        raise InputError(problems=problems)
    return written_out


def _defined(outcome: Outcome, objective: Objective) -> dict[str, int]:
    """Return for how many queries each metric is defined, and all metrics of the composite."""
    from tuner.evaluation.objective import composite_values
    from tuner.evaluation.system_metrics import SYSTEM_METRICS
    from tuner.metrics import mean_defined

    values = dict(outcome.per_query)
    for name in outcome.metrics:
        source = SYSTEM_METRICS[name].source if name in SYSTEM_METRICS else name
        if source in values:
            values[name] = values[source]
    counts = {name: mean_defined(values[name])[1] for name in outcome.metrics if name in values}
    if not outcome.per_query:  # a system that measures itself tells means only
        return counts
    composite = composite_values(outcome.per_query, objective.weights)
    return {"composite": mean_defined(composite)[1], **counts}


def _plain(choice: Params | Policy) -> dict[str, Any]:
    """Return parameters as plain data; of a policy those by type, without the rule."""
    from tuner.core.policy import Policy

    if isinstance(choice, Policy):
        record = choice.to_record()
        return {"default": record["default"], "types": record["types"]}
    return dict(choice)


def _shown(choice: Params | Policy, where: str) -> list[str]:
    from tuner.cli.tables import shown_params
    from tuner.core.policy import Policy

    if not isinstance(choice, Policy):
        return [f"{shown_params(choice)}  {where}"]
    rows = [("any other", choice.default), *choice.types.items()]
    width = max(len(name) for name, _ in rows)
    return [
        f"by query type  {where}",
        *(f"  {name:<{width}}  {shown_params(params)}" for name, params in rows),
    ]


def _write_csv(path: Path, queries: Sequence[Any], per_query: Any) -> None:
    rows: list[tuple[str, ...]] = [("query_id", "query_type", "difficulty", *per_query, "text")]
    for row, query in enumerate(queries):
        values = (metric[row] for metric in per_query.values())
        shown = ["" if value != value else f"{value:.6g}" for value in values]
        rows.append((query.id, query.query_type, query.difficulty, *shown, query.text))
    try:
        write_csv(path, rows)
    except OSError as error:
        raise InputError(f"--per-query {path}: cannot be written: {error.strerror}") from error
