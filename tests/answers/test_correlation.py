"""Which metric the answers go with, where that is known: the answers are made from it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tuner.answers.contexts import pairs_by_position
from tuner.answers.correlation import correlate

NAMES = ("recall@10", "ndcg@10", "mrr@10", "precision@10")


def made(weights=(0.0, 1.0, 0.0, 0.0), *, noise=0.2, queries=200, configurations=8, seed=0):
    """Return metrics that go along with each other, and a quality made from them and noise."""
    random = np.random.default_rng(seed)
    shared = random.uniform(size=(configurations, queries))
    values = {
        name: np.clip(0.5 * shared + 0.5 * random.uniform(size=shared.shape), 0.0, 1.0)
        for name in NAMES
    }
    quality = sum(w * values[name] for w, name in zip(weights, NAMES, strict=True))
    return values, quality + noise * random.normal(size=shared.shape)


def found_of(values, quality, **changes):
    given = {
        "configurations": [f"trial {number}" for number in range(len(quality))],
        "clusters": list(range(quality.shape[1])),
        "pairs": pairs_by_position(list(values)),
        "candidates": list(values),
        "today": {"recall@10": 1.0},
        "seed": 0,
    }
    return correlate(values, quality, **{**given, **changes})


def test_the_metric_that_made_the_answers_comes_first_and_gets_the_weight():
    found = found_of(*made())
    assert next(iter(found.metrics)) == "ndcg@10"
    assert found.composite.weights["ndcg@10"] > 0.85
    assert sum(found.composite.weights.values()) == pytest.approx(1.0)
    assert found.composite.against_today.interval[0] > 0.0
    assert found.composite.against_equal.interval[0] > 0.0
    assert (found.composite.fitted_on, found.composite.tested_on) == (100, 100)
    (gain,) = [gain for gain in found.gains if gain.weighted == "ndcg@10"]
    assert gain.unweighted == "recall@10"
    assert gain.explained.interval[0] > 0.0
    assert gain.within.interval[0] > 0.0


def test_weights_of_a_mixture_are_found():
    weights = found_of(*made((0.5, 0.0, 0.5, 0.0), noise=0.1)).composite.weights
    assert weights["recall@10"] == pytest.approx(0.5, abs=0.1)
    assert weights["mrr@10"] == pytest.approx(0.5, abs=0.1)


def test_where_today_is_right_already_nothing_is_gained():
    found = found_of(*made(), today={"ndcg@10": 2.0})
    low, high = found.composite.against_today.interval
    assert low <= 0.0
    assert high < 0.02


def test_the_record_is_plain_data():
    record = json.loads(json.dumps(found_of(*made(queries=40)).to_record()))
    assert next(iter(record["metrics"])) == "ndcg@10"
    assert record["composite"]["yaml"].startswith("objective:\n  maximize:\n    ")
    assert record["configurations"][0]["name"] == "trial 0"


def test_too_few_queries_or_metrics_give_no_composite_and_say_so():
    assert "12 queries are too few" in found_of(*made(queries=12)).no_composite
    values, quality = made()
    assert "at least two metrics" in found_of(values, quality, candidates=["mrr@10"]).no_composite
    assert "no metric goes with" in found_of(values, -quality).no_composite


def test_too_few_configurations_are_said_to_be():
    remark = found_of(*made(configurations=3)).remarks[0]
    assert remark.startswith("3 configurations are too few for a correlation between them")
    assert "by chance in 33 % of all cases" in remark  # two of the 3! = 6 orders
    assert not any("too few" in remark for remark in found_of(*made()).remarks)


def test_configurations_that_the_answers_do_not_tell_apart_are_said_to_be():
    remarks = found_of(*made(noise=3.0, queries=30)).remarks
    assert any("pairs of configurations apart" in remark for remark in remarks)


def test_queries_that_lack_an_answer_are_counted():
    values, quality = made(queries=50)
    quality[3, :4] = np.nan
    found = found_of(values, quality)
    assert (found.queries, found.incomplete) == (46, 4)
    assert found.metrics["mrr@10"].undefined == 4
