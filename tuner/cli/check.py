"""tuner check: everything that can be known before a run."""

from __future__ import annotations

import click

from tuner.cli.options import config_argument, load_shown, note, set_option, showing
from tuner.cli.out import echo
from tuner.core.calls import calls_sentence
from tuner.core.json_text import json_text
from tuner.core.shown import shortened
from tuner.core.steps import unsaid

PROBED = 5
NOT_ASKED = "the system was not asked: tuner evaluate {config} asks it once"


@click.command("check", short_help="Check a configuration, its data and its retriever.")
@config_argument
@set_option
@click.option(
    "--probe",
    type=click.IntRange(1),
    is_flag=False,
    flag_value=PROBED,
    metavar="[N]",
    help=f"Also ask the baseline N queries ({PROBED} where N is left out), and say how long a "
    "study may take, and how many queries, tokens, money and room; and ask them again with other "
    "values of parameters that are free.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(config: str, settings: tuple[str, ...], probe: int | None, as_json: bool) -> None:
    """Check CONFIG: keys, data set, index, parameters, metrics, backends and their budgets.

    Nothing is tuned, and the system is not asked, but for --probe. The index is built, and kept for
    the run.
    """
    from rich.table import Table

    from tuner.cli.console import console
    from tuner.run.earlier import gather
    from tuner.run.estimate import facts_of
    from tuner.run.estimate import probe as probed
    from tuner.run.free import checked, expected
    from tuner.run.inspection import spread
    from tuner.run.tunable import check_can_tune

    assembly = load_shown(config, settings, to_run=True)
    check_can_tune(assembly)
    starts = gather(assembly, say=unsaid).asked
    not_asked, settled = NOT_ASKED.format(config=config), expected(assembly)
    found = None
    if probe is not None:
        with showing("probe"):
            found = probed(assembly, probe, starts)
            settled = checked(assembly, spread(assembly.tune_queries, probe))
    facts = facts_of(assembly, settled, starts)
    if as_json:
        asked = {"queries_asked": assembly.ledger.calls}
        system = not_asked if found is None else {**found.to_record(), **asked}
        echo(json_text({**facts, "system": system}, indent=2))
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
    for line in [not_asked] if found is None else found.sentences:
        echo(line)
    if found is not None:
        note(calls_sentence(assembly.ledger.calls))
    echo("ok")
