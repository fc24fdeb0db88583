"""tuner dataset build agree and judge: from annotators' sheets to a judged data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.completion import files
from tuner.cli.dataset.by_judge import grade, judge_options, read_judge, write_record
from tuner.cli.options import FiniteRange, note
from tuner.cli.out import echo
from tuner.core.errors import EXIT_FAILED, InputError
from tuner.core.json_text import json_text
from tuner.core.shown import as_percent

if TYPE_CHECKING:
    from tuner.evalset.adjudication import Comparison

corpus_option = click.option(
    "--corpus",
    "corpus_path",
    metavar="PATH",
    help="A corpus.jsonl, a folder that holds one, or any data set, such as builtin:atlas.",
)
grades_option = click.option(
    "--grades",
    default="0,1,2,3",
    show_default=True,
    metavar="LIST",
    help="The grades that an annotator may give; from 1 a passage is relevant.",
)


@click.command("agree", short_help="Compare two annotators' sheets.")
@click.argument("sheet_a", metavar="SHEET_A", shell_complete=files)
@click.argument("sheet_b", metavar="SHEET_B", shell_complete=files)
@click.option("--out", metavar="FILE", help="Write the sheet to settle disagreements in.")
@click.option(
    "--gate",
    default=0.8,
    show_default=True,
    type=FiniteRange(0, 1),
    help="Stop where Cohen's kappa is below this; 0 never stops.",
)
@click.option(
    "--weights",
    type=click.Choice(["none", "linear", "quadratic"]),
    default="quadratic",
    show_default=True,
    help="How disagreements are weighed: all alike (none), by their distance (linear), or by "
    "its square (quadratic).",
)
@grades_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def agree(
    sheet_a: str,
    sheet_b: str,
    out: str | None,
    gate: float,
    weights: Any,
    grades: str,
    as_json: bool,
) -> None:
    """Check that both sheets are complete, and measure agreement by Cohen's kappa.

    Where kappa is below --gate, the disagreements are listed, no sheet is written, and the exit
    code is 1.
    """
    from tuner.evalset.adjudication import compare_sheets, verdict, write_adjudication

    compared = compare_sheets(sheet_a, sheet_b, weights=weights, grades=read_grades_option(grades))
    has_passed = compared.agreement.passes(gate)
    if has_passed and out is not None:
        write_adjudication(out, compared)
    if as_json:
        echo(json_text(compared.to_record(gate), indent=2))
    else:
        _print_comparison(compared, verdict(compared.agreement, gate))
    if has_passed and out is not None:
        note(f"fill in the blanks of column 'adjudicated': {out}")
    if not has_passed:
        click.get_current_context().exit(EXIT_FAILED)


@click.command("judge", short_help="Make a data set from a sheet that people or a judge graded.")
@click.argument("sheet", metavar="SHEET", shell_complete=files)
@click.option("--queries", required=True, metavar="FILE", help="The queries that were pooled.")
@corpus_option
@grades_option
@click.option("--out", required=True, metavar="FOLDER", help="A new folder, in the BEIR layout.")
@judge_options
def judge(
    sheet: str,
    queries: str,
    corpus_path: str | None,
    grades: str,
    out: str,
    **asked: Any,
) -> None:
    """Write corpus, queries and judgements from SHEET, on which all grades are settled.

    With --by or --url the grades are those of a judge in the place of people: a function of yours,
    or a model. Its answers are kept, so that a build that was stopped goes on where it was. How far
    it is to be trusted is for people's grades of some of the queries to say: `dataset.people` of a
    configuration.
    """
    from tuner.evalset.adjudication import SETTLED, judged_dataset, read_grades
    from tuner.evalset.corpus import open_corpus
    from tuner.evalset.sampling import read_sample
    from tuner.evalset.writing import refuse_full, write_dataset

    if corpus_path is None:
        raise InputError("give --corpus PATH: the corpus that was pooled")
    refuse_full(Path(out))
    allowed = read_grades_option(grades)
    judge = read_judge(allowed, **asked)
    sampled = [item.query for item in read_sample(queries)]
    corpus = open_corpus(corpus_path)  # whatever is wrong with the files shows before money is paid
    graded = None
    if judge is not None:
        graded = grade(sheet, judge, Path(out), asked)
    elif read_grades(sheet, grades=allowed)[1] != SETTLED:
        note("note: one annotator's grades; how far another one would agree is unknown")
    dataset = judged_dataset(
        sheet,
        corpus=corpus,
        queries=sampled,
        grades=allowed,
        name=Path(out).name,
        given=None if graded is None else graded.grades,
    )
    written = write_dataset(dataset, Path(out))
    if judge is not None and graded is not None:
        write_record(Path(out), sheet, judge, graded, asked)
    for warning in written.warnings:
        note(f"note: {warning}")
    found = written.summary()
    echo(
        f"{found.queries} queries, {found.judgements} judgements, {found.relevant} of them "
        f"relevant: {out}"
    )


def read_grades_option(written: str) -> tuple[int, ...]:
    """Read ``--grades 0,1,2,3``."""
    parts = [part.strip() for part in written.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts) or len(set(parts)) < 2:
        raise InputError(f"--grades {written!r}: write at least two whole numbers, such as 0,1,2")
    return tuple(sorted({int(part) for part in parts}))


def _print_comparison(compared: Comparison, sentence: str) -> None:
    """Print the disagreements, the widest first, and the sentence last."""
    from rich.table import Table

    from tuner.cli.console import console

    if compared.disagreements:
        table = Table(box=None, padding=(0, 2, 0, 0))
        for name in ("query_id", "document_id"):  # whole, since one looks them up in the sheets
            widest = max(len(getattr(pair.row, name)) for pair in compared.disagreements)
            table.add_column(name, no_wrap=True, min_width=max(widest, len(name)))
        table.add_column("a")
        table.add_column("b")
        table.add_column("query", no_wrap=True, overflow="ellipsis")
        for pair in compared.disagreements:
            row = pair.row
            cells = (row.query_id, row.document_id, str(pair.first), str(pair.second), row.query)
            table.add_row(*cells)
        console().print(table)
    agreement = compared.agreement
    echo(
        f"{len(compared.disagreements)} of {agreement.pairs} pairs differ "
        f"({as_percent(agreement.same)} are the same)"
    )
    echo(sentence)
