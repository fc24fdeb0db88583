"""From legs and an objective to lines and their worth: what an exact line search works on."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tuner.core.rankings import NO_DOCUMENT, FloatArray, Rankings
from tuner.core.trial import Scalar
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.free.lines import Lines
from tuner.evaluation.free.sweep import Worth
from tuner.evaluation.objective import Objective, paid_metric
from tuner.evaluation.system_metrics import CONTEXT_TOKENS
from tuner.metrics.names import depth_needed
from tuner.retrieval.computed import full_scores
from tuner.retrieval.free import Mixing


def worth_of(evaluator: Evaluator, objective: Objective) -> Worth | None:
    """Return what rankings are worth by an objective; None where ranks and tokens do not tell.

    They tell where only metrics of rankings are maximised, only context tokens are paid for, and
    nothing is bounded.
    """
    metrics = {metric.name: metric for metric in evaluator.metrics}
    weights = {name: weight for name, weight in objective.weights.items() if weight}
    prices = {name: price for name, price in objective.price.items() if price}
    tells = (
        not objective.constraints
        and evaluator.budget_tokens is None
        and all(name in metrics and metrics[name].is_ranking for name in weights)
        and all(paid_metric(name)[0] == CONTEXT_TOKENS for name in prices)
        and _is_defined_alike(evaluator, weights)
    )
    if not tells:
        return None
    total = math.fsum(weights.values())
    qrels = evaluator.qrels
    return Worth(
        tuple(metrics[name] for name in weights),
        tuple(weight / total for weight in weights.values()),
        math.fsum(price / paid_metric(name)[1] for name, price in prices.items()),
        qrels.relevant_count,
        qrels.ideal,
        qrels.relevant_from,
        qrels.highest,
    )


def _is_defined_alike(evaluator: Evaluator, weights: Mapping[str, float]) -> bool:
    """Say whether the same queries define all metrics: their means then add up query by query."""
    queries = len(evaluator.queries)
    nothing = evaluator.qrels.judge(
        Rankings(
            evaluator.qrels.query_ids,
            evaluator.qrels.document_ids,
            np.full((queries, 1), NO_DOCUMENT),
        )
    )
    found = [
        np.isnan(metric.per_query(nothing))
        for metric in evaluator.metrics
        if metric.name in weights
    ]
    undefined = evaluator.qrels.relevant_count == 0
    return all(bool((one == undefined).all()) for one in found)


def looks_to(worth: Worth) -> int | None:
    """Return the rank below which no place counts; None: all do."""
    return depth_needed(worth.metrics)


def lines_of(
    evaluator: Evaluator,
    mixing: Mixing,
    rankings: Rankings,
    params: Mapping[str, Scalar],
    name: str,
    bounds: tuple[float, float],
    *,
    needs_tokens: bool,
) -> Lines | None:
    """Return the scores as lines in one parameter, the others as ``params`` have them.

    None where they are none, since a document has several passages, or where tokens are paid for
    and nobody knows those of each passage.
    """
    legs = rankings.legs
    if legs is None or legs.has_passages:
        return None
    documents = legs.documents
    is_there = documents != NO_DOCUMENT
    tokens = legs.tokens
    if evaluator.counts_tokens or (tokens is None and needs_tokens):
        if evaluator.passages is None:
            return None
        tokens = evaluator.passages.tokens_of(
            Rankings(rankings.query_ids, rankings.document_ids, documents)
        )
    scores = full_scores(mixing, legs, params).astype(np.float64)

    def shares_at(value: float) -> FloatArray:
        return np.array([mixing.share(leg).of({**params, name: value}) for leg in legs.names])

    intercept: FloatArray = np.tensordot(shares_at(0.0), scores, axes=1)
    slope = np.tensordot(shares_at(1.0), scores, axes=1) - intercept
    low, high = bounds
    if mixing.needs_share:
        # Between the ends: what is left out there is looked at apart.
        is_there &= legs.is_found[shares_at((low + high) / 2) != 0].any(axis=0)
    highest = np.maximum(intercept + low * slope, intercept + high * slope)
    judged = evaluator.qrels.judge(Rankings(rankings.query_ids, rankings.document_ids, documents))
    return Lines(
        intercept,
        slope,
        is_there & (highest > mixing.least),
        judged.gains,
        np.zeros(documents.shape) if tokens is None else tokens,
        low,
        high,
    )
