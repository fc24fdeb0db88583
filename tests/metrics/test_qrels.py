"""Judging rankings that are given as positions."""

from __future__ import annotations

import numpy as np
import pytest

from tuner.core.errors import MetricError
from tuner.core.rankings import Rankings
from tuner.metrics import Qrels

GRADES = {"q1": {"a": 3, "gone": 1, "b": 0}, "q2": {"b": 2}, "q3": {"c": -1}}
DOCUMENTS = ("a", "b", "c", "d")


def rankings(documents, query_ids=("q1", "q2", "q3"), document_ids=DOCUMENTS) -> Rankings:
    return Rankings(query_ids, document_ids, np.array(documents))


def test_gains_counts_and_ideal():
    qrels = Qrels.build(GRADES, document_ids=DOCUMENTS)
    judged = qrels.judge(rankings([[3, 0, 1], [1, -1, -1], [2, 0, 1]]))
    assert judged.gains.tolist() == [[0, 3, 0], [2, 0, 0], [0, 0, 0]]
    # "gone" cannot be retrieved, and counts all the same.
    assert judged.relevant_count.tolist() == [2, 1, 0]
    assert judged.ideal.tolist() == [[3, 1], [2, 0], [0, 0]]


def test_rankings_may_point_into_other_ids_in_another_order():
    qrels = Qrels.build(GRADES, document_ids=DOCUMENTS)
    for other in (("unknown", "b", "a"), ["unknown", "b", "a"]):
        judged = qrels.judge(rankings([[0, 2], [1, -1], [2, 1]], document_ids=other))
        assert judged.gains.tolist() == [[0, 3], [2, 0], [0, 0]]


def test_a_list_of_ids_that_changed_is_read_again():
    qrels = Qrels.build(GRADES)
    ids = ["a", "b"]
    first = qrels.judge(rankings([[0, 1]], ["q1"], ids))
    ids[0] = "x"
    second = qrels.judge(rankings([[0, 1]], ["q1"], ids))
    assert first.gains.tolist() == [[3, 0]]
    assert second.gains.tolist() == [[0, 0]]


def test_some_queries_in_another_order_by_id_and_by_row():
    qrels = Qrels.build(GRADES, document_ids=DOCUMENTS)
    by_id = qrels.judge(rankings([[1, 0], [0, 1]], ["q2", "q1"]))
    by_row = qrels.judge(rankings([[1, 0], [0, 1]], ["?", "??"]), np.array([1, 0]))
    for judged in (by_id, by_row):
        assert judged.gains.tolist() == [[2, 0], [3, 0]]
        assert judged.relevant_count.tolist() == [1, 2]
        assert judged.ideal.tolist() == [[2, 0], [3, 1]]


def test_the_answers_fill_is_no_document_of_the_query_before():
    # -1 in q2's row must not read the last document of q1.
    qrels = Qrels.build({"q1": {"d": 1}, "q2": {"a": 1}}, document_ids=DOCUMENTS)
    judged = qrels.judge(rankings([[3, -1], [-1, -1]], ["q1", "q2"]))
    assert judged.gains.tolist() == [[1, 0], [0, 0]]


def test_small_integers_and_empty_rankings():
    qrels = Qrels.build(GRADES, document_ids=DOCUMENTS)
    small = Rankings(("q1",), DOCUMENTS, np.array([[0, 1]], dtype=np.int8))
    assert qrels.judge(small).gains.tolist() == [[3, 0]]
    empty = Rankings(("q1",), DOCUMENTS, np.empty((1, 0), dtype=np.int64))
    assert qrels.judge(empty).gains.shape == (1, 0)


def test_many_judgements_agree_with_the_dictionary():
    generator = np.random.default_rng(3)
    ids = tuple(f"d{number}" for number in range(300))
    grades = {
        f"q{row}": {
            ids[place]: int(generator.integers(-1, 4)) for place in generator.choice(300, 60)
        }
        for row in range(40)
    }
    documents = np.array([generator.permutation(300)[:200] for _ in grades])
    judged = Qrels.build(grades, document_ids=ids).judge(Rankings(tuple(grades), ids, documents))
    wanted = [
        [max(grades[query].get(ids[place], 0), 0) for place in row]
        for query, row in zip(grades, documents, strict=True)
    ]
    assert judged.gains.tolist() == wanted


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([[0, 3, 0]], "query 'q1': the ranking holds 'a' twice"),
        ([[0, -1, 1]], "query 'q1': the ranking has a gap"),
        ([[0, 4]], "position 4, but there are 4 documents"),
        ([[0, -2]], "position -2"),
        ([[0], [1]], "2 rankings for 1 queries"),
    ],
)
def test_a_broken_ranking_is_an_error(documents, message):
    qrels = Qrels.build(GRADES, document_ids=DOCUMENTS)
    with pytest.raises(MetricError, match=message):
        qrels.judge(rankings(documents, ["q1"]))


def test_a_broken_ranking_far_down_is_named_by_its_own_query():
    query_ids = tuple(f"q{row}" for row in range(9_000))
    documents = np.tile([0, 1, 2], (9_000, 1))
    documents[8_500] = [2, 1, 2]
    qrels = Qrels.build({query: {"c": 1} for query in query_ids}, document_ids=DOCUMENTS)
    with pytest.raises(MetricError, match="query 'q8500': the ranking holds 'c' twice"):
        qrels.judge(Rankings(query_ids, DOCUMENTS, documents))


def test_an_unknown_query_is_an_error():
    with pytest.raises(MetricError, match="query 'q9' is not among the 3 judged queries"):
        Qrels.build(GRADES).judge(rankings([[0]], ["q9"]))


@pytest.mark.parametrize("grade", [float("nan"), float("inf"), None, "high"])
def test_a_grade_that_is_no_finite_number_is_an_error(grade):
    with pytest.raises(MetricError, match="query 'q', document 'b': the grade is"):
        Qrels.build({"q": {"a": 1, "b": grade}})


def test_repeated_ids_are_an_error():
    with pytest.raises(MetricError, match="1 document ids are there twice"):
        Qrels.build(GRADES, document_ids=("a", "a"))
    with pytest.raises(MetricError, match="1 query ids are there twice"):
        Qrels.build(GRADES, query_ids=("q1", "q1"))
