"""Evaluate parameters: retrieve for every judged query, and measure the answers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import numpy as np

from tuner.core.corpus import Document, Query
from tuner.core.errors import MetricError, Problem, TunerError, did_you_mean
from tuner.core.found import FOUND, found_at
from tuner.core.grades import DEFAULT_SCALE, GradeScale
from tuner.core.rankings import FloatArray, Rankings
from tuner.core.trial import IndexUse, Outcome, Params, Scalar
from tuner.datasets.dataset import Evidence
from tuner.evaluation.system_metrics import (
    CONTEXT_TOKENS,
    GRAPH_USED,
    INDEX,
    LATENCY_PASS,
    SYSTEM_METRICS,
    index_metrics,
    needs_latency,
    observed,
    serving_latency_ms,
)
from tuner.metrics.base import NO_OPTIONS, Judged, Kind, MetricOptions, mean_defined
from tuner.metrics.efficiency import JudgedContexts, Tokenizer, default_tokenizer
from tuner.metrics.graph import GraphLabels, JudgedGraph
from tuner.metrics.names import Metric, depth_needed, parse
from tuner.metrics.passages import Passages
from tuner.metrics.qrels import Qrels
from tuner.retrieval.base import Retriever, holding, ready, with_reasons


@dataclass(frozen=True, eq=False)
class Evaluator:
    """A function from parameters to an outcome, over a fixed list of judged queries.

    Means skip queries for which a metric is undefined (none of their judgements is relevant).
    Make it with ``build``.

    Attributes:
        metrics: those that compare the answers with labels or read their texts.
        system_metrics: names in ``SYSTEM_METRICS``.
        labels: names and paths to find, or None where no metric asks for them.
        passages: what the documents' texts say, or None where no metric asks.
        counts_tokens: whether contexts are counted here even if the retriever reports their tokens.
        fixed: parameters that every evaluation takes besides its own.
        budget_tokens: where rankings are cut before they are measured, or None.
        tells_ranks: whether outcomes tell, as ``FOUND``, at which ranks they have what is relevant.
    """

    retriever: Retriever
    queries: tuple[Query, ...]
    qrels: Qrels
    metrics: tuple[Metric, ...]
    system_metrics: tuple[str, ...]
    labels: GraphLabels | None = None
    passages: Passages | None = None
    counts_tokens: bool = False
    fixed: Mapping[str, Scalar] = field(default_factory=dict)
    budget_tokens: int | None = None
    tells_ranks: bool = False

    @classmethod
    def build(
        cls,
        retriever: Retriever,
        queries: Sequence[Query],
        judgements: Mapping[str, Mapping[str, float]],
        metric_names: Sequence[str],
        *,
        document_ids: Sequence[str] = (),
        documents: Sequence[Document] = (),
        evidences: Mapping[str, Evidence] | None = None,
        tokenizer: Tokenizer | None = None,
        options: MetricOptions = NO_OPTIONS,
        fixed: Mapping[str, Scalar] | None = None,
        budget_tokens: int | None = None,
        scale: GradeScale = DEFAULT_SCALE,
        spans: Mapping[str, Mapping[str, tuple[int, int]]] | None = None,
        counts_missing: bool = False,
    ) -> Evaluator:
        """Prepare the judgements and choose the metrics; names that repeat count once.

        ``documents`` are needed by metrics that read texts, ``evidences`` (query id -> labelled
        names and paths) by graph metrics. A ``tokenizer`` counts the tokens of contexts instead of
        the retriever; by default words, and characters where the script has no spaces.
        ``options`` hold weights of one's own. With
        ``budget_tokens`` every ranking is cut where its passages' tokens exceed the budget.
        ``scale`` says from which grade a document is relevant, and ``spans`` what has to be
        retrieved of it, as in ``Qrels.build``. ``counts_missing``: a retriever that
        does not report the tokens of its contexts has them counted.

        Raises:
            MetricError: an unknown metric, or one whose texts, evidences or weights were not given.
        """
        problems = [
            problem for name in metric_names for problem in metric_problems(name, options=options)
        ]
        if problems:
            raise MetricError(problems=problems)
        names = tuple(dict.fromkeys(metric_names))
        metrics = tuple(
            parse(name).with_options(options) for name in names if name not in SYSTEM_METRICS
        )
        system = tuple(name for name in names if name in SYSTEM_METRICS)
        ids = [query.id for query in queries]
        qrels = Qrels.build(
            judgements,
            query_ids=ids,
            document_ids=document_ids,
            scale=scale,
            spans=spans,
        )
        labels = None
        graph_names = [metric.name for metric in metrics if metric.kind == "graph"]
        if graph_names:
            labels = _labels(graph_names[0], ids, evidences or {})
        passages = None
        text_names = [metric.name for metric in metrics if metric.kind == "text"]
        if text_names and not documents:
            raise MetricError(f"metric {text_names[0]!r} needs the documents' texts")
        if budget_tokens is not None and not documents:
            raise MetricError("a budget of tokens needs the documents' texts")
        counts = counts_missing and any(name.startswith(CONTEXT_TOKENS) for name in system)
        reads = text_names or counts or tokenizer is not None or budget_tokens is not None
        if documents and reads:
            passages = Passages.build(
                [document.id for document in documents],
                [f"{document.title} {document.text}".strip() for document in documents],
                [query.text for query in queries],
                tokenizer=tokenizer or default_tokenizer,
            )
        return cls(
            retriever,
            tuple(queries),
            qrels,
            metrics,
            system,
            labels,
            passages,
            counts_tokens=tokenizer is not None,
            fixed=dict(fixed or {}),
            budget_tokens=budget_tokens,
        )

    def __call__(self, params: Params) -> Outcome:
        """Evaluate one set of parameters.

        Raises:
            TunerError: the rankings do not fit the queries, or lack what a metric needs.
        """
        return self.answered(params)[1]

    def answered(self, params: Params) -> tuple[Rankings, Outcome]:
        """Evaluate one set of parameters, and return the answer with its outcome.

        Raises:
            TunerError: as a call does.
        """
        index = self.ready(params)
        begin = time.perf_counter()
        rankings = self.retriever.retrieve(self.queries, {**self.fixed, **params})
        return rankings, self.outcome(rankings, params, index, begin=begin)

    def outcome(
        self, rankings: Rankings, params: Params, index: IndexUse | None, *, begin: float
    ) -> Outcome:
        """Return all metrics of an answer to these queries with these parameters.

        ``begin`` is when it was asked for, by ``time.perf_counter``.

        Raises:
            TunerError: as a call does.
        """
        params = {**self.fixed, **params}
        retrieved = time.perf_counter()
        if self.labels is not None:
            rankings = with_reasons(self.retriever, self.queries, params, rankings)
        explained = time.perf_counter()
        outcome = self.measure(rankings)
        measured = time.perf_counter()
        metrics: dict[str, float] = dict(outcome.metrics)
        seconds = {f"retrieve_{stage}": spent for stage, spent in rankings.seconds.items()}
        seconds |= {"retrieve": retrieved - begin, "measure": measured - explained}
        if self.labels is not None:
            seconds["explain"] = explained - retrieved
        if needs_latency(self.system_metrics):
            metrics |= self.latency(params)
            seconds[LATENCY_PASS] = time.perf_counter() - measured
        metrics |= index_metrics(self.system_metrics, index)
        seconds["total"] = time.perf_counter() - begin
        return Outcome(metrics=metrics, per_query=outcome.per_query, seconds=seconds, index=index)

    def ready(self, params: Params) -> IndexUse | None:
        """Have the index that the parameters describe built; None where there is only one.

        Raises:
            TunerError: it cannot be built.
        """
        return ready(self.retriever, {**self.fixed, **params})

    def holding(self, params: Params) -> AbstractContextManager[IndexUse | None]:
        """Have the index built, and keep it while the block runs; as ``ready``."""
        return holding(self.retriever, {**self.fixed, **params})

    def measure(self, rankings: Rankings) -> Outcome:
        """Compute all metrics but latency's and the index's from rankings of these queries."""
        self._check_queries(rankings)
        if self.passages is not None and self.budget_tokens is not None:
            rankings = self.passages.within(rankings, self.budget_tokens)
        judged = self.qrels.judge(rankings, depth=depth_needed(self.metrics))
        inputs: dict[Kind, Judged | JudgedGraph | JudgedContexts] = {"ranking": judged}
        if self.labels is not None:
            inputs["graph"] = self.labels.judge(judged, rankings.entities, rankings.paths)
        if self.passages is not None and any(metric.kind == "text" for metric in self.metrics):
            inputs["text"] = self.passages.judge(rankings, judged)
        per_query: dict[str, FloatArray] = {
            metric.name: metric.per_query(inputs[metric.kind]) for metric in self.metrics
        }
        sources = observed(rankings)
        if self.passages is not None and (self.counts_tokens or CONTEXT_TOKENS not in sources):
            sources[CONTEXT_TOKENS] = self.passages.context_tokens(rankings)
        for name in self.system_metrics:
            source = SYSTEM_METRICS[name].source
            if source in ("latency_ms", INDEX):
                continue
            if source not in sources:
                raise TunerError(
                    f"metric {name!r} needs the retriever to report {source}; leave the metric out"
                )
            per_query[source] = sources[source]
        if GRAPH_USED in sources:  # always: an answer without the graph must not go unseen
            per_query[GRAPH_USED] = sources[GRAPH_USED]
        if self.tells_ranks:
            per_query[FOUND] = found_at(judged.hits)
        return Outcome(metrics=self.means(per_query), per_query=per_query)

    def means(self, per_query: Mapping[str, FloatArray]) -> dict[str, float]:
        """Return what per-query values amount to, by metric, for any number of queries."""
        means = {
            metric.name: mean_defined(per_query[metric.name])[0]
            for metric in self.metrics
            if metric.name in per_query
        }
        return means | self._summaries(per_query)

    def latency(self, params: Params) -> dict[str, float]:
        """Time queries one by one, and return the metrics of latency."""
        answer_ms = serving_latency_ms(self.retriever, self.queries, {**self.fixed, **params})
        return self._summaries({"latency_ms": answer_ms})

    def _check_queries(self, rankings: Rankings) -> None:
        """Refuse answers to other queries, or in another order: values would be mispaired."""
        if len(rankings.query_ids) != len(self.queries):
            raise TunerError(
                f"the retriever answered {len(rankings.query_ids)} queries "
                f"instead of the {len(self.queries)} that were asked"
            )
        for row, (query, answered) in enumerate(zip(self.queries, rankings.query_ids, strict=True)):
            if query.id != answered:
                raise TunerError(
                    f"row {row} of the retriever's rankings answers query {answered!r}, but "
                    f"{query.id!r} was asked; keep the order of the queries"
                )

    @property
    def defined_queries(self) -> int:
        """Return for how many queries the ranking metrics are defined."""
        return int((self.qrels.relevant_count > 0).sum())

    def _summaries(self, sources: Mapping[str, FloatArray]) -> dict[str, float]:
        return {
            name: SYSTEM_METRICS[name].summary(sources[SYSTEM_METRICS[name].source])
            for name in dict.fromkeys((*self.system_metrics, GRAPH_USED))
            if SYSTEM_METRICS[name].source in sources
        }


def _labels(
    metric_name: str, query_ids: Sequence[str], evidences: Mapping[str, Evidence]
) -> GraphLabels:
    if not any(query in evidences for query in query_ids):
        raise MetricError(
            f"metric {metric_name!r} needs evidences (labelled names and paths), and none of the "
            f"{len(query_ids)} queries has any; leave the metric out"
        )
    return GraphLabels.build(
        query_ids,
        {query: evidence.entities for query, evidence in evidences.items()},
        {query: evidence.paths for query, evidence in evidences.items()},
    )


def undefined_metrics(
    metric_names: Sequence[str],
    queries: Sequence[Query],
    judgements: Mapping[str, Mapping[str, float]],
    evidences: Mapping[str, Evidence],
    *,
    options: MetricOptions = NO_OPTIONS,
    scale: GradeScale = DEFAULT_SCALE,
) -> list[str]:
    """Return the metrics that no answer to these queries could define.

    Such as ``recall_level3@5`` where no document has grade 3: what counts for a metric is in the
    labels alone, so an empty answer is undefined by it just where every answer is.
    """
    parsed = (parse(name) for name in metric_names if name not in SYSTEM_METRICS)
    metrics = [metric.with_options(options) for metric in parsed if metric.kind != "text"]
    if not metrics:
        return []
    ids = [query.id for query in queries]
    qrels = Qrels.build(judgements, query_ids=ids, scale=scale)
    nothing: list[tuple[()]] = [()] * len(ids)
    judged = qrels.judge(Rankings.from_ids(ids, nothing))
    inputs: dict[Kind, Judged | JudgedGraph | JudgedContexts] = {"ranking": judged}
    if graph := [metric.name for metric in metrics if metric.kind == "graph"]:
        inputs["graph"] = _labels(graph[0], ids, evidences).judge(judged, nothing, nothing)
    return [
        metric.name for metric in metrics if np.isnan(metric.per_query(inputs[metric.kind])).all()
    ]


def metric_problems(
    name: str, key: tuple[str | int, ...] = (), *, options: MetricOptions = NO_OPTIONS
) -> list[Problem]:
    """Return what is wrong with a metric's name, as problems at ``key``; empty if nothing is.

    ``options`` hold weights of one's own, where there are any.
    """
    if name in SYSTEM_METRICS:
        return []
    try:
        metric = parse(name)
    except MetricError as error:
        closest = did_you_mean(name, [*SYSTEM_METRICS])
        if closest.startswith("; did you mean"):
            return [Problem(f"unknown metric {name!r}{closest}", key=key)]
        return [Problem(problem.message, key=key) for problem in error.problems]
    try:
        metric.check_options(options)
    except MetricError as error:
        return [Problem(f"metric {name!r}: {error}", key=key)]
    return []
