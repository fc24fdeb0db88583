"""tuner compare: two configurations on the same queries, and what to do."""

from __future__ import annotations

from pathlib import Path

import click

from tuner.cli.completion import parameters
from tuner.cli.options import (
    baseline_is_default,
    config_argument,
    have_ready,
    load_shown,
    note,
    read_params,
    set_option,
    showing,
)
from tuner.cli.out import echo
from tuner.core.calls import calls_sentence
from tuner.core.errors import InputError
from tuner.core.json_text import json_text


@click.command("compare", short_help="Compare two configurations on the same queries.")
@config_argument
@click.option(
    "--a",
    "first",
    callback=baseline_is_default,
    metavar="JSON|FILE|RUN_DIR",
    shell_complete=parameters,
    help="What runs today. Default: the configuration's baseline. What is left out of JSON or of a "
    "file is filled up as `tuner evaluate --params` does.",
)
@click.option(
    "--b",
    "second",
    metavar="JSON|FILE|RUN_DIR",
    shell_complete=parameters,
    help="What might replace it: parameters as JSON, a YAML file such as best.yaml, or a run "
    "directory.",
)
@click.option(
    "--queries",
    "part",
    type=click.Choice(["all", "tune", "holdout"]),
    default="holdout",
    show_default=True,
    help="Which queries to compare on. Those that B was tuned on favour B.",
)
@click.option(
    "--answers",
    multiple=True,
    metavar="MODULE:FUNCTION|FILE.jsonl",
    help="Compare answers instead of rankings: a function (context, query) -> answer, called "
    "with the contexts of A and of B. Give it twice for two functions, or for two files "
    "of answers.",
)
@click.option(
    "--similarity",
    "similarities",
    multiple=True,
    metavar="NAME",
    help="How answers are scored: token_f1, exact_match, rouge_l or module:function (answer, "
    "expected) -> number. May be repeated; the first one decides. Default: token_f1 and "
    "exact_match.",
)
@click.option(
    "--keep-answers",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write the answers to FOLDER/a.jsonl and FOLDER/b.jsonl, which --answers can read.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@set_option
def command(
    config: str,
    first: str | None,
    second: str | None,
    part: str,
    answers: tuple[str, ...],
    similarities: tuple[str, ...],
    keep_answers: Path | None,
    as_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Compare B with A by paired tests on the queries of CONFIG: the offline A/B test.

    A is what runs today, B what might replace it. With two files of answers, CONFIG may be a data
    set in place of a configuration, such as builtin:atlas.
    """
    from tuner.cli.pair_table import print_answer_duel, print_duel
    from tuner.run.baseline import origin_of
    from tuner.run.duel import duel
    from tuner.run.folder import remembering_from

    a_given = None if first is None else read_params(first, "--a")
    b_given = None if second is None else read_params(second, "--b")
    if answers:
        from tuner.scoring.answer_sources import AnswerSources

        answered = AnswerSources(answers, (a_given, b_given), keep_answers).duel(
            config,
            lambda: load_shown(config, settings),
            part=part,
            similarities=similarities,
            say=note,
        )
        if as_json:
            echo(json_text(answered.to_record(), indent=2))
            return
        for remark in answered.remarks:
            note(f"note: {remark}")
        print_answer_duel(answered)
        return
    if similarities or keep_answers is not None:
        raise InputError("--similarity and --keep-answers belong to --answers")
    if second is None or b_given is None:
        raise InputError("give --b, what might replace A; or --answers, to compare answers")
    assembly = load_shown(config, settings)
    a = assembly.baseline if a_given is None else assembly.choice(a_given)
    if a is None:
        raise InputError("give --a, or a `baseline:` section in the configuration")
    b = assembly.choice(b_given)
    origin = assembly.baseline_tuned_on if first is None else origin_of(first)
    origins = (origin, origin_of(second))
    assembly = remembering_from(assembly, (first, second))
    have_ready(assembly, a, b)
    with showing("comparison"):
        result = duel(assembly, a, b, part, tuned_on=origins)
    if result.looks is not None:
        note(f"note: {result.looks.told(Path(assembly.config.study.runs_dir))}")
    if as_json:
        record = {**result.to_record(), "queries_asked": assembly.ledger.calls}
        echo(json_text(record, indent=2))
        return
    print_duel(result, assembly.part(part))
    note(calls_sentence(assembly.ledger.calls) or "no query was asked: the run had every answer")
