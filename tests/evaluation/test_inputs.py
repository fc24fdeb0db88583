"""Metrics of graph and text in an evaluation: what they need, and who is asked for it."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tuner.core.corpus import Document, Query
from tuner.core.errors import MetricError, TunerError
from tuner.core.rankings import Rankings
from tuner.datasets import Evidence
from tuner.evaluation.evaluator import Evaluator, metric_problems
from tuner.evaluation.objective import Bounds, Objective
from tuner.metrics import known_names
from tuner.metrics.base import MetricOptions

QUERIES = (Query("q1", "capital of Peru"), Query("q2", "smart boat"))
DOCUMENTS = (
    Document("a", "Lima", "capital of Peru"),  # 4 words
    Document("b", "", "a smart boat"),  # 3 words
)
JUDGEMENTS = {"q1": {"a": 1}, "q2": {"b": 1}}
STEP = ("Lima", "capital of", "Peru")
WEIGHTS = (1.0, 0.25, 0.5, 0.5, 0.5)
EVIDENCES = {"q1": Evidence(("Lima", "Peru"), ((STEP,),))}


@dataclass
class Both:
    """A retriever that answers everything with both documents."""

    knobs: tuple = ()
    fingerprint: str = "both"
    tokens: np.ndarray | None = None
    entities: list | None = None
    paths: list | None = None

    def prepare(self, queries):
        pass

    def retrieve(self, queries, params):
        return Rankings.from_ids(
            [query.id for query in queries],
            [["b", "a"] for _ in queries],
            context_tokens=self.tokens,
            entities=self.entities,
            paths=self.paths,
        )


@dataclass
class Explaining(Both):
    """The same, with names and paths on request only."""

    asked: int = 0

    def explain(self, queries, params, rankings):
        self.asked += 1
        return replace(
            rankings, entities=[["lima"] for _ in queries], paths=[[[STEP]] for _ in queries]
        )


def evaluator(retriever, *names, **options):
    given = {"documents": DOCUMENTS, "evidences": EVIDENCES, **options}
    return Evaluator.build(retriever, QUERIES, JUDGEMENTS, names, **given)


def test_every_known_metric_can_be_named_in_a_configuration():
    names = [name.replace("@k", "@5") for name in known_names()]
    assert [
        p for name in names for p in metric_problems(name, options=MetricOptions(WEIGHTS))
    ] == []


def test_text_metrics_read_title_and_text():
    outcome = evaluator(Both(), "coverage", "density", "redundancy", "context_efficiency@5")({})
    np.testing.assert_allclose(outcome.per_query["coverage"], [1.0, 1.0])
    # q1: 4 of 7 words are those of a; q2: 3 of 7
    np.testing.assert_allclose(outcome.per_query["density"], [4 / 7, 3 / 7])
    assert outcome.metrics["redundancy"] == 0.0
    expected = [100 * (4 / 7 + 1) / 2 * 5 / 7, 100 * (3 / 7 + 1) / 2 * 5 / 7]
    np.testing.assert_allclose(outcome.per_query["context_efficiency@5"], expected)


def test_text_metrics_work_as_constraints_and_prices():
    objective = Objective({"coverage": 1.0}, {"redundancy": 0.5}, {"density": Bounds(min=1.0)})
    outcome = evaluator(Both(), *objective.metric_names)({})
    score = objective.score(outcome.metrics)
    assert score.objective == pytest.approx(1.0)
    # mean density is .5
    assert score.violation == pytest.approx(0.5)


def test_tokens_are_those_the_retriever_reports_unless_a_tokenizer_is_given():
    reported = Both(tokens=np.array([100.0, 200.0]))
    assert evaluator(reported, "context_tokens")({}).metrics["context_tokens"] == 150.0
    assert evaluator(reported, "context_tokens", "coverage")({}).metrics["context_tokens"] == 150.0
    letters = evaluator(reported, "context_tokens", tokenizer=list)({})
    # "Lima capital of Peru" and "a smart boat"
    assert letters.metrics["context_tokens"] == 20.0 + 12.0
    # not reported, but the texts are at hand
    assert evaluator(Both(), "context_tokens", "coverage")({}).metrics["context_tokens"] == 7.0


def test_graph_metrics_ask_the_retriever_to_explain_only_when_one_is_wanted():
    retriever = Explaining()
    evaluator(retriever, "recall@5", "coverage")({})
    assert retriever.asked == 0
    outcome = evaluator(retriever, "entity_recall@5", "path_recall", "graphrag_recall")({})
    assert retriever.asked == 1
    # q2 has no labelled names and paths: its graphrag_recall is that of its documents
    np.testing.assert_allclose(outcome.per_query["entity_recall@5"], [0.5, np.nan])
    np.testing.assert_allclose(outcome.per_query["path_recall"], [1.0, np.nan])
    np.testing.assert_allclose(outcome.per_query["graphrag_recall"], [0.4 + 0.15 + 0.3, 1.0])
    assert outcome.metrics["entity_recall@5"] == 0.5


def test_the_time_of_explaining_is_told_apart():
    assert evaluator(Explaining(), "path_recall")({}).seconds["explain"] > 0.0
    assert "explain" not in evaluator(Explaining(), "coverage")({}).seconds


def test_an_evaluator_of_every_metric_survives_pickling():
    names = [name.replace("@k", "@5") for name in known_names()]
    original = evaluator(Explaining(), *names, options=MetricOptions(WEIGHTS))
    copy = pickle.loads(pickle.dumps(original))
    first, second = original({}), copy({})
    assert first.metrics.keys() == set(names)
    assert first.per_query.keys() == second.per_query.keys()
    for name in names:
        np.testing.assert_array_equal(first.per_query[name], second.per_query[name])


def test_names_and_paths_may_come_with_the_rankings():
    retriever = Both(entities=[["Peru"], []], paths=[[], []])
    outcome = evaluator(retriever, "entity_recall", "path_recall")({})
    assert outcome.metrics == {"entity_recall": 0.5, "path_recall": 0.0}


def test_what_a_metric_lacks_is_said_before_anything_runs():
    with pytest.raises(MetricError, match="'coverage' needs the documents' texts"):
        evaluator(Both(), "coverage", documents=())
    with pytest.raises(MetricError, match="'path_recall' needs evidences"):
        evaluator(Both(), "path_recall", evidences={"q9": EVIDENCES["q1"]})


def test_fitted_weights_of_the_ranks():
    # q1: a at rank 2, q2: b at rank 1; weights 1, .25, sum 1.25
    outcome = evaluator(Both(), "discounted_precision_fitted@2", options=MetricOptions(WEIGHTS))({})
    values = outcome.per_query["discounted_precision_fitted@2"]
    np.testing.assert_allclose(values, [0.25 / 1.25, 1 / 1.25])
    with pytest.raises(MetricError, match=r"'discounted_precision_fitted@6': .* 5 weights for 6"):
        evaluator(Both(), "discounted_precision_fitted@6", options=MetricOptions(WEIGHTS))
    with pytest.raises(MetricError, match=r"context: \{discount: \[1, 0.6, 0.8\]\}"):
        evaluator(Both(), "discounted_precision_fitted@2")


def test_a_retriever_without_a_graph_fails_with_words():
    with pytest.raises(TunerError, match="needs the retriever to report names"):
        evaluator(Both(), "entity_recall@5")({})
