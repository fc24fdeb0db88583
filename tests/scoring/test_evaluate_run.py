"""Runs given as dictionaries: order, ties, duplicates and what is refused."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np
import pytest

from tuner.core.errors import MetricError
from tuner.metrics import parse
from tuner.metrics.ordering import top_documents
from tuner.scoring.evaluate_run import evaluate_run, evaluate_run_metrics


def order(answer, depth=None, **options) -> list[str]:
    return list(top_documents(["q"], [answer], depth=depth, **options)[0])


@pytest.mark.parametrize("depth", [None, 1, 2, 3, 4, 9])
def test_trap_ties_go_by_document_id_descending_and_never_by_insertion(depth):
    scores = {"a": 1.0, "é": 1.0, "z": 1.0, "best": 2.0, "B": 1.0}
    wanted = ["best", "é", "z", "a", "B"][:depth]  # é is c3 a9 in UTF-8, after z
    assert order(scores, depth) == wanted
    assert order(dict(reversed(scores.items())), depth) == wanted


def test_trap_scores_that_differ_by_1e_12_are_no_tie():
    assert order({"z": 0.5, "a": 0.5 + 1e-12}) == ["a", "z"]
    assert order({"z": 0.5, "a": 0.5 + 1e-12}, 1) == ["a"]


def test_a_tie_across_the_cutoff_is_decided_by_id():
    assert order({"a": 1.0, "b": 1.0, "c": 1.0, "d": 3.0}, 2) == ["d", "c"]


def test_infinite_scores_are_ordered_even_beside_shorter_answers():
    answers = [{"a": -math.inf, "b": -math.inf, "c": 0.0}, dict.fromkeys("vwxyz", 1.0)]
    tops = top_documents(["q1", "q2"], answers, depth=4)
    assert [list(top) for top in tops] == [["c", "b", "a"], ["z", "y", "x", "w"]]
    assert order({"a": -math.inf, "b": math.inf}) == ["b", "a"]


def test_trap_a_nan_score_is_an_error_that_names_query_and_document():
    with pytest.raises(MetricError, match="query 'q2', document 'b': the score is nan"):
        evaluate_run(
            {"q1": {"a": 1}, "q2": {"a": 1}},
            {"q1": {"a": 1.0}, "q2": {"a": 1.0, "b": float("nan")}},
            "mrr",
        )
    with pytest.raises(MetricError, match="document 'b': the score is None"):
        order({"a": 1.0, "b": None})


def test_trap_duplicates_are_an_error_or_keep_their_first_place():
    qrels = {"q": {"a": 1, "b": 1}}
    run = {"q": ["a", "a", "x", "b"]}
    with pytest.raises(MetricError, match="query 'q': the ranking holds 'a' twice"):
        evaluate_run(qrels, run, "recall@10")
    # closed up: a, x, b
    assert evaluate_run(qrels, run, "recall@2", duplicates="first") == {"q": 0.5}
    assert evaluate_run(qrels, run, "recall@3", duplicates="first") == {"q": 1.0}
    with pytest.raises(MetricError, match="write 'error' or 'first'"):
        evaluate_run(qrels, run, "recall@3", duplicates="last")


def test_trap_missing_queries_and_queries_without_a_relevant_document_are_0():
    qrels = {"missing": {"a": 1}, "none": {"a": 0}, "empty": {}, "found": {"a": 1}}
    run = {"none": {"a": 1.0}, "empty": {"a": 1.0}, "found": {"a": 1.0}}
    got = evaluate_run_metrics(qrels, run, ["recall@5", "ndcg", "map", "mrr@5"])
    for values in got.values():
        assert values == {"missing": 0.0, "none": 0.0, "empty": 0.0, "found": 1.0}


def test_trap_a_level_that_no_document_has_is_undefined_and_never_0():
    qrels = {"graded": {"a": 2, "b": 1}, "binary": {"a": 1}, "none": {"a": 0}}
    run = {query: ["b", "a"] for query in qrels}
    # graded: one document of grade 2, found; binary: none to find; none: nothing is relevant
    expected = {"graded": 1.0, "binary": math.nan, "none": 0.0}
    assert evaluate_run(qrels, run, "recall_level2@5") == pytest.approx(expected, nan_ok=True)
    assert evaluate_run(qrels, run, "recall@5") == {"graded": 1.0, "binary": 1.0, "none": 0.0}


def test_what_is_undefined_may_stay_so_or_be_refused():
    qrels = {"found": {"a": 1}, "none": {"a": 0}}
    run = {query: ["a"] for query in qrels}
    got = evaluate_run_metrics(qrels, run, ["recall@5", "ndcg"], undefined="skip")
    for values in got.values():
        assert values == pytest.approx({"found": 1.0, "none": math.nan}, nan_ok=True)
    with pytest.raises(MetricError, match="1 of 2 queries have no relevant document"):
        evaluate_run(qrels, run, "mrr", undefined="error")
    assert evaluate_run({"q": {"a": 1}}, {"q": ["a"]}, "mrr", undefined="error") == {"q": 1.0}


def test_lists_and_scores_can_be_mixed_and_results_follow_the_qrels():
    qrels = {"q2": {"a": 1}, "q1": {"a": 1}}
    run = {"q1": ["x", "a"], "q2": {"a": 0.1, "x": 0.2, "y": 0.0}}
    got = evaluate_run(qrels, run, "mrr")
    assert list(got.items()) == [("q2", 0.5), ("q1", 0.5)]


def test_empty_qrels_and_empty_run():
    assert evaluate_run({}, {"q": ["a"]}, "mrr") == {}
    assert evaluate_run({"q": {"a": 1}}, {}, "ndcg@3") == {"q": 0.0}
    assert evaluate_run({"q": {"a": 1}}, {"q": {}}, "map") == {"q": 0.0}


def test_numpy_values_and_many_lengths():
    generator = np.random.default_rng(5)
    answers = [
        {f"d{place}": generator.integers(0, 6) / 2 for place in range(length)}
        for length in generator.integers(0, 40, 1300)
    ]
    names = [str(index) for index in range(len(answers))]
    for depth in (None, 1, 7):
        for answer, top in zip(answers, top_documents(names, answers, depth=depth), strict=True):
            wanted = sorted(answer, key=lambda d, a=answer: (a[d], d), reverse=True)
            assert list(top) == wanted[:depth]


@pytest.mark.parametrize("answer", ["abc", {"a", "b"}, 3, [("a", 1.0)], [1, 2]])
def test_an_answer_of_another_kind_is_an_error(answer):
    with pytest.raises(MetricError, match="query 'q'"):
        evaluate_run({"q": {"a": 1}}, {"q": answer}, "mrr")


@pytest.mark.parametrize(
    ("qrels", "run", "reason"),
    [
        ({"q": {"7": 1}}, {"q": {7: 0.9}}, "query 'q': the run holds 7; document ids are strings"),
        ({"q": {"7": 1}}, {"q": {"7": 0.9, 8: 0.8}}, "the run holds 8; document ids are strings"),
        ({"q": {"7": 1}}, {"q": ["7", 8]}, "the ranking holds 8; document ids are strings"),
        ({"q": {7: 1}}, {"q": {"7": 0.9}}, "the qrels hold 7; document ids are strings"),
        ({3: {"7": 1}}, {"3": {"7": 0.9}}, "hold the query 3; query ids are strings"),
        ({"3": {"7": 1}}, {3: {"7": 0.9}}, "the run holds the query 3; query ids are strings"),
        ({"q": {"7": 1}}, {"q": {b"7": 0.9}}, "the run holds b'7'; document ids are strings"),
    ],
)
def test_trap_ids_that_are_no_strings_are_refused_and_never_score_0(qrels, run, reason):
    with pytest.raises(MetricError, match=re.escape(reason)):
        evaluate_run(qrels, run, "mrr")


@pytest.mark.parametrize(
    ("qrels", "run", "reason"),
    [
        ({"q": {"a": 1}}, {"q": {"a": "0.9"}}, "query 'q', document 'a': the score is '0.9'"),
        ({"q": {"a": 1}}, {"q": {"a": b"0.9"}}, "the score is b'0.9'; it must be a number"),
        ({"q": {"a": 1}}, {"q": {"b": 1.0, "a": np.array([0.9])}}, "document 'a': the score is"),
        ({"q": {"a": "1"}}, {"q": ["a"]}, "document 'a': the grade is '1'; it must be a finite"),
        ({"q": {"a": 10**400}}, {"q": ["a"]}, "query 'q', document 'a': the grade is 1000"),
        ({"q": ["a"]}, {"q": ["a"]}, "query 'q': the judgements are of type list; write {document"),
        ({"q": None}, {"q": ["a"]}, "query 'q': the judgements are of type NoneType"),
        (None, {"q": ["a"]}, "the qrels are of type NoneType; write {query: {document: grade}}"),
        ({"q": {"a": 1}}, [["a"]], "the answers of a run are of type list; write {query: {docu"),
        ({"q": {"a": 1}}, None, "the answers of a run are of type NoneType"),
    ],
)
def test_trap_text_is_no_number_and_what_is_no_mapping_is_named(qrels, run, reason):
    with pytest.raises(MetricError, match=re.escape(reason)):
        evaluate_run(qrels, run, "mrr")


@pytest.mark.parametrize(
    "metrics", ["mrr", b"mrr", None, 3, parse("mrr")], ids=lambda given: type(given).__name__
)
def test_several_metrics_are_a_list(metrics):
    with pytest.raises(MetricError, match="several metrics are a list of names"):
        evaluate_run_metrics({"q": {"a": 1}}, {"q": ["a"]}, metrics)


def test_grades_may_be_any_numbers(caplog):
    assert evaluate_run({"q": {"a": Fraction(3, 2)}}, {"q": ["a"]}, "mrr") == {"q": 1.0}
    assert evaluate_run({"q": {"a": Fraction(1, 2)}}, {"q": ["a"]}, "mrr") == {"q": 0.0}
    assert "the highest is 0.5; set relevant_from, such as 0.25" in caplog.text


def test_foreign_ids_are_pointed_out(caplog):
    evaluate_run({"1": {"a": 1}}, {"q1": ["a"]}, "mrr")
    assert "no query of the run is judged" in caplog.text


def test_inputs_are_not_written_to():
    qrels = {"q": {"a": 1, "b": 0}}
    run = {"q": {"b": 1.0, "a": 2.0}}
    evaluate_run(qrels, run, "ndcg")
    assert (qrels, list(run["q"])) == ({"q": {"a": 1, "b": 0}}, ["b", "a"])
