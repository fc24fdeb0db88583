"""The objective adds up by hand, and never invents a value."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tuner.core.errors import InputError
from tuner.evaluation.objective import Bounds, Objective, composite_values


def test_weighted_mean_less_price():
    objective = Objective(
        {"recall@10": 0.5, "mrr@10": 0.3, "ndcg@10": 0.2},
        price={"context_tokens_per_1000": 0.02},
    )
    metrics = {"recall@10": 0.8, "mrr@10": 0.6, "ndcg@10": 0.5, "context_tokens": 1500.0}
    score = objective.score(metrics)
    # composite = .4 + .18 + .1 = .68; price = .02 * 1.5 = .03
    assert score.composite == pytest.approx(0.68)
    assert score.objective == pytest.approx(0.65)
    assert score.violation == 0.0


def test_the_composite_of_each_query_is_the_weighted_mean():
    values = composite_values(
        {"recall@10": np.array([1.0, 0.5, np.nan]), "mrr@10": np.array([0.5, 0.0, 1.0])},
        {"recall@10": 3.0, "mrr@10": 1.0},
    )
    # (3 * 1 + .5) / 4 = .875; (3 * .5 + 0) / 4 = .375; the third is undefined
    np.testing.assert_allclose(values, [0.875, 0.375, np.nan])


def test_weights_are_divided_by_their_sum():
    score = Objective({"a": 2, "b": 6}).score({"a": 1.0, "b": 0.5})
    assert score.objective == pytest.approx((2 * 1.0 + 6 * 0.5) / 8)


def test_a_price_without_per_1000_is_a_unit_price():
    score = Objective({"a": 1}, price={"latency_p95_ms": 0.001}).score(
        {"a": 0.5, "latency_p95_ms": 20.0}
    )
    assert score.objective == pytest.approx(0.5 - 0.02)


def test_violation_adds_up_relative_to_the_bounds():
    objective = Objective({"a": 1}, constraints={"x": Bounds(max=200), "y": Bounds(min=0.5)})
    score = objective.score({"a": 0.5, "x": 300.0, "y": 0.4})
    assert score.violation == pytest.approx(100 / 200 + 0.1 / 0.5)
    assert objective.score({"a": 0.5, "x": 200.0, "y": 0.5}).violation == 0.0


def test_a_missing_metric_is_an_error_never_0():
    with pytest.raises(InputError, match="metric 'recall' is missing; did you mean 'recal'"):
        Objective({"recall": 1}).score({"recal": 0.5})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None, "x", True])
def test_a_value_that_is_no_finite_number_is_an_error(value):
    with pytest.raises(InputError, match=r"metric 'a' is .*not a finite number"):
        Objective({"a": 1}).score({"a": value})


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({}, "names no metric"),
        ({"a": 0, "b": 0.0}, "the weights sum to 0"),
        ({"a": -1}, "the weight is -1"),
        ({"a": math.nan}, "the weight is nan"),
        ({"a": 1e308, "b": 1e308}, "from 0 to 1e.09"),
    ],
)
def test_weights_that_mean_nothing_are_refused(weights, message):
    with pytest.raises(InputError, match=message) as caught:
        Objective(weights)
    assert caught.value.problems[0].key[:2] == ("objective", "maximize")


def test_bounds_that_mean_nothing_are_refused():
    with pytest.raises(InputError) as caught:
        Objective({"a": 1}, constraints={"x": Bounds(), "y": Bounds(min=2, max=1)})
    assert [problem.key[-1] for problem in caught.value.problems] == ["x", "y"]


def test_metric_names_are_what_a_score_needs():
    objective = Objective(
        {"ndcg@10": 1}, {"context_tokens_per_1000": 0.02}, {"latency_p95_ms": Bounds(max=1)}
    )
    assert objective.metric_names == ("ndcg@10", "context_tokens", "latency_p95_ms")
