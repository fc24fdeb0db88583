"""Ranking metrics of a run given as dictionaries, by trec_eval's conventions."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, repeat

import numpy as np

from tuner.core.errors import InputError, MetricError
from tuner.core.grades import RELEVANT_FROM, GradeScale, OfWhat
from tuner.core.rankings import FloatArray
from tuner.metrics.base import Judged, Undefined, mean_defined
from tuner.metrics.judgements import (
    check_ids,
    check_mapping,
    grade_values,
    ideal_gains,
    padded,
    zero_without_relevant,
)
from tuner.metrics.names import Metric, depth_needed, parse
from tuner.metrics.ordering import Answer, Duplicates, top_documents

_log = logging.getLogger(__name__)


def evaluate_run(
    qrels: Mapping[str, Mapping[str, float]],
    run: Mapping[str, Answer],
    metric: str,
    *,
    duplicates: Duplicates = "error",
    undefined: Undefined = "zero",
    relevant_from: float = RELEVANT_FROM,
    max_grade: float | OfWhat = "query",
) -> dict[str, float]:
    """Score each judged query of a run with one metric, such as ``"ndcg@10"``.

    ``qrels`` is ``{query: {document: grade}}``; ``run`` is ``{query: {document: score}}`` or
    ``{query: [document, ...]}``, best first. Scores are compared as float64, ties by document id
    in descending byte order. Judged queries that the run lacks are 0. Queries without judgements
    are left out and counted in a warning of the log. Lists with a repeated document are an error;
    ``duplicates="first"`` keeps its first place instead.

    A document is relevant from the grade ``relevant_from`` on (trec_eval's ``-l``); where no grade
    of all judgements reaches it, the log warns of the zeros. ``max_grade`` is what
    ``discounted_precision`` and the like divide grades by: the highest of the ``"query"``, of the
    ``"dataset"``, or a number.

    ``undefined`` says what a query without a relevant document is: ``"zero"`` as in
    trec_eval, NaN for ``"skip"``, or an error. Where lower is better (``share_grade0@10``) it is
    NaN under ``"zero"`` too. A query with relevant documents but none of the level that a metric
    such as ``recall_level2@10`` counts is NaN, and under ``"error"`` refused.

    >>> evaluate_run({"q1": {"d1": 1, "d2": 1}}, {"q1": {"d1": 0.3, "d9": 0.7}}, "recall@10")
    {'q1': 0.5}

    Raises:
        MetricError: an unknown metric, a score or grade that is not a number, or a repeated
            document; names the query and the document.
    """
    return evaluate_run_metrics(
        qrels,
        run,
        [metric],
        duplicates=duplicates,
        undefined=undefined,
        relevant_from=relevant_from,
        max_grade=max_grade,
    )[metric]


def evaluate_run_metrics(
    qrels: Mapping[str, Mapping[str, float]],
    run: Mapping[str, Answer],
    metrics: Sequence[str],
    *,
    duplicates: Duplicates = "error",
    undefined: Undefined = "zero",
    relevant_from: float = RELEVANT_FROM,
    max_grade: float | OfWhat = "query",
) -> dict[str, dict[str, float]]:
    """Score each judged query with several metrics: ``{metric: {query: value}}``.

    The same as ``evaluate_run`` for each, but the run is ordered and judged once, and only down
    to the deepest cut-off.
    """
    if isinstance(metrics, str | bytes) or not isinstance(metrics, Collection):
        raise MetricError(f"several metrics are a list of names, such as ['mrr']; got {metrics!r}")
    check_mapping(qrels, "the qrels are", "{query: {document: grade}}")
    check_mapping(run, "the answers of a run are", "{query: {document: score}}")
    for query_id, graded in qrels.items():
        check_mapping(graded, f"query {query_id!r}: the judgements are", "{document: grade}")
    # Before they are keys: a list among them has no hash.
    parsed = {metric.name: metric for metric in map(_ranking_metric, metrics)}
    depth = depth_needed(parsed.values())
    query_ids = list(qrels)
    for query_id in (*qrels, *run):
        check_ids(query_id, (), "the run holds" if query_id in run else "the qrels hold")
    _warn_of_others(qrels, run)
    answers = [run.get(query_id, ()) for query_id in query_ids]
    tops = top_documents(query_ids, answers, depth=depth, duplicates=duplicates)
    judged = _judge(query_ids, list(qrels.values()), tops, depth, _scale(relevant_from, max_grade))
    values = {name: metric.per_query(judged) for name, metric in parsed.items()}
    if undefined == "error":
        for row in values.values():
            mean_defined(row, undefined="error")
    return {
        name: dict(zip(query_ids, _counted(row, parsed[name], judged, undefined), strict=True))
        for name, row in values.items()
    }


def _ranking_metric(name: str) -> Metric:
    metric = parse(name)
    if not metric.is_ranking:
        raise MetricError(f"metric {name!r} needs more than qrels and a run")
    return metric


def _counted(
    values: FloatArray, metric: Metric, judged: Judged, undefined: Undefined
) -> list[float]:
    if undefined == "zero" and not metric.lower_is_better:
        values = zero_without_relevant(values, judged)
    listed: list[float] = values.tolist()
    return listed


def _judge(
    query_ids: Sequence[str],
    judgements: Sequence[Mapping[str, float]],
    tops: Sequence[Sequence[str]],
    depth: int | None,
    scale: GradeScale,
) -> Judged:
    lengths = np.fromiter(map(len, judgements), np.int64, len(judgements))
    grades = grade_values(query_ids, judgements, int(lengths.sum()))
    rows = np.repeat(np.arange(len(query_ids)), lengths)
    if grades.max(initial=0.0) > 0 and (message := scale.problem(judgements)):
        _log.warning("%s; every query scores 0", message)
    relevant_count, ideal = ideal_gains(
        rows, grades, len(query_ids), relevant_from=scale.relevant_from
    )
    lengths = np.fromiter(map(len, tops), np.int64, len(tops))
    looked_up = (
        map(judgement.get, top, repeat(0.0))
        for judgement, top in zip(judgements, tops, strict=True)
    )
    gains = np.fromiter(chain.from_iterable(looked_up), np.float64, int(lengths.sum()))
    gains = padded(np.maximum(gains, 0.0), lengths)
    highest = scale.highest(judgements)
    return Judged(gains, relevant_count, ideal, depth, scale.relevant_from, highest)


def _scale(relevant_from: float, max_grade: float | OfWhat) -> GradeScale:
    try:
        return GradeScale(relevant_from, max_grade)
    except InputError as error:
        raise MetricError(problems=error.problems) from error


def _warn_of_others(qrels: Mapping[str, Mapping[str, float]], run: Mapping[str, Answer]) -> None:
    shared = len(qrels.keys() & run.keys())
    if shared < len(run):
        _log.warning("%d queries of the run have no judgements: left out", len(run) - shared)
    if not shared and qrels and run:
        _log.warning("no query of the run is judged; are these the right qrels?")
