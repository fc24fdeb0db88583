"""tuner promote: approve a challenger, or go back to an earlier champion."""

from __future__ import annotations

import click

from tuner.cli.options import config_argument, note, set_option
from tuner.cli.out import echo


@click.command("promote", short_help="Make another configuration the champion, or go back.")
@config_argument
@set_option
@click.option(
    "--to",
    "target",
    required=True,
    metavar="VERSION|challenger|YYYY-MM-DD|baseline",
    help="A version of the registered model, its alias challenger, the date of the night that "
    "found it, or the configuration's baseline.",
)
@click.option("--reason", default="", help="Why; it is written down with the change.")
@click.option("--force", is_flag=True, help="Also where the verdict is not to deploy it.")
def command(config: str, settings: tuple[str, ...], target: str, reason: str, force: bool) -> None:
    """Make another configuration the champion of CONFIG's nights.

    The champion is what runs today. The verdict on the other configuration is printed first. If it
    is not to deploy it, and it was never the champion, `--force` is needed. Without MLflow the
    challenger is what the last night found.

    Who did it, when and why is written to nights.jsonl, and to the tags of the version in MLflow's
    registry. Where the registry is out of reach, the next night moves its champion.
    """
    from tuner.config import load_config
    from tuner.nightly.deciding import promote

    loaded, _ = load_config(config, settings)
    promotion = promote(loaded, target, why=reason, say=note, show=echo, is_forced=force)
    echo(f"the champion of {loaded.study.name} is {promotion.to.called} now")
