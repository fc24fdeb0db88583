"""tuner score: finished runs against judgements, from files of either."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.completion import files
from tuner.cli.dataset.options import relevant_from_option
from tuner.cli.options import note
from tuner.cli.out import echo
from tuner.core.errors import InputError
from tuner.core.json_text import json_text

if TYPE_CHECKING:
    from tuner.core.grades import GradeScale
    from tuner.scoring.scores import Scores

DEFAULT_METRICS = "ndcg@10,recall@10,mrr@10,map"
_ON_SCREEN = "-"
_OF_DATASET = ""


@click.command("score", short_help="Score run files against judgements, and compare them.")
@click.option(
    "--qrels", metavar="QRELS", help="The file of judgements. Default: those of --dataset."
)
@click.option(
    "--people",
    metavar="FILE",
    help="A file of people's judgements of some of the queries, drawn at random. Those of --qrels "
    "or --dataset are then a judge's, and count for what they are worth beside people's.",
)
@click.option("--run", "runs", multiple=True, metavar="RUN", help="A run file. May be repeated.")
@click.argument("more_runs", nargs=-1, metavar="[RUN]...", shell_complete=files)
@click.option(
    "--metrics",
    multiple=True,
    default=(DEFAULT_METRICS,),
    show_default=True,
    metavar="NAMES",
    help="Metrics, separated by commas, such as recall@5,10,mrr; share_grades@10 stands for all "
    "grades. The first one is the primary one. May be repeated.",
)
@click.option(
    "--dataset",
    "dataset_path",
    metavar="PATH",
    help="The data set that was searched: its texts for metrics such as coverage and "
    "context_tokens, its evidences for metrics of the graph.",
)
@click.option(
    "--tokenizer",
    metavar="MODULE:FUNCTION",
    help="A function that splits a text into tokens. Default: words, and characters in scripts "
    "without spaces.",
)
@click.option(
    "--discount",
    metavar="NUMBERS",
    help="The weights of the ranks for discounted_precision_fitted@k, such as 1,0.6,0.8.",
)
@relevant_from_option
@click.option(
    "--max-grade",
    default="query",
    show_default=True,
    metavar="query|dataset|GRADE",
    help="The highest grade, for metrics that divide by it: the highest among the query's "
    "judgements, the highest of all, or a number.",
)
@click.option(
    "--undefined",
    type=click.Choice(["skip", "zero"]),
    default="zero",
    show_default=True,
    help="What a query without a relevant document counts: 0 as in trec_eval, or not at all.",
)
@click.option(
    "--compare", is_flag=True, help="Test each further run against the first one, query by query."
)
@click.option(
    "--aggregates", is_flag=True, help="Also show deviation, minimum, quartiles and maximum."
)
@click.option(
    "--by-type",
    is_flag=False,
    flag_value=_OF_DATASET,
    metavar="[QUERIES]",
    help="Also show the means for each query type and difficulty, as given in the file QUERIES or "
    "in the data set.",
)
@click.option(
    "--per-query",
    is_flag=False,
    flag_value=_ON_SCREEN,
    metavar="[FILE.csv]",
    help="Print every query's values, or write them to FILE.csv.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    qrels: str | None,
    people: str | None,
    runs: tuple[str, ...],
    more_runs: tuple[str, ...],
    metrics: tuple[str, ...],
    dataset_path: str | None,
    tokenizer: str | None,
    discount: str | None,
    relevant_from: float,
    max_grade: str,
    undefined: str,
    compare: bool,
    aggregates: bool,
    by_type: str | None,
    per_query: str | None,
    as_json: bool,
) -> None:
    """Score run files by the judgements in QRELS; several runs are shown side by side.

    \b
    QRELS: TREC qrels; BEIR tsv; JSON {query: {document: grade}}; JSON lines.
    RUN:   TREC run; tsv; JSON {query: {document: score}} or {query: [documents]}; JSON lines,
           which may hold the graph's names and paths beside the documents:
           {"query_id": …, "docs": […], "entities": […], "paths": [[[subject, relation, object]]]}

    The format is recognised by the content, and either file may end in .gz. As in trec_eval -c, a
    judged query that the run lacks counts 0. The scores order the documents, and documents with the
    same score are ordered by id, descending. A document is relevant from grade 1 on
    (--relevant-from), and not relevant where nobody judged it.
    """
    from tuner.cli import score_tables as tables
    from tuner.datasets import open_dataset
    from tuner.metrics import listed
    from tuner.scoring.by_people import read_people
    from tuner.scoring.records import score_record, write_scores
    from tuner.scoring.run_files import inputs_of, read_files, read_groups
    from tuner.scoring.scores import (
        compare_with_first,
        remarks_of,
        score_by_both,
        score_runs,
        sentence,
    )

    paths = [*runs, *more_runs]
    names = listed(",".join(metrics))
    _check_options(paths, names, compare, per_query)
    _check_dataset_options(qrels, dataset_path, tokenizer, by_type)
    if people is not None and (aggregates or by_type is not None):
        option = "--aggregates" if aggregates else "--by-type"
        raise InputError(f"{option} is of one kind of labels: leave out {option} or --people")
    scale = _scale(relevant_from, max_grade)
    dataset = None if dataset_path is None else open_dataset(dataset_path, scale=scale)
    files = read_files(qrels, paths, dataset=dataset, relevant_from=relevant_from)
    labels = None
    if people is not None:
        labels = read_people(people, files.grades, relevant_from=relevant_from)
        for line in labels.told(len(files.grades)):
            note(line)
    answers = {run.name: run.answers for run in files.runs}
    given: dict[str, Any] = {
        "undefined": "zero" if undefined == "zero" else "skip",
        "inputs": inputs_of(
            files,
            dataset,
            tokenizer=tokenizer,
            discount=None if discount is None else _numbers(discount),
            scale=scale,
        ),
    }
    if labels is None:
        scores = score_runs(files.grades, answers, names, **given)
    else:
        scores = score_by_both(labels, answers, names, **given)
    source = dataset if by_type == _OF_DATASET else by_type
    groups = {} if source is None else read_groups(source, scores.query_ids)
    comparisons = compare_with_first(scores) if compare else ()
    for remark in [*files.remarks, *remarks_of(scores)]:
        note(f"note: {remark}")
    if per_query is not None and per_query != _ON_SCREEN:
        write_scores(Path(per_query), scores)
    if as_json:
        record = score_record(
            scores, comparisons, files, groups, undefined, per_query is not None, labels
        )
        echo(json_text(record, indent=2))
        return
    echo(_queries_line(scores, undefined))
    tables.print_scores(scores)
    if aggregates:
        echo()
        tables.print_spreads(scores)
    for label, members in groups.items():
        echo()
        tables.print_groups(scores, label, members)
    if per_query == _ON_SCREEN:
        echo()
        tables.print_queries(scores)
    for run in scores.runs[1:] if compare else ():
        compared = [one for one in comparisons if one.run == run.name]
        echo(f"\n{run.name} against {scores.runs[0].name}")
        tables.print_comparison(compared)
        echo(sentence(compared))
    if compare:
        echo(f"\n{tables.legend(len(comparisons))}")
    if per_query is not None and per_query != _ON_SCREEN:
        note(f"every query: {per_query}")


def _scale(relevant_from: float, max_grade: str) -> GradeScale:
    from tuner.core.grades import GradeScale, OfWhat

    named: dict[str, OfWhat] = {"query": "query", "dataset": "dataset"}
    try:
        return GradeScale(relevant_from, named.get(max_grade) or float(max_grade))
    except ValueError as error:
        message = f"--max-grade {max_grade}: write query, dataset or a number"
        raise InputError(message) from error


def _numbers(written: str) -> list[float]:
    try:
        return [float(part) for part in written.split(",")]
    except ValueError as error:
        message = f"--discount {written}: write numbers with commas between, such as 1,0.6,0.8"
        raise InputError(message) from error


def _check_options(
    paths: Sequence[str], metrics: Sequence[str], compare: bool, per_query: str | None
) -> None:
    if not paths:
        raise InputError("give a run: tuner score --qrels QRELS --run RUN")
    if not metrics:
        raise InputError(f"--metrics is empty; write for example {DEFAULT_METRICS}")
    if compare and len(paths) < 2:
        raise InputError("--compare needs at least two runs; the first is what others are held to")
    if per_query not in (None, _ON_SCREEN) and not str(per_query).endswith(".csv"):
        # `--per-query other.run` would otherwise overwrite a run that was meant to be scored.
        raise InputError(f"--per-query {per_query}: the file's name must end in .csv")


def _check_dataset_options(
    qrels: str | None, dataset_path: str | None, tokenizer: str | None, by_type: str | None
) -> None:
    if dataset_path is not None:
        return
    if qrels is None:
        raise InputError("give the judgements by --qrels QRELS, or a data set by --dataset PATH")
    if tokenizer is not None:
        raise InputError("--tokenizer counts the tokens of texts; give them by --dataset PATH")
    if by_type == _OF_DATASET:
        raise InputError("--by-type needs a file such as queries.jsonl, or --dataset PATH")


def _queries_line(scores: Scores, undefined: str) -> str:
    without = scores.without_relevant
    text = f"{len(scores.query_ids)} judged queries"
    rule = "a missing one counting 0 (trec_eval -c)"
    if without:
        have = "has" if without == 1 else "have"
        if undefined == "zero":
            counted = "counts 0" if without == 1 else "count 0"
        else:
            counted = "is left out" if without == 1 else "are left out"
            rule = "a missing one counting 0 (trec_eval -c counts all: --undefined zero)"
        text += f", of which {without} {have} no relevant document and {counted}"
    return f"{text}; means over {scores.defined}, {rule}"
