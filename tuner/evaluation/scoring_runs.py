"""Score finished runs against judgements, and compare them with the first one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tuner.core.errors import InputError, MetricError, Problem
from tuner.core.rankings import FloatArray
from tuner.metrics import evaluate_run_metrics, mean_defined, parse
from tuner.metrics.base import LOWEST_RELEVANT_GRADE
from tuner.metrics.ordering import Answer, top_documents
from tuner.stats import PairedComparison, compare_paired, correct_holm

Qrels = Mapping[str, Mapping[str, float]]

UNJUDGED_DEPTH = 10
ALPHA = 0.05
SEED = 0


@dataclass(frozen=True, eq=False)
class RunScore:
    """One run's values and what is to be known about them.

    Attributes:
        name: what the run is called in tables.
        values: metric -> one value a judged query, shape (queries,), NaN where undefined.
        missing: the judged queries that the run lacks; they count as 0.
        without_judgements: how many queries of the run were left out for lack of judgements.
        unjudged_share: share of the documents in the top 10 that nobody judged, over the judged
            queries; they count as irrelevant. None where nothing was retrieved.
        retrieved: judged query -> number of documents.
    """

    name: str
    values: Mapping[str, FloatArray]
    missing: tuple[str, ...]
    without_judgements: int
    unjudged_share: float | None
    retrieved: Mapping[str, int]

    def mean(self, metric: str) -> float:
        """Return the mean over the queries for which the metric is defined."""
        return mean_defined(self.values[metric])[0]


@dataclass(frozen=True, eq=False)
class Scores:
    """Several runs on the same judged queries.

    ``defined`` counts the queries that the means stand on.
    """

    query_ids: tuple[str, ...]
    metrics: tuple[str, ...]
    defined: int
    without_relevant: int
    runs: tuple[RunScore, ...]


@dataclass(frozen=True)
class Spread:
    """How a metric's values are spread over the defined queries; quantiles are linear (type 7).

    ``standard_deviation`` has ddof = 1 and is None for fewer than two queries.
    """

    mean: float
    standard_deviation: float | None
    minimum: float
    quantile_25: float
    median: float
    quantile_75: float
    maximum: float


@dataclass(frozen=True)
class RunComparison:
    """One later run against the first, on one metric.

    ``adjusted_p`` is the t-test's p-value after Holm's correction for all runs and metrics that
    were compared; None where no test was possible.
    """

    run: str
    against: str
    metric: str
    comparison: PairedComparison
    adjusted_p: float | None

    @property
    def is_significant(self) -> bool:
        """Return whether the difference stands at 5 % after the correction."""
        return self.adjusted_p is not None and self.adjusted_p < ALPHA


def score_runs(
    qrels: Qrels,
    runs: Mapping[str, Mapping[str, Answer]],
    metrics: Sequence[str],
    *,
    undefined: Literal["skip", "zero"] = "skip",
) -> Scores:
    """Score every run on all judged queries, as ``trec_eval -c`` does.

    A judged query that a run lacks is 0, whatever the metric. A query without a relevant document
    is undefined and left out of the means; with ``undefined="zero"`` it counts as 0, which is what
    trec_eval prints.

    >>> run = {"q1": {"d1": 0.9, "d2": 0.1}}
    >>> scores = score_runs({"q1": {"d2": 1}, "q2": {"d3": 1}}, {"mine": run}, ["mrr@10"])
    >>> scores.runs[0].mean("mrr@10"), scores.runs[0].missing  # (1/2 + 0) / 2
    (0.25, ('q2',))

    Raises:
        InputError: an unknown metric, or a run that shares no query with the judgements.
    """
    _check_metrics(metrics)
    query_ids = tuple(qrels)
    is_defined = np.array(
        [
            any(grade >= LOWEST_RELEVANT_GRADE for grade in judged.values())
            for judged in qrels.values()
        ]
    )
    _check_overlap(qrels, runs)
    scored = []
    for name, run in runs.items():
        values = _values(qrels, run, metrics)
        if undefined == "skip":
            values = {metric: np.where(is_defined, row, np.nan) for metric, row in values.items()}
        scored.append(
            RunScore(
                name=name,
                values=values,
                missing=tuple(query for query in query_ids if query not in run),
                without_judgements=len(run.keys() - qrels.keys()),
                unjudged_share=_unjudged_share(qrels, run),
                retrieved={query: len(run.get(query, ())) for query in query_ids},
            )
        )
    has_relevant = int(is_defined.sum())
    return Scores(
        query_ids=query_ids,
        metrics=tuple(metrics),
        defined=has_relevant if undefined == "skip" else len(query_ids),
        without_relevant=len(query_ids) - has_relevant,
        runs=tuple(scored),
    )


def compare_with_first(scores: Scores) -> tuple[RunComparison, ...]:
    """Compare each later run with the first, query by query, on every metric.

    The p-values of the paired t-tests are corrected together by Holm's method.
    """
    first, *others = scores.runs
    pairs = [(run, metric) for run in others for metric in scores.metrics]
    compared = [
        compare_paired(run.values[metric], first.values[metric], seed=SEED, resamples=0)
        for run, metric in pairs
    ]
    adjusted = correct_holm([comparison.p_value for comparison in compared])
    return tuple(
        RunComparison(
            run=run.name,
            against=first.name,
            metric=metric,
            comparison=comparison,
            adjusted_p=None if np.isnan(p_value) else float(p_value),
        )
        for (run, metric), comparison, p_value in zip(pairs, compared, adjusted, strict=True)
    )


def group_means(
    scores: Scores, groups: Sequence[str]
) -> dict[str, tuple[int, dict[str, dict[str, float]]]]:
    """Return group -> (number of defined queries, metric -> run -> mean), in alphabetical order.

    ``groups[i]`` is the group of query i. The mean of a group without a defined query is NaN.
    """
    labels = np.asarray(groups)
    found = {}
    for group in sorted(set(groups)):
        means: dict[str, dict[str, float]] = {}
        count = 0
        for metric in scores.metrics:
            for run in scores.runs:
                mean, count = mean_defined(run.values[metric][labels == group])
                means.setdefault(metric, {})[run.name] = mean
        found[group] = (count, means)
    return found


def spread(values: FloatArray) -> Spread:
    """Describe the defined values, of which there must be at least one.

    >>> spread(np.array([0.0, 0.5, 1.0, float("nan")])).quantile_75
    0.75
    """
    defined = values[~np.isnan(values)]
    low, first, middle, third, high = np.quantile(defined, [0.0, 0.25, 0.5, 0.75, 1.0]).tolist()
    return Spread(
        mean=float(defined.mean()),
        standard_deviation=float(defined.std(ddof=1)) if defined.size > 1 else None,
        minimum=low,
        quantile_25=first,
        median=middle,
        quantile_75=third,
        maximum=high,
    )


def _check_metrics(metrics: Sequence[str]) -> None:
    problems: list[Problem] = []
    for name in metrics:
        try:
            if not parse(name).is_ranking:
                problems.append(Problem(f"metric {name!r} needs more than judgements and a run"))
        except MetricError as error:
            problems += error.problems
    if problems:
        raise MetricError(problems=problems)


def _check_overlap(qrels: Qrels, runs: Mapping[str, Mapping[str, Answer]]) -> None:
    problems = [
        Problem(
            f"the run {name!r} shares no query with the judgements, so there is nothing to score: "
            f"its queries are {_some(run)}; the judgements' are {_some(qrels)}"
        )
        for name, run in runs.items()
        if not qrels.keys() & run.keys()
    ]
    if problems:
        raise InputError(problems=problems)


def _some(ids: Mapping[str, object]) -> str:
    shown = ", ".join(repr(id_) for id_, _ in zip(ids, range(3), strict=False))
    return f"{shown}, …" if len(ids) > 3 else shown


def _values(
    qrels: Qrels, run: Mapping[str, Answer], metrics: Sequence[str]
) -> dict[str, FloatArray]:
    # Without the others, which evaluate_run would only count in a warning of the log.
    judged = {query: run[query] for query in qrels if query in run}
    by_metric = evaluate_run_metrics(qrels, judged, metrics)
    return {
        metric: np.fromiter(by_query.values(), np.float64, len(by_query))
        for metric, by_query in by_metric.items()
    }


def _unjudged_share(qrels: Qrels, run: Mapping[str, Answer]) -> float | None:
    query_ids = [query for query in qrels if query in run]
    tops = top_documents(query_ids, [run[query] for query in query_ids], depth=UNJUDGED_DEPTH)
    retrieved = sum(len(top) for top in tops)
    unjudged = sum(
        document not in qrels[query]
        for query, top in zip(query_ids, tops, strict=True)
        for document in top
    )
    return unjudged / retrieved if retrieved else None
