"""tuner answers correlate: which metric predicts how good the answers are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.answers.opened import KEPT, files_of, function_of, opened
from tuner.cli.answers.options import asking_options, plan_of, sample_option, say_asked
from tuner.cli.completion import configs_and_runs
from tuner.cli.options import note, set_option, showing
from tuner.cli.out import echo
from tuner.core.calls import calls_sentence
from tuner.core.errors import InputError
from tuner.core.json_text import json_text
from tuner.core.shown import counted

if TYPE_CHECKING:
    from tuner.answers.correlating import Asked, Outcome


@click.command("correlate", short_help="See which metric predicts how good the answers are.")
@click.argument("source", metavar="RUN_DIR|CONFIG", shell_complete=configs_and_runs)
@click.option(
    "--answers",
    "answers",
    multiple=True,
    required=True,
    metavar="SOURCE",
    help="A function (query, passages) -> quality, as module:function; or a FILE.jsonl of "
    "query_id, trial and quality, which may be repeated.",
)
@click.option(
    "--configurations",
    "count",
    type=click.IntRange(2, 100),
    default=8,
    show_default=True,
    help="How many configurations are compared: the baseline, the winner, and others far apart.",
)
@sample_option
@click.option(
    "--passages",
    type=click.IntRange(min=1),
    metavar="K",
    help="Answer from the first K passages of each ranking. Default: all that are retrieved.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="A further metric. May be repeated.",
)
@asking_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@set_option
def correlate(
    source: str,
    answers: tuple[str, ...],
    count: int,
    sample: int | None,
    passages: int | None,
    metrics: tuple[str, ...],
    kept: Path | None,
    as_json: bool,
    settings: tuple[str, ...],
    **asking: Any,
) -> None:
    """Compare each metric with the quality of answers, over queries and configurations.

    Of a study in RUN_DIR its trials are compared, without one the baseline and points of the space.
    The weights of a composite are fitted on one half of the queries and tested on the other.
    """
    from tuner.answers.correlating import Asked, correlate_asked, correlate_files
    from tuner.metrics import listed

    files = files_of(answers)
    if files and (kept is not None or sample is not None):
        raise InputError("--kept and --sample are for a function; these are files of qualities")
    answerer = None if files else function_of(answers[0])
    assembly, content, folder = opened(source, settings)
    names = tuple(name for one in metrics for name in listed(one))
    asked = Asked(assembly, content, count, sample, passages, names)
    if answerer is None:
        outcome = correlate_files(asked, files)
    else:
        kept = kept or folder / KEPT
        plan = plan_of(asking, asked.seed)
        with showing("answers") as advance:
            outcome = correlate_asked(asked, answerer, plan, kept, say=note, advance=advance)
        assert outcome.replies is not None
        say_asked(outcome.replies, kept)
    _report(asked, outcome, as_json=as_json)


def _report(asked: Asked, outcome: Outcome, *, as_json: bool) -> None:
    from tuner.cli.answers.tables import print_correlated

    if told := calls_sentence(asked.assembly.ledger.calls):
        note(told)
    if outcome.undefined:
        note(f"note: no answer could define {', '.join(outcome.undefined)}: left out")
    if outcome.left_out:
        note(f"note: {counted(outcome.left_out, 'query', 'queries')} without a quality: left out")
    if as_json:
        record = {**outcome.to_record(), "queries_asked": asked.assembly.ledger.calls}
        echo(json_text(record, indent=2))
        return
    print_correlated(outcome.correlated)
