"""tuner policy: parameters by query type, from a study that has ended."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.cli.completion import run_dirs
from tuner.cli.options import FiniteRange, load, note
from tuner.cli.out import echo
from tuner.core.calls import calls_sentence
from tuner.core.errors import InputError
from tuner.core.json_text import json_text
from tuner.core.run_files import CONFIG_FILE
from tuner.core.shown import as_percent, counted
from tuner.core.steps import VERDICT, Phases
from tuner.run.progress import progress_for

if TYPE_CHECKING:
    from tuner.run.by_features import FeaturesResult
    from tuner.run.judged_policy import JudgedPolicy
    from tuner.run.policy import PolicyResult


@click.command(
    "policy", short_help="Choose parameters by query type or features, from a study's trials."
)
@click.argument("run_dir", type=click.Path(path_type=Path), shell_complete=run_dirs)
@click.option(
    "--by",
    type=click.Choice(["query_type", "features"]),
    default="query_type",
    show_default=True,
    help="What tells a query's parameters: its type, or what is seen of it before it is answered.",
)
@click.option(
    "--features",
    metavar="MODULE:FUNCTION",
    help="With --by features: a function of yours that is given a query's text, and returns "
    "further features as a mapping of numbers.",
)
@click.option(
    "--prior",
    type=FiniteRange(0.0),
    default=20.0,
    show_default=True,
    help="With this many queries of a type, they count as much as all queries together.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(run_dir: Path, by: str, features: str | None, prior: float, as_json: bool) -> None:
    """Choose the best parameters for each query type of the study in RUN_DIR.

    With --by features, learn how free parameters, or which of the trials' settings, are best for a
    query by what is seen of it before it is answered.

    The trials kept the values of every query, so nothing is searched again; of free parameters each
    type has values of its own. Writes
    RUN_DIR/policy.yaml, which can be given wherever parameters can, and compares it with the winner
    of the study on the held-out queries.
    """
    if features is not None and by != "features":
        raise InputError("--features are looked at with --by features")
    from tuner.run.folder import read_run
    from tuner.run.judged_policy import check_same_data, ended_study, write_policy

    content, _ = read_run(run_dir)
    result: PolicyResult | FeaturesResult
    with progress_for() as progress:
        phases = Phases(progress.step)
        assembly = load(str(run_dir / CONFIG_FILE), (), say=progress.say, phases=phases)
        check_same_data(content.header, assembly)
        with phases.phase(VERDICT):
            study = ended_study(assembly, content, run_dir, say=progress.say)
            if by == "features":
                from tuner.run.by_features import derive_by_features

                result = derive_by_features(study, function=features or "")
            else:
                from tuner.run.policy import derive_policy

                result = derive_policy(study, prior_queries=prior)
    found = result.judged
    path = write_policy(run_dir, found)
    if found.looks is not None:
        note(f"note: {found.looks.told(run_dir.parent)}")
    if as_json:
        echo(json_text(result.to_record(), indent=2))
        return
    from tuner.cli.tables import print_types

    _print(result)
    if found.verdict is not None:
        echo(f"\n{found.verdict.sentence}", bold=True)
        print_types(found.verdict.to_record())
    else:
        echo(f"\nNo verdict: {found.no_verdict}.", bold=True)
    echo(f"\npolicy  {path}")
    note(_asked(found))


def _print(result: PolicyResult | FeaturesResult) -> None:
    from rich.table import Table

    from tuner.cli.console import console
    from tuner.cli.policy_features import print_model
    from tuner.cli.tables import shown_params
    from tuner.run.by_features import FeaturesResult

    echo(f"winner  {shown_params(result.winner.params)}")
    if isinstance(result, FeaturesResult):
        print_model(result)
        return
    table = Table("query type", "queries", "gain (tune)", "parameters", box=None)
    for choice in result.choices:
        params = "as the winner" if choice.gain == 0.0 else shown_params(choice.trial.params)
        table.add_row(choice.query_type or "–", str(choice.queries), f"{choice.gain:+.3f}", params)
    console().print(table)
    echo(f"the rule tells {as_percent(result.accuracy)} of the query types from words alone")


def _asked(found: JudgedPolicy) -> str:
    """Say what was asked for it, what that cost, and what was not asked again."""
    from tuner.core.spent import amount  # with numpy, which help must not wait for

    told = calls_sentence(found.queries_asked) or "no query was asked"
    money = "" if found.money is None else f", money {amount(found.money)}"
    if not found.kept_answers:
        return f"{told}{money}"
    kept = counted(found.kept_answers, "query", "queries")
    why = "its answer was" if found.kept_answers == 1 else "their answers were"
    return f"{told}{money}; {kept} not asked again, as {why} kept"
