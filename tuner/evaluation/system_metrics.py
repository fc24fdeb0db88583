"""Metrics of the answering itself rather than of relevance: context tokens, latency, graph use."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tuner.core.corpus import Query
from tuner.core.errors import MetricError, TunerError
from tuner.core.index_costs import index_metrics_of
from tuner.core.rankings import NO_DOCUMENT, FloatArray, IntArray, Rankings
from tuner.core.trial import IndexUse, Params
from tuner.metrics.names import parse
from tuner.retrieval.base import Retriever, serve_one

# Serving latency is taken from this many queries, evenly spread: enough for a p95 that tells 20 ms
# from 200 ms, few enough that a trial of the built-in engine stays in the tens of milliseconds.
LATENCY_QUERIES = 20
# Two against each other take more: enough for a p95 with ten queries above it, asked three times
# each so that a pause of the machine does not count as the system's.
PAIRED_QUERIES = 200
PAIRED_REPEATS = 3
# The stage of an evaluation in which they are asked; one that has it has been timed.
LATENCY_PASS = "latency_pass"

Answering = tuple[Retriever, Params]


@dataclass(frozen=True)
class SystemMetric:
    """One figure about answering: how the values of the queries become one number.

    ``highest`` is the largest value, where there is one.
    """

    summary: Callable[[FloatArray], float]
    source: str
    description: str
    highest: float | None = None
    lower_is_better: bool = True


def _mean(values: FloatArray) -> float:
    return float(np.mean(values)) if values.size else float("nan")


def _quantile(share: float) -> Callable[[FloatArray], float]:
    def summary(values: FloatArray) -> float:
        return float(np.quantile(values, share)) if values.size else float("nan")

    return summary


CONTEXT_TOKENS = "context_tokens"
GRAPH_USED = "graph_used"
# The source of what is told of the index as a whole, and not by query.
INDEX = "index"

SYSTEM_METRICS: Mapping[str, SystemMetric] = {
    CONTEXT_TOKENS: SystemMetric(
        _mean, CONTEXT_TOKENS, "mean tokens of the retrieved passages of a query"
    ),
    "context_tokens_p95": SystemMetric(
        _quantile(0.95), CONTEXT_TOKENS, "95th percentile of the tokens of a query"
    ),
    "retrieved": SystemMetric(_mean, "retrieved", "mean number of retrieved passages of a query"),
    GRAPH_USED: SystemMetric(
        _mean,
        GRAPH_USED,
        "share of the queries to which the graph contributed",
        highest=1.0,
        lower_is_better=False,
    ),
    "index_seconds": SystemMetric(_mean, INDEX, "seconds that it took to build the index"),
    "index_mb": SystemMetric(_mean, INDEX, "10^6 bytes that the index takes on the disk"),
    "latency_mean_ms": SystemMetric(_mean, "latency_ms", "mean time to serve one query alone"),
    "latency_p50_ms": SystemMetric(
        _quantile(0.5), "latency_ms", "median time to serve one query alone"
    ),
    "latency_p95_ms": SystemMetric(
        _quantile(0.95), "latency_ms", "95th percentile of the time to serve one query alone"
    ),
}


def is_better_lower(name: str) -> bool:
    """Say whether a metric is a cost, which an objective must not maximise."""
    if name in SYSTEM_METRICS:
        return SYSTEM_METRICS[name].lower_is_better
    try:
        return parse(name).lower_is_better
    except MetricError:  # a metric that a system measured itself
        return False


def of_another_scale(weights: Mapping[str, float]) -> list[str]:
    """Return the metrics of a composite that run from 0 to 100 where others run from 0 to 1."""
    weighted = [name for name, weight in weights.items() if weight]
    large = [name for name in weighted if (_highest(name) or 1.0) > 1.0]
    return large if len(large) < len(weighted) else []


def largest_difference(names: Iterable[str]) -> float | None:
    """Return the most that two means of such metrics, or of a composite of them, can differ by.

    None where that has no bound, as for tokens, or is not known.

    >>> largest_difference(["recall@10", "mrr"]), largest_difference(["context_tokens"])
    (1.0, None)
    """
    highest = [_highest(name) for name in names]
    bounds = [value for value in highest if value is not None]
    return max(bounds, default=None) if len(bounds) == len(highest) else None


def _highest(name: str) -> float | None:
    if name in SYSTEM_METRICS:
        return SYSTEM_METRICS[name].highest
    try:
        return parse(name).highest
    except MetricError:  # a metric that a system measured itself
        return None


def needs_latency(names: Sequence[str]) -> bool:
    """Say whether any of these metrics asks for the single-query pass."""
    return any(
        SYSTEM_METRICS[name].source == "latency_ms" for name in names if name in SYSTEM_METRICS
    )


def is_measured_time(name: str) -> bool:
    """Say whether a metric is read off a clock, so that it is another one another time."""
    return name == "index_seconds" or needs_latency([name])


def tell_of_index(names: Iterable[str]) -> list[str]:
    """Return those of these metrics that tell what building an index took."""
    return [n for n in names if n in SYSTEM_METRICS and SYSTEM_METRICS[n].source == INDEX]


def index_metrics(names: Sequence[str], index: IndexUse | None) -> dict[str, float]:
    """Return those of these metrics that tell what building an index took.

    Raises:
        TunerError: there is one, and the system does not tell of its index.
    """
    wanted = tell_of_index(names)
    if wanted and index is None:
        raise TunerError(
            f"metric {wanted[0]!r} needs a retriever with parameters of its index; leave it out"
        )
    told = {} if index is None else index_metrics_of(index)
    return {name: told[name] for name in wanted}


def observed(rankings: Rankings) -> dict[str, FloatArray]:
    """Return what the rankings tell about each query, by source, each of shape (queries,)."""
    retrieved = np.count_nonzero(rankings.documents != NO_DOCUMENT, axis=1)
    sources = {"retrieved": retrieved.astype(np.float64)}
    if rankings.context_tokens is not None:
        sources[CONTEXT_TOKENS] = np.asarray(rankings.context_tokens, dtype=np.float64)
    if rankings.graph_used is not None:
        sources[GRAPH_USED] = np.asarray(rankings.graph_used, dtype=np.float64)
    return sources


def serving_latency_ms(
    retriever: Retriever, queries: Sequence[Query], params: Params
) -> FloatArray:
    """Time single queries, one after the other, on a monotonic clock.

    Returns:
        milliseconds, shape (at most ``LATENCY_QUERIES``,), for queries evenly spread over the
        batch. A first query is asked ahead of the clock, so that lazy set-up is not counted.
    """
    if not queries:
        return np.zeros(0)
    sample = [queries[index] for index in _spread(len(queries))]
    serve_one(retriever, sample[0], params)
    return np.asarray([served_ms(retriever, query, params) for query in sample])


def timed_queries(queries: int) -> int:
    """Return how many queries it takes to time a batch of so many, the one ahead included.

    >>> timed_queries(203), timed_queries(5)
    (21, 6)
    """
    return 1 + len(_spread(queries)) if queries else 0


def _spread(queries: int, count: int = LATENCY_QUERIES) -> IntArray:
    return np.unique(np.linspace(0, queries - 1, count).astype(np.int64))


def served_ms(
    retriever: Retriever,
    query: Query,
    params: Params,
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Time one query alone, in milliseconds on a monotonic clock: what a single-query latency is.

    Trials and the verdict's guard-rail are timed by this; ``tuner bench`` makes the same call on
    the same clock from its workers, where the time also counts what a query waited.
    """
    begin = clock()
    serve_one(retriever, query, params)
    return (clock() - begin) * 1000.0


def paired_latency_ms(
    queries: Sequence[Query], first: Answering, second: Answering
) -> tuple[FloatArray, FloatArray]:
    """Time two configurations by turns on the same single queries, so that load hits both alike.

    Returns:
        milliseconds of each, shape (at most ``PAIRED_QUERIES``,): the fastest of
        ``PAIRED_REPEATS`` answers to a query.
    """
    spread = _spread(len(queries), PAIRED_QUERIES)
    both = (first, second)
    fastest = np.full((2, len(spread)), np.inf)
    for retriever, params in both:
        serve_one(retriever, queries[0], params)
    for _ in range(PAIRED_REPEATS):
        for place, index in enumerate(spread):
            for side, (retriever, params) in enumerate(both):
                elapsed = served_ms(retriever, queries[index], params)
                fastest[side, place] = min(fastest[side, place], elapsed)
    return fastest[0], fastest[1]
