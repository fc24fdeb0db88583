"""tuner check: everything that can be known before a run."""

from __future__ import annotations

from typing import Any

import click

from tuner.cli.options import config_argument, load_shown, set_option
from tuner.cli.out import echo
from tuner.core.json_text import json_text
from tuner.core.shown import shortened

NOT_ASKED = "the system was not asked: tuner evaluate {config} asks it once"


@click.command("check", short_help="Check a configuration, its data and its retriever.")
@config_argument
@set_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(config: str, settings: tuple[str, ...], as_json: bool) -> None:
    """Check CONFIG: keys, data set, index, parameters, metrics, backends and their budgets.

    Nothing is tuned, and the system is not asked. The index is built, and kept for the run.
    """
    from rich.table import Table

    from tuner.cli.console import console
    from tuner.run.assembly import check_can_tune

    assembly = load_shown(config, settings, to_run=True)
    check_can_tune(assembly)
    facts, not_asked = _facts(assembly), NOT_ASKED.format(config=config)
    if as_json:
        echo(json_text({**facts, "system": not_asked}, indent=2))
        return
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value in facts.items():
        shown = (
            ", ".join(f"{k or '(none)'}: {v}" for k, v in value.items())
            if isinstance(value, dict)
            else value
        )
        table.add_row(name.replace("_", " "), shortened(str(shown), 2_000))
    console().print(table)
    echo(not_asked)
    echo("ok")


def _facts(assembly: Any) -> dict[str, Any]:
    from tuner.run.planning import decided_by_clock

    plan, dataset = assembly.plan, assembly.dataset.summary()
    record = assembly.dataset_record()
    size, seed = plan.space.size(), assembly.config.study.seed
    return {
        "dataset": {**record, "fingerprint": record["fingerprint"][:12]} if record else "none",
        "query_types": dict(dataset.query_types),
        "difficulties": dict(dataset.difficulties),
        "retriever": assembly.config.retriever.kind,
        "parameters": {
            knob.name: f"{knob.default} by default"
            + ("" if knob.name in plan.space.names else ", not tuned")
            for knob in assembly.retriever.knobs
        },
        "points_in_the_space": "infinitely many" if size is None else size,
        "metrics": ", ".join(plan.metric_names),
        "trials": {name: budget for name, _, budget in plan.arms},
        "reproducible": decided_by_clock(assembly.config) or f"from seed {seed}",
        "baseline": assembly.baseline or "none; add one to see what tuning is worth",
    }
