"""tuner abtest: an experiment on live traffic, from its sample size to ship or do not ship."""

from __future__ import annotations

import click

from tuner.cli.abtest import analyze, assign, plan


@click.group(
    "abtest",
    short_help="Plan, assign and analyze an experiment on live traffic.",
    commands=[plan.command, assign.command, analyze.command],
)
def command() -> None:
    """Test a configuration on live traffic: how many users, who gets what, and what came of it.

    CONFIG is a YAML file such as configs/abtest/experiment.yaml.
    """
