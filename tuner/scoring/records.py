"""Figures of runs as JSON: how queries spread, and each group; and as a CSV of every query."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuner.core.corpus import Query
from tuner.core.errors import InputError
from tuner.core.files import write_csv
from tuner.core.rankings import FloatArray
from tuner.metrics.base import Aggregate, aggregate, aggregate_by

if TYPE_CHECKING:
    from tuner.scoring.by_people import PeoplesGrades
    from tuner.scoring.run_files import RunFiles
    from tuner.scoring.scores import RunComparison, RunScore, Scores

UNNAMED = "(none)"


def groups(queries: Sequence[Query], by: str) -> list[str]:
    """Return each query's group.

    Raises:
        InputError: no query has one.
    """
    labels = [str(getattr(query, by)) for query in queries]
    if not any(labels):
        raise InputError(f"--by {by}: no query of this data set has a {by}")
    return [label or UNNAMED for label in labels]


def spread_record(per_query: Mapping[str, FloatArray]) -> dict[str, Any]:
    """Return the figures of each metric for JSON."""
    return {name: _record(aggregate(values)) for name, values in per_query.items()}


def group_record(per_query: Mapping[str, FloatArray], labels: Sequence[str]) -> dict[str, Any]:
    """Return the figures of each metric, by group, for JSON."""
    figures = {name: aggregate_by(values, labels) for name, values in per_query.items()}
    return {
        label: {name: _record(figures[name][label]) for name in per_query}
        for label in sorted(set(labels))
    }


def _record(figures: Aggregate) -> dict[str, Any]:
    return {
        "queries": figures.count,
        "undefined": figures.undefined,
        "mean": _number(figures.mean),
        "std": _number(figures.standard_deviation),
        "min": _number(figures.minimum),
        "max": _number(figures.maximum),
        "quantiles": {str(share): _number(value) for share, value in figures.quantiles.items()},
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value  # JSON has no NaN


def score_record(
    scores: Scores,
    comparisons: Sequence[RunComparison],
    files: RunFiles,
    groups: Mapping[str, Sequence[str]],
    undefined: str,
    has_queries: bool,
    people: PeoplesGrades | None = None,
) -> dict[str, Any]:
    """Return everything that was computed, ready for JSON."""
    from tuner.scoring.scores import SEED

    runs = [
        {
            "name": run.name,
            "path": file.path,
            "format": file.format,
            "missing_queries": len(run.missing),
            "queries_without_judgements": run.without_judgements,
            "unjudged_at_10": run.unjudged_share,
            "metrics": spread_record(run.values) | _by_both(run),
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
    if people is not None:
        record["labels"] = people.to_record()
    if comparisons:
        record["seed"] = SEED
        record["comparisons"] = [_comparison(one) for one in comparisons]
    return record


def _by_both(run: RunScore) -> dict[str, Any]:
    """Return the estimates by people's and a judge's grades; a spread is known of neither alone."""
    return (
        {} if run.judged is None else {n: {"mean": _number(run.mean(n))} for n in run.judged.values}
    )


def _by_query(scores: Scores, run: RunScore) -> dict[str, dict[str, float | None]]:
    return {
        query: {metric: _number(float(values[row])) for metric, values in run.values.items()}
        for row, query in enumerate(scores.query_ids)
    }


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
        "judge": None if result.judge is None else asdict(result.judge),
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
