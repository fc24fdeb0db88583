"""tuner promote: approve a challenger, or go back to an earlier champion."""

from __future__ import annotations

import click

from tuner.cli._options import config_argument, note, set_option


@click.command("promote", short_help="Make a version the champion: approval, or rollback.")
@config_argument
@set_option
@click.option(
    "--to",
    "target",
    required=True,
    metavar="VERSION|challenger|YYYY-MM-DD|baseline",
    help="A version of the registered model, what the last night found, what the night of a date "
    "found, or the configuration's baseline.",
)
@click.option("--reason", default="", help="Why; it is written down.")
def command(config: str, settings: tuple[str, ...], target: str, reason: str) -> None:
    """Make another configuration the champion of CONFIG's nights.

    Who did it, when and why stands in nights.jsonl and as tags of the version in MLflow's registry.
    Where the registry is out of reach, the next night moves its champion.
    """
    from tuner.config import load_config
    from tuner.nightly.promoting import promote

    loaded, _ = load_config(config, settings)
    promotion = promote(loaded, target, why=reason, say=note)
    click.echo(f"the champion of {loaded.study.name} is {promotion.to.called} now")
