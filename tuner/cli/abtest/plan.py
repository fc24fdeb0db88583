"""tuner abtest plan: sample size and duration from a file of what users did before."""

from __future__ import annotations

import click

from tuner.cli.completion import files
from tuner.cli.options import config_argument, note, set_option
from tuner.cli.out import echo
from tuner.core.json_text import json_text
from tuner.core.shown import as_percent, counted


@click.command("plan", short_help="Say how many users and days an experiment needs.")
@config_argument
@click.argument("baseline", shell_complete=files)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@set_option
def command(config: str, baseline: str, as_json: bool, settings: tuple[str, ...]) -> None:
    """Say how many units and days the experiment in CONFIG needs.

    BASELINE (.csv, .tsv, .jsonl, .parquet) says what users did in a few weeks before the
    experiment: it has the columns of the metrics, one of the unit, and one of dates.
    """
    from tuner.abtest.experiment import load_experiment
    from tuner.abtest.planning import plan_experiment

    experiment, _ = load_experiment(config, settings)
    plan = plan_experiment(experiment, baseline)
    for remark in plan.remarks:
        note(f"note: {remark}")
    if as_json:
        echo(json_text(plan.to_record(), indent=2))
        return
    from tuner.cli.console import console, new_table

    echo(
        f"baseline: {plan.units:,} units from {plan.first_day} to {plan.last_day}; "
        f"alpha {experiment.alpha_each:.4g}, power {experiment.power:g}"
    )
    figures = ("value", "effect to find", "one look", "any look", "CUPED")
    table = new_table("metric", "role", *figures, words=("metric", "role"))
    for one in plan.metrics:
        saved = one.variance_reduction
        table.add_row(
            one.metric,
            one.role,
            f"{one.baseline:.4g}",
            f"{one.effect:.3g}",
            f"{one.one_look:,}",
            f"{one.any_look:,}",
            "" if saved is None else f"-{as_percent(saved)} variance",
        )
    console().print(table)
    echo("units of the smallest arm; the effect of a guard-rail is the margin to be shown")
    kind = (
        "one look"
        if experiment.decide == "fixed_horizon"
        else f"any look, the first at {experiment.minimum_sample_size:,}"
    )
    when = (
        "more than ten years at the baseline's rate of new units"
        if plan.days is None or plan.weeks is None
        else f"{counted(plan.days, 'day')}, so {counted(plan.weeks, 'whole week')}"
        + (" (longer than the baseline: extrapolated)" if plan.has_days_beyond else "")
    )
    echo(
        f"\nPlan {plan.sample_size:,} units in the smallest arm ({kind}), {plan.total_units:,} in "
        f"all: {when}.",
        bold=True,
    )
