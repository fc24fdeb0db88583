"""What each configuration retrieves: its metrics by query, and the passages to answer from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tuner.answers.configurations import Configuration
from tuner.core.calls import EVALUATION
from tuner.core.corpus import Document, Query
from tuner.core.errors import InputError
from tuner.core.rankings import FloatArray, Rankings
from tuner.evaluation.evaluator import Evaluator, metric_problems, undefined_metrics
from tuner.evaluation.system_metrics import SYSTEM_METRICS
from tuner.metrics import parse
from tuner.retrieval.base import Measures, with_reasons
from tuner.run.assembly import Assembly

# Where the objective has no metric with a cut-off.
USUAL_DEPTH = 10
# The same metric, by the positions of what was found and without them.
BY_POSITION = (
    ("discounted_precision_binary", "precision"),
    ("ndcg", "recall"),
)
_OTHERS = ("mrr", "context_precision")
_FITTED = "discounted_precision_fitted"


@dataclass(frozen=True, eq=False)
class Retrieved:
    """What one configuration retrieved for each query.

    Attributes:
        values: by metric, shape (queries,), NaN where undefined.
        rankings: as the metrics saw them.
        contexts: the texts of each query's passages, best first.
    """

    configuration: Configuration
    values: dict[str, FloatArray]
    rankings: Rankings
    contexts: tuple[tuple[str, ...], ...]


def check_answers_queries(assembly: Assembly) -> None:
    """Refuse a system that answers no queries, and data without texts.

    Raises:
        InputError: says which.
    """
    if isinstance(assembly.retriever, Measures):
        kind = assembly.config.retriever.kind
        raise InputError(
            f"the retriever {kind!r} measures itself: there are no passages to answer from"
        )


def check_texts(assembly: Assembly) -> None:
    """Refuse data without texts, from which nothing can be answered.

    Raises:
        InputError: there are none.
    """
    if not assembly.dataset.corpus.documents:
        raise InputError(
            f"the data set {assembly.dataset.name!r} has no texts to answer from; give a file of "
            "qualities: --answers FILE.jsonl"
        )


def metrics_to_compare(
    assembly: Assembly, further: Sequence[str], queries: Sequence[Query], depth: int | None
) -> tuple[list[str], list[str]]:
    """Return the metrics of the table, and those left out since no query defines them.

    They are the objective's, ``further`` ones, and at the depth ``depth`` (by default the deepest
    cut-off of the objective) those by position beside those without.

    Raises:
        InputError: one of ``further`` does not exist, or cannot be computed.
    """
    options = assembly.config.context.options
    problems = [
        problem
        for name in further
        for problem in metric_problems(name, ("--metric",), options=options)
    ]
    if problems:
        raise InputError(problems=problems)
    of_objective = [name for name in assembly.plan.objective.weights if is_by_query(name)]
    depth = depth or _depth_of(of_objective)
    families = [*(family for pair in BY_POSITION for family in pair), *_OTHERS]
    if options.discount is not None and not metric_problems(f"{_FITTED}@{depth}", options=options):
        families.append(_FITTED)
    names = list(
        dict.fromkeys([*of_objective, *further, *(f"{family}@{depth}" for family in families)])
    )
    dataset = assembly.dataset
    undefined = undefined_metrics(
        names, queries, dataset.qrels, dataset.evidences, options=options, scale=dataset.scale
    )
    return [name for name in names if name not in undefined], undefined


def pairs_by_position(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return each metric by position with the one without, where both are among the names.

    >>> pairs_by_position(["ndcg@5", "recall@10", "recall@5"])
    [('ndcg@5', 'recall@5')]
    """
    return [
        (name, f"{other}@{cutoff}")
        for family, other in BY_POSITION
        for name in names
        for found, _, cutoff in [name.partition("@")]
        if found == family and f"{other}@{cutoff}" in names
    ]


def is_by_query(name: str) -> bool:
    """Say whether a metric has a value for each query, which a composite can be made of."""
    return name not in SYSTEM_METRICS


def can_be_weighted(name: str) -> bool:
    """Say whether a metric is one that an objective can maximise beside others: from 0 to 1."""
    metric = parse(name)
    return metric.highest == 1.0 and not metric.lower_is_better


def retrieve(
    assembly: Assembly,
    configuration: Configuration,
    queries: Sequence[Query],
    metric_names: Sequence[str],
    passages: int | None = None,
) -> Retrieved:
    """Ask the system all queries, and measure what it retrieved.

    ``passages`` cuts each ranking, as a prompt that has room for so many.

    Raises:
        TunerError: the system does not answer, or as it should not.
    """
    names = tuple(metric_names)
    assembly = replace(
        assembly.counting(EVALUATION), plan=replace(assembly.plan, metric_names=names)
    )
    retriever, params = assembly.answering(configuration.choice)
    evaluator = assembly.evaluator_over(retriever, queries)
    ready_params = {**evaluator.fixed, **params}
    evaluator.ready(params)
    rankings = evaluator.retriever.retrieve(evaluator.queries, ready_params)
    rankings = _as_read(evaluator, rankings, passages)
    if evaluator.labels is not None:
        rankings = with_reasons(retriever, evaluator.queries, ready_params, rankings)
    outcome = replace(evaluator, budget_tokens=None).measure(rankings)
    values = {name: outcome.per_query[name] for name in names}
    documents = {document.id: document for document in assembly.dataset.corpus.documents}
    contexts = tuple(
        tuple(passage_texts(rankings, row, documents).values()) for row in range(len(queries))
    )
    return Retrieved(configuration, values, rankings, contexts)


def _as_read(evaluator: Evaluator, rankings: Rankings, passages: int | None) -> Rankings:
    """Cut rankings where the objective's budget of tokens, or so many passages, end."""
    if evaluator.passages is not None and evaluator.budget_tokens is not None:
        rankings = evaluator.passages.within(rankings, evaluator.budget_tokens)
    return rankings if passages is None else rankings.first(passages)


def passage_texts(
    rankings: Rankings, row: int, documents: Mapping[str, Document]
) -> dict[str, str]:
    """Return the texts of a query's passages by document, best first.

    Each is the title, and what was retrieved of the text.
    """
    found = {}
    for place, id_ in enumerate(rankings.ids(row)):
        document = documents.get(id_)
        if document is None:
            continue
        text = document.text
        if rankings.spans is not None:
            begin, end = (int(one) for one in rankings.spans[row, place])
            text = text[begin:end]
        found[id_] = f"{document.title}\n{text}".strip()
    return found


def stacked(retrieved: Sequence[Retrieved], name: str) -> FloatArray:
    """Return a metric's values, shape (configurations, queries)."""
    return np.stack([one.values[name] for one in retrieved])


def _depth_of(names: Sequence[str]) -> int:
    cutoffs = [metric.cutoff for metric in map(parse, names) if metric.kind != "text"]
    return max((cutoff for cutoff in cutoffs if cutoff is not None), default=USUAL_DEPTH)
