"""What metrics beyond judgements and rankings read: passages' texts, labels, and a run's graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tuner.core.corpus import Document
from tuner.core.errors import MetricError, Problem, refuse
from tuner.core.grades import DEFAULT_SCALE, GradeScale
from tuner.core.rankings import FloatArray, Rankings, RelationPath
from tuner.datasets.dataset import Evidence
from tuner.evaluation.system_metrics import CONTEXT_TOKENS, SYSTEM_METRICS, is_better_lower
from tuner.metrics import Metric, Qrels, depth_needed
from tuner.metrics.base import NO_OPTIONS, Judged, Kind, MetricOptions
from tuner.metrics.efficiency import JudgedContexts, Tokenizer, default_tokenizer
from tuner.metrics.graph import GraphLabels, JudgedGraph
from tuner.metrics.ordering import Answer, top_documents
from tuner.metrics.passages import Passages

_ELSEWHERE = {
    "context_tokens_p95": "is no mean: write context_tokens, and see --aggregates",
    "retrieved": "is a column of --per-query FILE.csv",
}
# Which parts of a run's graph a metric compares; of any other graph metric, both.
_COMPARED = {"entity_recall": ("entities",), "path_recall": ("paths",), "route_recall": ("paths",)}
_ROW = '{"query_id": …, "docs": […], "entities": [names], "paths": [[[subject, relation, object]]]}'


@dataclass(frozen=True)
class Told:
    """What a run tells of its graph: query id -> names, and paths; None where it tells nothing."""

    entities: Mapping[str, Sequence[str]] | None = None
    paths: Mapping[str, Sequence[RelationPath]] | None = None


@dataclass(frozen=True, eq=False)
class ScoringInputs:
    """What is there to score runs with, besides judgements.

    Attributes:
        documents: those of the corpus, or none.
        query_texts: query id -> text.
        evidences: query id -> labelled names and paths.
        told: run -> what it tells of its graph.
        tokenizer: counts the tokens of contexts.
        options: weights of one's own.
        scale: from which grade a document is relevant, and how high grades go.
    """

    documents: Sequence[Document] = ()
    query_texts: Mapping[str, str] = field(default_factory=dict)
    evidences: Mapping[str, Evidence] = field(default_factory=dict)
    told: Mapping[str, Told] = field(default_factory=dict)
    tokenizer: Tokenizer = default_tokenizer
    options: MetricOptions = NO_OPTIONS
    scale: GradeScale = DEFAULT_SCALE

    def problems(self, metric: Metric, query_ids: Sequence[str]) -> list[Problem]:
        """Return what a metric lacks on these queries; each says which option brings it."""
        name = metric.name
        try:
            metric.check_options(self.options)
        except MetricError as error:
            missing = self.options.discount is None
            reason = "needs weights of the ranks" if missing else error
            return [Problem(f"metric {name!r}: {reason}; write for example --discount 1,0.6,0.8")]
        if metric.kind == "text" and not self.documents:
            what = "texts of the passages and the queries"
            return [Problem(f"metric {name!r} needs the {what}; give them by --dataset PATH")]
        if metric.kind == "text":
            return self._without_text(name, query_ids)
        if metric.kind == "graph" and not self.evidences.keys() & set(query_ids):
            where = "the data set has none for the judged queries" if self.documents else ""
            way_out = where or "give a data set that has them by --dataset PATH"
            what = "labelled names and paths (evidences)"
            return [Problem(f"metric {name!r} needs {what}; {way_out}")]
        return self._untold(metric) if metric.kind == "graph" else []

    def _without_text(self, name: str, query_ids: Sequence[str]) -> list[Problem]:
        lacking = [query for query in query_ids if query not in self.query_texts]
        if not lacking:
            return []
        message = (
            f"metric {name!r} needs every judged query's text, and the data set has no "
            f"{lacking[0]!r}"
        )
        others = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        return [Problem(message + others)]

    def _untold(self, metric: Metric) -> list[Problem]:
        problems = []
        for run, told in self.told.items():
            lacking = [
                part
                for part in _COMPARED.get(metric.family, ("entities", "paths"))
                if getattr(told, part) is None
            ]
            if lacking:
                message = f"the run {run!r} tells no {' and no '.join(lacking)}; write them as"
                problems.append(Problem(f"metric {metric.name!r}: {message} JSON lines {_ROW}"))
        return problems


@dataclass(frozen=True, eq=False)
class Scorer:
    """Scores runs by a list of metrics; made once for all runs. Make it with ``build``."""

    qrels: Qrels
    metrics: Mapping[str, Metric]
    labels: GraphLabels | None
    passages: Passages | None

    @classmethod
    def build(
        cls,
        qrels: Qrels,
        metrics: Mapping[str, Metric],
        inputs: ScoringInputs,
        runs: Mapping[str, Mapping[str, Answer]],
    ) -> Scorer:
        """Prepare what the metrics read.

        Raises:
            InputError: a run retrieved documents that the corpus lacks, where texts are read.
            MetricError: the tokenizer fails on a text.
        """
        kinds = {metric.kind for metric in metrics.values()}
        ids = qrels.query_ids
        labels = passages = None
        if "graph" in kinds:
            labels = GraphLabels.build(
                ids,
                {query: evidence.entities for query, evidence in inputs.evidences.items()},
                {query: evidence.paths for query, evidence in inputs.evidences.items()},
            )
        if "text" in kinds:
            # Texts that nobody retrieved need not be read.
            documents = _retrieved(inputs.documents, ids, runs)
            passages = Passages.build(
                [document.id for document in documents],
                [f"{document.title} {document.text}".strip() for document in documents],
                [inputs.query_texts[query] for query in ids],
                tokenizer=inputs.tokenizer,
            )
        bound = {name: metric.with_options(inputs.options) for name, metric in metrics.items()}
        return cls(qrels, bound, labels, passages)

    def __call__(self, run: Mapping[str, Answer], told: Told) -> dict[str, FloatArray]:
        """Return metric -> one value a judged query; 0 where the run lacks the query."""
        ids = self.qrels.query_ids
        depth = depth_needed(self.metrics.values())
        tops = top_documents(ids, [run.get(query, ()) for query in ids], depth=depth)
        rankings = Rankings.from_ids(ids, tops)
        judged = self.qrels.judge(rankings, depth=depth)
        read: dict[Kind, Judged | JudgedGraph | JudgedContexts] = {"ranking": judged}
        if self.labels is not None:
            entities = None if told.entities is None else [told.entities.get(q, ()) for q in ids]
            paths = None if told.paths is None else [told.paths.get(q, ()) for q in ids]
            read["graph"] = self.labels.judge(judged, entities, paths)
        if self.passages is not None:
            read["text"] = self.passages.judge(rankings, judged)
        is_missing = np.array([query not in run for query in ids], dtype=np.bool_)
        values = {}
        for name, metric in self.metrics.items():
            row = metric.per_query(read[metric.kind])
            # No answer is within every budget, but it is not to be rewarded for that.
            is_zero = is_missing & ~np.isnan(row) & (not is_better_lower(name))
            values[name] = np.where(is_zero, 0.0, row)
        return values


def answering_metric(name: str) -> Metric | None:
    """Return a metric of the answering that run files tell, or None for another name.

    Raises:
        MetricError: a metric of the answering that run files do not tell; what does.
    """
    if name == CONTEXT_TOKENS:
        return Metric(name, None, _tokens, kind="text")
    if name in SYSTEM_METRICS:
        reason = _ELSEWHERE.get(name, "is measured while a system answers: see tuner evaluate")
        raise MetricError(f"metric {name!r} {reason}")
    return None


def _tokens(judged: JudgedContexts) -> FloatArray:
    return judged.tokens


def _retrieved(
    documents: Sequence[Document],
    query_ids: Sequence[str],
    runs: Mapping[str, Mapping[str, Answer]],
) -> list[Document]:
    by_id = {document.id: document for document in documents}
    wanted: dict[str, None] = {}
    problems = []
    for name, run in runs.items():
        ids = dict.fromkeys(document for query in query_ids for document in run.get(query, ()))
        lacking = [id_ for id_ in ids if id_ not in by_id]
        if lacking:
            message = (
                f"the data set lacks {len(lacking):,} of the {len(ids):,} documents that the run "
                f"{name!r} retrieved, such as {lacking[0]!r}, so their texts cannot be measured"
            )
            problems.append(Problem(message))
        wanted |= ids
    refuse(problems)
    return [by_id[id_] for id_ in wanted]
