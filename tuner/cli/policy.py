"""tuner policy: parameters by query type, from a study that has ended."""

from __future__ import annotations

from pathlib import Path

import click

from tuner.cli.options import FiniteRange, load
from tuner.cli.out import echo
from tuner.core.json_text import json_text
from tuner.core.run_files import CONFIG_FILE
from tuner.core.shown import as_percent
from tuner.core.steps import VERDICT, Phases
from tuner.run.progress import progress_for


@click.command("policy", short_help="Choose parameters by query type, from a study's trials.")
@click.argument("run_dir", type=click.Path(path_type=Path))
@click.option(
    "--prior",
    type=FiniteRange(0.0),
    default=20.0,
    show_default=True,
    help="With this many queries of a type, they count as much as all queries together.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(run_dir: Path, prior: float, as_json: bool) -> None:
    """Choose the best parameters for each query type of the study in RUN_DIR.

    The trials kept the values of every query, so nothing is searched again; of free parameters each
    type has values of its own. Writes
    RUN_DIR/policy.yaml, which can be given wherever parameters can, and compares it with the winner
    of the study on the held-out queries.
    """
    from tuner.cli.console import console
    from tuner.cli.tables import print_types, shown_params
    from tuner.run.folder import read_run
    from tuner.run.policy import check_same_data, derive_policy, write_policy

    content, _ = read_run(run_dir)
    with progress_for() as progress:
        phases = Phases(progress.step)
        assembly = load(str(run_dir / CONFIG_FILE), (), say=progress.say, phases=phases)
        check_same_data(content.header, assembly)
        with phases.phase(VERDICT):
            result = derive_policy(
                assembly, content, run_dir, prior_queries=prior, say=progress.say
            )
    path = write_policy(run_dir, result)
    if as_json:
        echo(json_text(result.to_record(), indent=2))
        return
    from rich.table import Table

    table = Table("query type", "queries", "gain (tune)", "parameters", box=None)
    for choice in result.choices:
        params = "as the winner" if choice.gain == 0.0 else shown_params(choice.trial.params)
        table.add_row(choice.query_type or "–", str(choice.queries), f"{choice.gain:+.3f}", params)
    echo(f"winner  {shown_params(result.winner.params)}")
    console().print(table)
    echo(f"the rule tells {as_percent(result.accuracy)} of the query types from words alone")
    if result.verdict is not None:
        echo(f"\n{result.verdict.sentence}", bold=True)
        print_types(result.verdict.to_record())
    else:
        echo(f"\nNo verdict: {result.no_verdict}.", bold=True)
    echo(f"\npolicy  {path}")
