"""tuner score: finished runs against judgements, from files of either."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.cli._options import note
from tuner.core.errors import InputError

if TYPE_CHECKING:
    from tuner.evaluation.run_files import RunFiles
    from tuner.evaluation.scoring_runs import RunComparison, RunScore, Scores

DEFAULT_METRICS = "ndcg@10,recall@10,mrr@10,map"
_ON_SCREEN = "-"


@click.command("score", short_help="Score run files against judgements, and compare them.")
@click.option("--qrels", required=True, metavar="QRELS", help="The file of judgements.")
@click.option("--run", "runs", multiple=True, metavar="RUN", help="A run file; may be repeated.")
@click.argument("more_runs", nargs=-1, metavar="[RUN]...")
@click.option(
    "--metrics",
    multiple=True,
    default=(DEFAULT_METRICS,),
    show_default=True,
    metavar="NAMES",
    help="Metrics, separated by commas, such as recall@5,10,mrr; the first is the primary one; "
    "may be repeated.",
)
@click.option(
    "--undefined",
    type=click.Choice(["skip", "zero"]),
    default="skip",
    show_default=True,
    help="A query without a relevant document: leave it out, or count 0 as trec_eval does.",
)
@click.option(
    "--compare", is_flag=True, help="Test each further run against the first, query by query."
)
@click.option("--aggregates", is_flag=True, help="Also std, min, quartiles and max.")
@click.option(
    "--by-type",
    metavar="QUERIES",
    help="Also means for each query type and difficulty in QUERIES, such as queries.jsonl.",
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
    qrels: str,
    runs: tuple[str, ...],
    more_runs: tuple[str, ...],
    metrics: tuple[str, ...],
    undefined: str,
    compare: bool,
    aggregates: bool,
    by_type: str | None,
    per_query: str | None,
    as_json: bool,
) -> None:
    """Score run files against the judgements in QRELS; several runs stand side by side.

    \b
    QRELS: TREC qrels; BEIR tsv; JSON {query: {document: grade}}; JSON lines.
    RUN:   TREC run; tsv; JSON {query: {document: score}} or {query: [documents]}; JSON lines.

    The format is found by the content, and either may end in .gz. As in trec_eval -c, a judged
    query that the run lacks counts 0; scores order the documents, ties by document id descending;
    a document is relevant from grade 1 on, and irrelevant when nobody judged it.
    """
    from tuner.cli import _score_tables as tables
    from tuner.evaluation.run_files import read_files, read_groups
    from tuner.evaluation.scoring_runs import compare_with_first, score_runs

    paths = [*runs, *more_runs]
    names = _metric_names(",".join(metrics))
    _check_options(paths, names, compare, per_query)
    files = read_files(qrels, paths)
    scores = score_runs(
        files.grades,
        {run.name: run.answers for run in files.runs},
        names,
        undefined="zero" if undefined == "zero" else "skip",
    )
    groups = {} if by_type is None else read_groups(by_type, scores.query_ids)
    comparisons = compare_with_first(scores) if compare else ()
    for remark in [*files.remarks, *_remarks(scores)]:
        note(f"note: {remark}")
    if per_query is not None and per_query != _ON_SCREEN:
        _write_csv(Path(per_query), scores)
    if as_json:
        record = _record(scores, comparisons, files, groups, undefined, per_query is not None)
        click.echo(json.dumps(record, indent=2, ensure_ascii=False))
        return
    click.echo(_queries_line(scores, undefined))
    tables.print_scores(scores)
    if aggregates:
        click.echo()
        tables.print_spreads(scores)
    for label, members in groups.items():
        click.echo()
        tables.print_groups(scores, label, members)
    if per_query == _ON_SCREEN:
        click.echo()
        tables.print_queries(scores)
    for run in scores.runs[1:] if compare else ():
        compared = [one for one in comparisons if one.run == run.name]
        click.echo(f"\n{run.name} against {scores.runs[0].name}")
        tables.print_comparison(compared)
        click.echo(tables.sentence(compared))
    if per_query is not None and per_query != _ON_SCREEN:
        note(f"every query: {per_query}")


def _metric_names(written: str) -> list[str]:
    """Split at commas; a bare number is a further cut-off, as in ``recall@1,5,20``."""
    names: list[str] = []
    for name in filter(None, map(str.strip, written.split(","))):
        family = names[-1].partition("@")[0] if name.isdecimal() and names else ""
        names.append(f"{family}@{name}" if family else name)
    return list(dict.fromkeys(names))


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


def _queries_line(scores: Scores, undefined: str) -> str:
    without = scores.without_relevant
    text = f"{len(scores.query_ids)} judged queries"
    if without:
        what = "count 0" if undefined == "zero" else "are left out"
        text += f", of which {without} have no relevant document and {what}"
    return f"{text}; means over {scores.defined}, a missing one counting 0 (trec_eval -c)"


def _remarks(scores: Scores) -> list[str]:
    remarks = []
    for run in scores.runs:
        if run.unjudged_share == 1.0:
            remarks.append(
                f"{run.name}: no document in any top 10 is judged; are the document ids of the "
                "same kind in both files?"
            )
        elif run.unjudged_share is None:
            remarks.append(f"{run.name}: nothing was retrieved for any judged query")
    for metric in scores.metrics:
        counts = {run.count(metric) for run in scores.runs}
        if counts != {scores.defined}:
            shown = " or ".join(map(str, sorted(counts)))
            remarks.append(f"{metric} is defined for {shown} queries only")
    return remarks


def _record(
    scores: Scores,
    comparisons: Sequence[RunComparison],
    files: RunFiles,
    groups: Mapping[str, Sequence[str]],
    undefined: str,
    has_queries: bool,
) -> dict[str, Any]:
    from tuner.cli._aggregates import group_record, spread_record
    from tuner.evaluation.scoring_runs import SEED

    runs = [
        {
            "name": run.name,
            "path": file.path,
            "format": file.format,
            "missing_queries": len(run.missing),
            "queries_without_judgements": run.without_judgements,
            "unjudged_at_10": run.unjudged_share,
            "metrics": spread_record(run.values),
            **{f"by_{label}": group_record(run.values, of) for label, of in groups.items()},
            **({"per_query": _by_query(scores, run)} if has_queries else {}),
        }
        for run, file in zip(scores.runs, files.runs, strict=True)
    ]
    record: dict[str, Any] = {
        "qrels": {"path": files.qrels_path, "format": files.qrels_format},
        "queries": len(scores.query_ids),
        "queries_without_relevant": scores.without_relevant,
        "undefined": undefined,
        "defined_queries": scores.defined,
        "runs": runs,
    }
    if comparisons:
        record["seed"] = SEED
        record["comparisons"] = [_comparison(one) for one in comparisons]
    return record


def _by_query(scores: Scores, run: RunScore) -> dict[str, dict[str, float | None]]:
    return {
        query: {metric: _or_null(float(values[row])) for metric, values in run.values.items()}
        for row, query in enumerate(scores.query_ids)
    }


def _or_null(value: float) -> float | None:
    return None if value != value else value


def _comparison(one: RunComparison) -> dict[str, Any]:
    result = one.comparison
    return {
        "run": one.run,
        "against": one.against,
        "metric": one.metric,
        "queries": result.n,
        "difference": result.mean_difference,
        "interval": result.interval,
        "confidence": result.confidence,
        "p_value": result.p_value,
        "p_value_holm": one.adjusted_p,
        "p_value_sign_flip": result.permutation_p,
        "effect_size": result.effect_size,
        "wins": result.wins,
        "ties": result.ties,
        "losses": result.losses,
        "remark": result.remark,
    }


def _write_csv(path: Path, scores: Scores) -> None:
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["query_id", "run", "retrieved", *scores.metrics])
            for row, query in enumerate(scores.query_ids):
                for run in scores.runs:
                    values = (run.values[metric][row] for metric in scores.metrics)
                    # An undefined value is an empty cell; the others keep every digit.
                    shown = ["" if value != value else repr(float(value)) for value in values]
                    writer.writerow([query, run.name, run.retrieved[query], *shown])
    except OSError as error:
        raise InputError(f"--per-query {path}: cannot be written: {error.strerror}") from error
