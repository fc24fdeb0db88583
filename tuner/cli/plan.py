"""tuner plan: how many queries show which difference, and which difference so many show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.cli.completion import run_dirs
from tuner.cli.options import FiniteRange
from tuner.cli.out import echo
from tuner.core.json_text import json_text
from tuner.core.shown import figure

if TYPE_CHECKING:
    from tuner.run.query_plan import QueryPlan

_SHARE = FiniteRange(0.0, 1.0, min_open=True, max_open=True)


@click.command("plan", short_help="Say how many queries show which difference.")
@click.argument("run_dir", required=False, type=click.Path(path_type=Path), shell_complete=run_dirs)
@click.option(
    "--sd",
    type=FiniteRange(0.0, min_open=True),
    help="Standard deviation of the differences by query between two configurations, where "
    "there is no RUN_DIR. Often 0.1 to 0.25 for metrics from 0 to 1.",
)
@click.option(
    "--effect",
    "effects",
    type=FiniteRange(0.0, min_open=True),
    multiple=True,
    help="A difference to find, such as 0.02; without RUN_DIR and --sd in standard deviations. May "
    "be repeated.",
)
@click.option(
    "--queries",
    type=click.IntRange(2, 10_000_000),
    multiple=True,
    help="A number of queries to compare on. May be repeated.",
)
@click.option("--holdout", type=_SHARE, help="Share of all queries that is held out, such as 0.5.")
@click.option(
    "--alpha",
    type=_SHARE,
    help="How often two equal configurations may be called different. Default: the run's, "
    "else 0.05.",
)
@click.option(
    "--power",
    type=_SHARE,
    default=0.8,
    show_default=True,
    help="How often a true difference is to be found.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    run_dir: Path | None,
    sd: float | None,
    effects: tuple[float, ...],
    queries: tuple[int, ...],
    holdout: float | None,
    alpha: float | None,
    power: float,
    as_json: bool,
) -> None:
    """Say how many queries a verdict needs, from an earlier study in RUN_DIR or from a guess.

    The numbers are those of a paired t-test, two-sided. Where a few differences are very large, it
    takes some more queries.
    """
    from tuner.run.query_plan import plan_queries, spread_from
    from tuner.verdict.verdict import ALPHA

    spread = spread_from(run_dir, sd, holdout)
    level = alpha if alpha is not None else ALPHA if spread is None else spread.alpha
    plan = plan_queries(spread, effects=effects, queries=queries, alpha=level, power=power)
    if as_json:
        echo(json_text(plan.to_record(), indent=2))
        return
    _print(plan)


def _print(plan: QueryPlan) -> None:
    from tuner.cli.console import console, new_table

    spread = plan.spread
    share = None if spread is None else spread.held_out_share
    if spread is None:
        echo(
            "No spread is known (RUN_DIR or --sd), so effects are d_z: a difference divided by it."
        )
    else:
        echo(
            f"The differences by query have a standard deviation of "
            f"{spread.standard_deviation:.4g} ({spread.source})."
        )
        if spread.run_shift:
            echo(
                f"The system differed from itself by {spread.run_shift:.4f} when asked again, "
                "which no number of queries takes away."
            )
        if spread.widened > 1.0:
            echo(
                f"All queries decide, part by part: as the parts depend on each other, intervals "
                f"are {spread.widened:.3g} times as wide, which is counted here."
            )
    by = f"alpha {plan.alpha:.4g}, power {plan.power:g}"
    kind = "queries" if share is None else "held-out queries"
    difference = [] if spread is None else ["difference"]
    label = [] if share is None else [f"to label, {100 * share:.3g} % held out"]
    needs = new_table(*difference, "d_z", kind, *label)
    shows = new_table(kind, *difference, "d_z")
    for one in plan.needed:
        row = [] if one.difference is None else [f"{one.difference:.4g}"]
        row += [
            f"{one.effect_size:.3g}",
            "none will do" if one.queries is None else f"{one.queries:,}",
        ]
        row += [] if share is None else [figure(one.to_label, ",")]
        needs.add_row(*row)
    for found in plan.detectable:
        row = [] if found.difference is None else [f"{found.difference:.4f}"]
        shows.add_row(f"{found.queries:,}", *row, f"{found.effect_size:.3f}")
    echo(f"\nSo many queries show a difference ({by}):")
    console().print(needs)
    echo(f"\nThe smallest difference that so many queries show ({by}):")
    console().print(shows)
