"""Evaluate parameters: retrieve for every judged query, and measure the answers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tuner.core.corpus import Query
from tuner.core.errors import MetricError, Problem, TunerError, did_you_mean
from tuner.core.rankings import FloatArray, Rankings
from tuner.core.trial import Outcome, Params
from tuner.evaluation.system_metrics import (
    SYSTEM_METRICS,
    needs_latency,
    observed,
    serving_latency_ms,
)
from tuner.metrics.aggregate import mean_defined
from tuner.metrics.names import Metric, depth_needed, known_names, parse
from tuner.metrics.qrels import Qrels
from tuner.retrieval.base import Retriever


@dataclass(frozen=True, eq=False)
class Evaluator:
    """A function from parameters to an outcome, over a fixed list of judged queries.

    Means skip queries for which a metric is undefined (none of their judgements is relevant).
    Make it with ``build``; it pickles as small as its retriever does.
    """

    retriever: Retriever
    queries: tuple[Query, ...]
    qrels: Qrels
    ranking_metrics: tuple[Metric, ...]
    system_metrics: tuple[str, ...]

    @classmethod
    def build(
        cls,
        retriever: Retriever,
        queries: Sequence[Query],
        judgements: Mapping[str, Mapping[str, float]],
        metric_names: Sequence[str],
        *,
        document_ids: Sequence[str] = (),
    ) -> Evaluator:
        """Prepare the judgements and choose the metrics; names that repeat count once.

        Raises:
            MetricError: an unknown metric.
        """
        problems = [problem for name in metric_names for problem in metric_problems(name)]
        if problems:
            raise MetricError(problems=problems)
        names = tuple(dict.fromkeys(metric_names))
        return cls(
            retriever,
            tuple(queries),
            Qrels.build(
                judgements, query_ids=[query.id for query in queries], document_ids=document_ids
            ),
            tuple(parse(name) for name in names if name not in SYSTEM_METRICS),
            tuple(name for name in names if name in SYSTEM_METRICS),
        )

    def __call__(self, params: Params) -> Outcome:
        """Evaluate one set of parameters.

        Raises:
            TunerError: the rankings do not fit the queries, or lack what a metric needs.
        """
        begin = time.perf_counter()
        rankings = self.retriever.retrieve(self.queries, params)
        retrieved = time.perf_counter()
        outcome = self.measure(rankings)
        measured = time.perf_counter()
        metrics: dict[str, float] = dict(outcome.metrics)
        seconds = {f"retrieve_{stage}": spent for stage, spent in rankings.seconds.items()}
        seconds |= {"retrieve": retrieved - begin, "measure": measured - retrieved}
        if needs_latency(self.system_metrics):
            latency_ms = serving_latency_ms(self.retriever, self.queries, params)
            metrics |= self._summaries({"latency_ms": latency_ms})
            seconds["latency_pass"] = time.perf_counter() - measured
        seconds["total"] = time.perf_counter() - begin
        return Outcome(metrics=metrics, per_query=outcome.per_query, seconds=seconds)

    def measure(self, rankings: Rankings) -> Outcome:
        """Compute every metric but latency from rankings of exactly these queries."""
        if len(rankings.query_ids) != len(self.queries):
            raise TunerError(
                f"the retriever answered {len(rankings.query_ids)} queries "
                f"instead of the {len(self.queries)} that were asked"
            )
        judged = self.qrels.judge(rankings, depth=depth_needed(self.ranking_metrics))
        per_query: dict[str, FloatArray] = {
            metric.name: metric.per_query(judged) for metric in self.ranking_metrics
        }
        metrics = {name: mean_defined(values)[0] for name, values in per_query.items()}
        sources = observed(rankings)
        for name in self.system_metrics:
            source = SYSTEM_METRICS[name].source
            if source == "latency_ms":
                continue
            if source not in sources:
                raise TunerError(
                    f"metric {name!r} needs the retriever to report {source}; leave the metric out"
                )
            per_query[source] = sources[source]
        metrics |= self._summaries(sources)
        return Outcome(metrics=metrics, per_query=per_query)

    @property
    def defined_queries(self) -> int:
        """Return for how many queries the ranking metrics are defined."""
        return int((self.qrels.relevant_count > 0).sum())

    def _summaries(self, sources: Mapping[str, FloatArray]) -> dict[str, float]:
        return {
            name: SYSTEM_METRICS[name].summary(sources[SYSTEM_METRICS[name].source])
            for name in self.system_metrics
            if SYSTEM_METRICS[name].source in sources
        }


def metric_problems(name: str, key: tuple[str | int, ...] = ()) -> list[Problem]:
    """Return what is wrong with a metric's name, as problems at ``key``; empty if nothing is."""
    if name in SYSTEM_METRICS:
        return []
    try:
        metric = parse(name)
    except MetricError as error:
        closest = did_you_mean(name, [*SYSTEM_METRICS])
        if closest.startswith("; did you mean"):
            return [Problem(f"unknown metric {name!r}{closest}", key=key)]
        return [Problem(problem.message, key=key) for problem in error.problems]
    if not metric.is_ranking:
        known = ", ".join(known_names())
        return [
            Problem(f"metric {name!r} cannot be computed from rankings; known: {known}", key=key)
        ]
    return []


def as_outcome(answer: Any) -> Outcome:
    """Turn what an evaluate function returned into an outcome.

    A number becomes the metric ``objective``; a mapping of numbers becomes the metrics.

    Raises:
        TunerError: anything else.
    """
    if isinstance(answer, Outcome):
        return answer
    if isinstance(answer, Mapping):
        try:
            return Outcome(metrics={str(name): float(value) for name, value in answer.items()})
        except (TypeError, ValueError) as error:
            raise TunerError(
                f"the evaluate function returned a metric that is no number: {error}"
            ) from error
    try:
        return Outcome(metrics={"objective": float(answer)})
    except (TypeError, ValueError) as error:
        raise TunerError(
            f"the evaluate function returned {type(answer).__name__}; return a number, or a "
            'mapping of metrics such as {"recall": 0.7, "mrr": 0.6, "ndcg": 0.5}'
        ) from error
