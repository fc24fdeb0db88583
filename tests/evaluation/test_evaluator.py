"""Evaluation of a retriever that is a plain function."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
import pytest

from tuner.core.corpus import Query
from tuner.core.errors import MetricError, TunerError
from tuner.core.rankings import Rankings
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.self_measured import as_outcome

QUERIES = (Query("q1", "one"), Query("q2", "two"), Query("q3", "three"))
JUDGEMENTS = {"q1": {"a": 1, "b": 1}, "q2": {"c": 1}, "q3": {"d": 0}}
ANSWERS = {"q1": ["a", "x", "b"], "q2": ["x", "c"], "q3": ["d"]}


@dataclass
class Answers:
    """A retriever that gives the same lists whatever it is asked for."""

    knobs: tuple = ()
    fingerprint: str = "answers"
    reports_tokens: bool = True

    def prepare(self, queries):
        pass

    def retrieve(self, queries, params):
        tokens = np.array([10.0 * len(ANSWERS[query.id]) for query in queries])
        return Rankings.from_ids(
            [query.id for query in queries],
            [ANSWERS[query.id][: params["top_k"]] for query in queries],
            context_tokens=tokens if self.reports_tokens else None,
            seconds={"text": 0.25},
        )


def evaluator(*names, **options):
    return Evaluator.build(Answers(**options), QUERIES, JUDGEMENTS, names)


def test_metrics_per_query_and_mean_over_the_defined():
    outcome = evaluator("recall@2", "mrr@10", "context_tokens")({"top_k": 10})
    # recall@2: q1 finds a of {a, b}; q2 finds c; q3 has no relevant document: undefined
    np.testing.assert_array_equal(outcome.per_query["recall@2"], [0.5, 1.0, np.nan])
    np.testing.assert_array_equal(outcome.per_query["mrr@10"], [1.0, 0.5, np.nan])
    assert outcome.metrics["recall@2"] == pytest.approx(0.75)
    assert outcome.metrics["mrr@10"] == pytest.approx(0.75)
    # tokens: (30 + 20 + 10) / 3
    assert outcome.metrics["context_tokens"] == pytest.approx(20.0)
    assert outcome.seconds["retrieve_text"] == 0.25
    assert outcome.seconds["total"] >= outcome.seconds["retrieve"]


def test_the_number_of_defined_queries_is_known():
    assert evaluator("recall@2").defined_queries == 2


def test_parameters_reach_the_retriever():
    assert evaluator("recall@2")({"top_k": 1}).metrics["recall@2"] == pytest.approx(0.25)


def test_latency_is_measured_only_when_asked_for():
    assert "latency_pass" not in evaluator("recall@2")({"top_k": 2}).seconds
    outcome = evaluator("recall@2", "latency_p95_ms")({"top_k": 2})
    assert outcome.metrics["latency_p95_ms"] >= 0.0
    assert outcome.seconds["latency_pass"] > 0.0


def test_unknown_metrics_are_named_all_at_once():
    with pytest.raises(MetricError) as caught:
        evaluator("ndgc@10", "recall@0", "latency_p59_ms")
    text = str(caught.value)
    assert "did you mean 'ndcg@10'" in text
    assert "recall@0" in text
    assert "did you mean 'latency_p95_ms'" in text


def test_a_metric_that_the_retriever_cannot_give_fails_with_words():
    with pytest.raises(TunerError, match="needs the retriever to report context_tokens"):
        evaluator("context_tokens", reports_tokens=False)({"top_k": 2})


def test_a_retriever_that_answers_too_few_queries_fails_with_words():
    few = evaluator("recall@2")
    rankings = Rankings.from_ids(["q1"], [["a"]])
    with pytest.raises(TunerError, match="answered 1 queries instead of the 3"):
        few.measure(rankings)


@pytest.mark.parametrize("ids", [("q1", "q1", "q1"), ("q3", "q2", "q1")])
def test_answers_to_other_queries_or_in_another_order_are_refused(ids):
    rankings = Rankings.from_ids(ids, [["a"], ["c"], ["d"]])
    with pytest.raises(TunerError, match="was asked; keep the order of the queries"):
        evaluator("recall@2").measure(rankings)


def test_fixed_parameters_reach_the_retriever_and_give_way_to_the_trials():
    fixed = Evaluator.build(
        Answers(), QUERIES, JUDGEMENTS, ["recall@2"], fixed={"top_k": 1}
    )  # fmt: skip
    assert fixed({}).metrics["recall@2"] == pytest.approx(0.25)
    assert fixed({"top_k": 10}).metrics["recall@2"] == pytest.approx(0.75)


def test_what_evaluate_functions_may_return():
    assert as_outcome(0.5).metrics == {"objective": 0.5}
    assert as_outcome({"recall": 1, "mrr": 0.5}).metrics == {"recall": 1.0, "mrr": 0.5}
    with pytest.raises(TunerError, match="returned list"):
        as_outcome([1])
    assert math.isnan(as_outcome({"recall": 0.5, "cost": None}).metrics["cost"])


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"recall": "high"}, "metric 'recall' is the string 'high', not a number"),
        ({"recall": 0.5, "cost": "12"}, "metric 'cost' is the string '12', not a number"),
        ({"cost": b"12"}, "metric 'cost' is b'12', not a number"),
        ({"cost": [1]}, "metric 'cost' is [1], not a number"),
        ({"cost": 10**400}, "not a number"),
        ("0.5", "returned str"),
        (10**400, "returned int"),
        (None, "returned NoneType"),
    ],
)
def test_what_an_evaluate_function_returns_instead_of_numbers_is_named(answer, reason):
    with pytest.raises(TunerError, match=re.escape(reason)):
        as_outcome(answer)
