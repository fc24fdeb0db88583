"""tuner compare: two configurations on the same queries, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.cli.options import config_argument, load_shown, note, set_option, showing
from tuner.cli.out import echo
from tuner.cli.params import read_params
from tuner.core.calls import calls_sentence
from tuner.core.errors import InputError
from tuner.core.json_text import json_text

if TYPE_CHECKING:
    from tuner.core.corpus import Query
    from tuner.run.assembly import Assembly
    from tuner.run.judge import Duel
    from tuner.verdict.tuned_on import TunedOn


@click.command("compare", short_help="Compare two configurations on the same queries.")
@config_argument
@click.option(
    "--a",
    "first",
    metavar="JSON|FILE|RUN_DIR",
    help="What runs today. Default: the configuration's baseline. What is left out of JSON or of a "
    "file is filled up as `tuner evaluate --params` does.",
)
@click.option(
    "--b",
    "second",
    metavar="JSON|FILE|RUN_DIR",
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
    from tuner.run.judge import duel

    if answers:
        from tuner.cli.compare_answers import compare

        compare(
            config, answers, first=first, second=second, part=part, similarities=similarities,
            keep=keep_answers, settings=settings, as_json=as_json,
        )  # fmt: skip
        return
    if similarities or keep_answers is not None:
        raise InputError("--similarity and --keep-answers belong to --answers")
    if second is None:
        raise InputError("give --b, what might replace A; or --answers, to compare answers")
    assembly = load_shown(config, settings)
    a = assembly.baseline if first is None else assembly.choice(read_params(first, "--a"))
    if a is None:
        raise InputError("give --a, or a `baseline:` section in the configuration")
    b = assembly.choice(read_params(second, "--b"))
    origin = assembly.baseline_tuned_on if first is None else _tuned_on(first)
    origins = (origin, _tuned_on(second))
    assembly = _remembering(assembly, (first, second))
    with showing("comparison"):
        result = duel(assembly, a, b, part, tuned_on=origins)
    if result.looks is not None:
        note(f"note: {result.looks.told(Path(assembly.config.study.runs_dir))}")
    if as_json:
        record = {**result.to_record(), "queries_asked": dict(assembly.calls)}
        echo(json_text(record, indent=2))
        return
    _print(result, assembly.part(part))
    note(calls_sentence(assembly.calls) or "no query was asked: the run had every answer")


def _remembering(assembly: Assembly, written: Sequence[str | None]) -> Assembly:
    """Let what the run of a run directory asked be taken from there, and not be asked again."""
    from tuner.core.run_files import BEST_FILE, JOURNAL_FILE
    from tuner.run.session import remembering

    for one in written:
        if one is None or one.lstrip()[:1] in ("{", "["):
            continue
        path = Path(one).expanduser()
        run_dir = path.parent if path.name == BEST_FILE else path
        if (run_dir / JOURNAL_FILE).is_file():
            return remembering(assembly, run_dir)
    return assembly


def _tuned_on(written: str) -> TunedOn | None:
    """Return what the configuration in a file was tuned on; None where none says so."""
    from tuner.run.baseline import origin_of

    return None if written.lstrip().startswith("{") else origin_of(written)


def _print(result: Duel, queries: Sequence[Query]) -> None:
    from tuner.cli.pair_table import CHANGED_QUERIES, print_pairs
    from tuner.cli.tables import print_guardrails, print_types, shown_params

    verdict = result.verdict
    echo(f"A  {shown_params(verdict.baseline)}")
    echo(f"B  {shown_params(verdict.winner)}")
    print_pairs(result.metrics)
    echo(
        "p: paired t-test with degrees of freedom by the kurtosis of the differences; p (Holm): "
        f"corrected for {len(result.metrics)} metrics."
    )
    for remark in result.remarks:
        echo(f"\n{remark[0].upper()}{remark[1:]}", bold=True)
    echo(f"\n{verdict.sentence}", bold=True)
    print_types(verdict.to_record())
    print_guardrails(verdict.to_record()["guardrails"])
    for title, rows in (("gained most", result.gained), ("lost most", result.lost)):
        if rows:
            echo(f"\n{title}")
        for row, change in rows[:CHANGED_QUERIES]:
            echo(f"  {change:+.3f}  {queries[row].id}  {queries[row].text}")
