"""Grades by hand: their distribution, metrics of one level, and scores they can be made from."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from tuner.core.errors import MetricError
from tuner.core.rankings import Rankings
from tuner.metrics import Qrels, at_grades, parse
from tuner.metrics.grades import (
    grades_of,
    level_recall,
    relevance_score,
)
from tuner.scoring.evaluate_run import evaluate_run

GRADES = {"q1": {"a": 3, "b": 1, "c": 2, "d": 2}, "q2": {"e": 1, "f": -1}, "q3": {"g": 0}}
ANSWERS = {"q1": ["a", "x", "c", "b"], "q2": ["f", "e"], "q3": []}
JUDGED = Qrels.build(GRADES).judge(Rankings.from_ids(list(GRADES), list(ANSWERS.values())))


def test_metrics_of_a_level():
    # q1 has three documents of grade 2 and more, two of them in the first 3; q2 and q3 none
    values = parse("recall_level2@3").per_query(JUDGED)
    np.testing.assert_allclose(values, [2 / 3, np.nan, np.nan])
    np.testing.assert_allclose(
        parse("precision_level2@3").per_query(JUDGED), [2 / 3, np.nan, np.nan]
    )
    np.testing.assert_allclose(parse("recall_level3@1").per_query(JUDGED), [1, np.nan, np.nan])
    np.testing.assert_allclose(
        parse("precision_level3@4").per_query(JUDGED), [1 / 4, np.nan, np.nan]
    )
    with pytest.raises(MetricError, match="level=0"):
        level_recall(JUDGED, 3, level=0)


def test_level_1_is_plain_recall():
    np.testing.assert_array_equal(
        level_recall(JUDGED, 3, level=1), parse("recall@3").per_query(JUDGED)
    )


def test_every_level_that_was_judged_has_metrics():
    grades = {"a": 7, "b": 4, "c": 1}
    # from 4 up: a and b, one of them among the first 2
    assert evaluate_run({"q": grades}, {"q": ["a", "c"]}, "recall_level4@2") == {"q": 0.5}
    assert evaluate_run({"q": grades}, {"q": ["a", "c"]}, "precision_level7@2") == {"q": 0.5}
    with pytest.raises(MetricError, match="unknown metric 'recall_level0@2'"):
        parse("recall_level0@2")
    with pytest.raises(MetricError, match="'recall_level12' needs a cut-off"):
        parse("recall_level12")


def test_the_share_of_one_grade():
    # q1: a=3, x unjudged, c=2; q2: f below 0, e=1, one rank missing; q3: nothing is relevant
    expected = {0: [1 / 3, 2 / 3], 1: [0, 1 / 3], 2: [1 / 3, 0], 3: [1 / 3, 0], 4: [0, 0]}
    for grade, shares in expected.items():
        values = parse(f"share_grade{grade}@3").per_query(JUDGED)
        np.testing.assert_allclose(values, [*shares, np.nan])


def test_a_plural_stands_for_every_grade_that_was_judged():
    qrels = GRADES.values()
    assert at_grades("share_grades@3", qrels) == [f"share_grade{grade}@3" for grade in range(4)]
    assert at_grades("recall_levels@3", qrels) == [f"recall_level{level}@3" for level in (1, 2, 3)]
    assert at_grades("precision_levels@3", [{"a": 1.5}]) == ["precision_level1@3"]
    assert at_grades("recall@3", qrels) == ["recall@3"]
    assert at_grades("f1s@3", qrels) == ["f1s@3"]


def test_relevance_score_adds_up_with_the_hop_penalty_on_graph_signals():
    # (.5 * .8 + (.3 * .5 + .2 * 1) * .8^1) / 1 = .4 + .28
    assert relevance_score(text=0.8, path=0.5, entity=1.0, hops=2) == pytest.approx(0.68)
    # 0 hops are no better than 1; text does not fade
    assert relevance_score(path=1.0, hops=0) == pytest.approx(1.0)
    assert relevance_score(text=1.0, hops=9) == pytest.approx(1.0)


def test_relevance_score_divides_by_the_weights_of_the_signals_that_are_there():
    # (.5 * .6 + .2 * 1) / .7
    assert relevance_score(text=0.6, entity=1.0) == pytest.approx(0.5 / 0.7)
    assert np.isnan(relevance_score())


def test_relevance_score_of_many_passages_at_once():
    scores = relevance_score(text=[1.0, np.nan], entity=[0.0, 0.5], hops=[1, 2])
    # .5 / .7; .5 * .8
    np.testing.assert_allclose(scores, [0.5 / 0.7, 0.4])


def test_circularity_of_judging_a_system_by_its_own_score_is_said():
    assert "circular" in inspect.getdoc(relevance_score)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text": 1.2}, "the signal 'text' leaves"),
        ({"text": 1.0, "hops": -1}, "hops are numbers from 0"),
        ({"text": 1.0, "hop_penalty": 1.5}, "hop_penalty=1.5"),
        ({"text": 1.0, "weights": {"text": 0.0}}, "sum to 0"),
        ({"text": 1.0, "weights": {"texts": 1.0}}, "text, path, entity"),
    ],
)
def test_signals_that_mean_nothing_are_refused(options, message):
    with pytest.raises(MetricError, match=message):
        relevance_score(**options)


def test_grades_from_scores():
    assert grades_of([0.0, 0.25, 0.6, 1.0]).tolist() == [0, 1, 2, 3]
    with pytest.raises(MetricError, match="ascend"):
        grades_of([0.1], thresholds=(0.5, 0.5))
    with pytest.raises(MetricError, match="NaN"):
        grades_of([np.nan])
