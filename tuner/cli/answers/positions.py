"""tuner answers positions: what a relevant passage is worth at each rank of a context."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tuner.cli.answers.opened import KEPT, function_of, opened
from tuner.cli.answers.options import asking_options, plan_of, sample_option, say_asked
from tuner.cli.completion import configs_and_runs
from tuner.cli.options import FiniteRange, note, read_params, set_option, showing
from tuner.cli.out import echo
from tuner.core.calls import calls_sentence
from tuner.core.errors import InputError
from tuner.core.json_text import json_text


@click.command("positions", short_help="Fit the weights of ranks to what answers make of them.")
@click.argument("source", metavar="CONFIG|RUN_DIR", shell_complete=configs_and_runs)
@click.option(
    "--answers",
    "answers",
    required=True,
    metavar="MODULE:FUNCTION",
    help="A function (query, passages) -> quality.",
)
@click.option(
    "--params",
    metavar="JSON|FILE",
    help="Parameters whose rankings the passages are from. Default: the baseline's.",
)
@click.option(
    "--passages",
    type=click.IntRange(min=2),
    default=10,
    show_default=True,
    metavar="K",
    help="How many passages each context has.",
)
@click.option(
    "--ranks",
    metavar="LIST",
    help="The ranks that the relevant passage is put at, such as 1,2,3,5,10. Default: all.",
)
@sample_option
@click.option(
    "--twice",
    default=0.1,
    show_default=True,
    type=FiniteRange(0, 1),
    help="The share of the questions that is asked a second time.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("discount.yaml"),
    show_default=True,
    metavar="FILE",
    help="Where the weights are written, as a configuration takes them.",
)
@asking_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@set_option
def positions(
    source: str,
    answers: str,
    params: str | None,
    passages: int,
    ranks: str | None,
    sample: int | None,
    twice: float,
    out: Path,
    kept: Path | None,
    as_json: bool,
    settings: tuple[str, ...],
    **asking: Any,
) -> None:
    """Move a relevant passage through the ranks of a context, and fit what it is worth at each.

    The other passages are not relevant, and from the same ranking. Each question is asked with the
    passage at each rank and without it, in random order.
    """
    from tuner.answers.configurations import Configuration
    from tuner.answers.correlating import drawn
    from tuner.answers.positions import Ablation, try_positions, write_discount
    from tuner.cli.answers.tables import print_positions

    if out.suffix.lower() not in (".yaml", ".yml"):
        raise InputError(f"--out {out}: write a file that ends in .yaml")
    ablation = Ablation(passages, _ranks(ranks), twice)
    tried = ablation.tried
    answerer = function_of(answers)
    assembly, _, folder = opened(source, settings)
    given = assembly.baseline if params is None else read_params(params, "--params")
    if given is None:
        raise InputError("give --params, or a `baseline:` section in the configuration")
    configuration = Configuration("params", assembly.choice(given))
    kept = kept or folder / KEPT
    seed = assembly.config.study.seed
    queries = drawn(assembly.tune_queries, sample, seed)
    with showing("answers") as advance:
        found = try_positions(
            assembly,
            configuration,
            queries,
            ablation,
            answerer,
            plan_of(asking, seed),
            kept,
            say=note,
            advance=advance,
        )
    say_asked(found.replies, kept)
    if told := calls_sentence(assembly.ledger.calls):
        note(told)
    record = {
        "answerer": answerer.record(),
        "params": configuration.to_record()["params"],
        "tried": list(tried),
        "twice": twice,
        "seed": seed,
    }
    beside = write_discount(out, found, record)
    if as_json:
        shown = {**found.to_record(), **record, "queries_asked": assembly.ledger.calls}
        echo(json_text({**shown, "yaml": str(out)}, indent=2))
        return
    print_positions(found)
    echo(f"\nweights  {out}\nwhat they rest on  {beside}")


def _ranks(written: str | None) -> tuple[int, ...] | None:
    if written is None:
        return None
    parts = [part.strip() for part in written.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise InputError(f"--ranks {written!r}: write whole numbers from 1 up, such as 1,2,5,10")
    return tuple(map(int, parts))
