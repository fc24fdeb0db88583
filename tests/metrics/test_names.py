"""Names of metrics: what they mean, and what a wrong one is told."""

from __future__ import annotations

import numpy as np
import pytest

from tuner.core.errors import MetricError
from tuner.metrics import depth_needed, known_names, mean_defined, parse
from tuner.metrics.names import descriptions
from tuner.scoring.evaluate_run import evaluate_run, evaluate_run_metrics


def test_names_go_there_and_back():
    for pattern in known_names():
        name = pattern.replace("@k", "@7")
        metric = parse(name)
        assert metric.name == name
        assert metric.cutoff == (7 if "@" in name else None)


def test_the_promised_metrics_are_there():
    promised = {"recall@k", "precision@k", "f1@k", "success@k", "mrr", "mrr@k", "map"}
    promised |= {"ndcg", "ndcg@k", "ndcg_exp", "ndcg_exp@k", "recall_cap@k"}
    assert promised <= set(known_names())
    assert all(descriptions().values())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ndgc@10", "unknown metric 'ndgc@10'; did you mean 'ndcg@10'?"),
        ("NDCG@5", "unknown metric 'NDCG@5'; did you mean 'ndcg@5'?"),
        ("recall_at_10", "unknown metric 'recall_at_10'; did you mean 'recall@10'?"),
        ("recall", "metric 'recall' needs a cut-off; write for example 'recall@10'"),
        ("ndcg@0", "metric 'ndcg@0': the cut-off is '0'; it must be a whole number, at least 1"),
        ("recall@1000000000000", "a whole number, at least 1 and at most 999999999, such as"),
        ("ndcg@x", "the cut-off is 'x'; it must be a whole number"),
        ("ndcg@", "the cut-off is ''; it must be a whole number"),
        ("ndcg@-1", "the cut-off is '-1'"),
        ("ndcg@1.5", "the cut-off is '1.5'"),
        ("ndcg@٣", "the cut-off is '٣'"),
        ("ndcg@5@5", "the cut-off is '5@5'"),
        ("map@10", "map takes no cut-off; write 'map'"),
        ("", "unknown metric ''"),
    ],
)
def test_a_wrong_name_is_told_what_to_write(name: str, message: str):
    with pytest.raises(MetricError) as caught:
        parse(name)
    assert message in str(caught.value)


def test_the_depth_that_metrics_need():
    assert depth_needed([parse("recall@5"), parse("ndcg@20")]) == 20
    assert depth_needed([parse("recall@5"), parse("mrr")]) is None


def test_mean_says_how_many_queries_are_defined():
    values = np.array([1.0, np.nan, 0.5])
    assert mean_defined(values) == (0.75, 2)
    assert mean_defined(values, undefined="zero") == (0.5, 2)
    with pytest.raises(MetricError, match="1 of 3 queries have no relevant document"):
        mean_defined(values, undefined="error")
    mean, count = mean_defined(np.array([np.nan]))
    assert np.isnan(mean)
    assert count == 0


@pytest.mark.parametrize("name", [["ndcg@10", "mrr"], None, 10, ("mrr",)])
def test_a_metric_that_is_no_name_is_told_what_to_write(name):
    with pytest.raises(MetricError, match="a metric is one name such as 'ndcg@10', got "):
        parse(name)
    with pytest.raises(MetricError, match="a metric is one name such as 'ndcg@10', got "):
        evaluate_run({"q": {"a": 1}}, {"q": ["a"]}, name)


def test_several_metrics_are_a_list():
    with pytest.raises(
        MetricError, match=r"several metrics are a list of names, such as \['mrr'\]; got 'mrr'"
    ):
        evaluate_run_metrics({"q": {"a": 1}}, {"q": ["a"]}, "mrr")
