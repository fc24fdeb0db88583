"""tuner abtest: an experiment on live traffic, from its sample size to ship or do not ship."""

from __future__ import annotations

import click

from tuner.cli import _abtest_analyze, _abtest_assign, _abtest_plan


@click.group(
    "abtest",
    short_help="Plan, assign and analyze an experiment on live traffic.",
    commands=[_abtest_plan.command, _abtest_assign.command, _abtest_analyze.command],
)
def command() -> None:
    """Test a configuration on live traffic: how many users, who gets what, and what came of it.

    CONFIG is a YAML file such as configs/abtest/experiment.yaml.
    """
