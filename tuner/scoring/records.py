"""What ``tuner score`` hands on: one JSON object, or a CSV of every query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuner.core.errors import InputError
from tuner.core.files import write_csv

if TYPE_CHECKING:
    from tuner.scoring.run_files import RunFiles
    from tuner.scoring.scores import RunComparison, RunScore, Scores


def score_record(
    scores: Scores,
    comparisons: Sequence[RunComparison],
    files: RunFiles,
    groups: Mapping[str, Sequence[str]],
    undefined: str,
    has_queries: bool,
) -> dict[str, Any]:
    """Return everything that was computed, ready for JSON."""
    from tuner.scoring.aggregates import group_record, spread_record
    from tuner.scoring.scores import SEED

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
        "degrees_of_freedom": result.degrees_of_freedom,
        "p_value": result.p_value,
        "p_value_holm": one.adjusted_p,
        "p_value_sign_flip": result.permutation_p,
        "effect_size": result.effect_size,
        "wins": result.wins,
        "ties": result.ties,
        "losses": result.losses,
        "remark": result.remark,
    }


def write_scores(path: Path, scores: Scores) -> None:
    """Write a row for each query and run.

    Raises:
        InputError: the file cannot be written.
    """
    rows: list[tuple[object, ...]] = [("query_id", "run", "retrieved", *scores.metrics)]
    for row, query in enumerate(scores.query_ids):
        for run in scores.runs:
            values = (run.values[metric][row] for metric in scores.metrics)
            # An undefined value is an empty cell; the others keep every digit.
            shown = ["" if value != value else repr(float(value)) for value in values]
            rows.append((query, run.name, run.retrieved[query], *shown))
    try:
        write_csv(path, rows)
    except OSError as error:
        raise InputError(f"--per-query {path}: cannot be written: {error.strerror}") from error
