"""Every ranking metric against sums made by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tuner.core.errors import MetricError
from tuner.core.rankings import Rankings
from tuner.metrics import Qrels, parse
from tuner.metrics.base import Judged

# One ranking: grades 0, 3, 0, 1 at ranks 1 to 4. Judged: 3, 2, 1 and a 0, so 3 relevant documents,
# of which 2 were retrieved.
QRELS = {"q": {"a": 3, "b": 2, "c": 1, "d": 0}}
RANKING = ["d", "a", "x", "c"]

LOG2_3, LOG2_5 = math.log2(3), math.log2(5)


def value(name: str, qrels=None, ranking=None) -> float:
    judged = Qrels.build(qrels or QRELS).judge(
        Rankings.from_ids(["q"], [RANKING if ranking is None else ranking])
    )
    return float(parse(name).per_query(judged)[0])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("recall@1", 0.0),
        ("recall@2", 1 / 3),
        ("recall@4", 2 / 3),
        ("recall@100", 2 / 3),
        ("recall_cap@2", 1 / 2),  # 1 found of the min(2, 3) that two ranks can hold
        ("recall_cap@4", 2 / 3),
        ("precision@2", 1 / 2),
        ("precision@4", 2 / 4),
        ("precision@10", 2 / 10),  # by k, though only 4 were retrieved
        ("f1@1", 0.0),  # P = R = 0
        ("f1@4", 4 / 7),  # P = 1/2, R = 2/3: 2 * 1/3 / (7/6)
        ("success@1", 0.0),
        ("success@2", 1.0),
        ("mrr", 1 / 2),
        ("mrr@1", 0.0),
        ("mrr@2", 1 / 2),
        ("map", (1 / 2 + 2 / 4) / 3),
        # dcg = 3/log2(3) + 1/log2(5); ideal = 3 + 2/log2(3) + 1/2
        ("ndcg", (3 / LOG2_3 + 1 / LOG2_5) / (3 + 2 / LOG2_3 + 1 / 2)),
        # dcg = 3/log2(3); ideal = 3 + 2/log2(3)
        ("ndcg@2", (3 / LOG2_3) / (3 + 2 / LOG2_3)),
        # gains 2^3-1 = 7, 2^2-1 = 3, 2^1-1 = 1
        ("ndcg_exp", (7 / LOG2_3 + 1 / LOG2_5) / (7 + 3 / LOG2_3 + 1 / 2)),
        ("ndcg_exp@2", (7 / LOG2_3) / (7 + 3 / LOG2_3)),
    ],
)
def test_hand_computed(name: str, expected: float):
    assert value(name) == pytest.approx(expected, abs=1e-12)


def test_trap_the_ideal_comes_from_all_judgements_not_from_the_retrieved_list():
    # dcg = 3 * .6309; ideal = 3 * (1 + .6309 + .5): .2961. From the retrieved list it were .631.
    grades = {"q": {"a": 3, "b": 3, "c": 3}}
    assert value("ndcg@3", grades, ["x", "a", "y"]) == pytest.approx(0.2961, abs=5e-5)


def test_trap_recall_with_more_relevant_documents_than_k_does_not_reach_1():
    grades = {"q": {"a": 1, "b": 1, "c": 1, "d": 1}}
    assert value("recall@2", grades, ["a", "b"]) == 0.5
    assert value("recall_cap@2", grades, ["a", "b"]) == 1.0


def test_trap_negative_grades_have_no_gain_and_do_not_hang():
    assert value("ndcg@2", {"q": {"a": 1, "b": -2}}, ["b", "a"]) == pytest.approx(1 / LOG2_3)
    assert math.isnan(value("ndcg", {"q": {"a": -1, "b": -2}}, ["b", "a"]))


def test_trap_a_grade_between_0_and_1_has_gain_but_is_not_relevant():
    grades = {"q": {"a": 0.5, "b": 1.5}}
    assert value("recall@1", grades, ["a", "b"]) == 0.0
    # dcg@1 = .5; ideal@1 = 1.5
    assert value("ndcg@1", grades, ["a", "b"]) == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    "name", ["recall@3", "precision@3", "f1@3", "success@3", "mrr", "map", "ndcg", "ndcg_exp@3"]
)
def test_trap_no_relevant_document_is_undefined_and_an_empty_answer_is_zero(name: str):
    assert math.isnan(value(name, {"q": {"a": 0}}, ["a"]))
    assert value(name, {"q": {"a": 1}}, []) == 0.0


def test_trap_f1_is_per_query_and_its_mean_is_the_mean_of_the_f1s():
    judged = Qrels.build({"q1": {"a": 1}, "q2": {"b": 1, "c": 1}}).judge(
        Rankings.from_ids(["q1", "q2"], [["a", "x"], ["x", "y"]])
    )
    # q1: P = 1/2, R = 1: 2/3. q2: 0. Mean 1/3; the F1 of the mean P (1/4) and R (1/2) were also
    # 1/3, so look at the queries themselves.
    assert parse("f1@2").per_query(judged).tolist() == pytest.approx([2 / 3, 0.0])


def test_ndcg_exp_survives_grades_whose_power_overflows():
    # Gains 2^2000 and 2^1999: dcg/ideal = (1/2 + 1/log2(3)) / (1 + 1/2 / log2(3))
    wanted = (0.5 + 1 / LOG2_3) / (1 + 0.5 / LOG2_3)
    assert value("ndcg_exp", {"q": {"a": 2000, "b": 1999}}, ["b", "a"]) == pytest.approx(wanted)


def test_a_metric_that_looks_deeper_than_the_judging_is_refused():
    judged = Qrels.build(QRELS).judge(Rankings.from_ids(["q"], [RANKING]), depth=2)
    assert parse("ndcg@2").per_query(judged)[0] == pytest.approx(value("ndcg@2"))
    for name in ("ndcg@3", "mrr", "recall@10", "map"):
        with pytest.raises(MetricError, match="judged down to rank 2 only"):
            parse(name).per_query(judged)


def test_a_cutoff_of_zero_is_refused_by_the_functions_too():
    judged = Judged(np.ones((1, 2)), np.array([2]), np.ones((1, 2)))
    with pytest.raises(MetricError, match="at least 1"):
        parse("recall@1").function(judged, 0)
