"""The scale of judgements: what is relevant, what grades are divided by, and what is refused."""

from __future__ import annotations

import pytest

from tuner.core.errors import InputError
from tuner.core.grades import GradeScale
from tuner.core.rankings import Rankings
from tuner.metrics import Qrels, parse
from tuner.scoring.evaluate_run import evaluate_run

QRELS = {"q1": {"d1": 0.9, "d2": 0.4}, "q2": {"d1": 0.6, "d2": 0.7}}
RUN = {"q1": ["d2", "d1"], "q2": ["d2"]}


@pytest.mark.parametrize(
    ("options", "key", "message"),
    [
        ({"relevant_from": 0.0}, "relevant_from", "must be a number above 0"),
        ({"relevant_from": float("nan")}, "relevant_from", "must be a number above 0"),
        ({"max_grade": "corpus"}, "max_grade", "write 'query', 'dataset' or a number"),
        ({"max_grade": 0.5}, "max_grade", "it must be at least 1, from which"),
        ({"relevant_from": 0.5, "max_grade": float("inf")}, "max_grade", "at least 0.5"),
    ],
)
def test_a_scale_that_no_grade_can_have_is_refused(options, key, message):
    with pytest.raises(InputError, match=message) as error:
        GradeScale(**options)
    assert error.value.problems[0].key == (key,)


def test_fractions_are_relevant_from_where_the_caller_says():
    # q1: d1 is relevant, at rank 2; q2: both are, one is found
    assert evaluate_run(QRELS, RUN, "mrr", relevant_from=0.5) == {"q1": 0.5, "q2": 1.0}
    assert evaluate_run(QRELS, RUN, "recall@5", relevant_from=0.5) == {"q1": 1.0, "q2": 0.5}
    assert evaluate_run(QRELS, RUN, "recall@5", relevant_from=0.8) == {"q1": 1.0, "q2": 0.0}


def test_grades_that_never_reach_the_lowest_relevant_one_are_no_silent_zeros(caplog):
    assert evaluate_run(QRELS, RUN, "mrr") == {"q1": 0.0, "q2": 0.0}
    (warning,) = caplog.messages
    assert "no grade reaches 1, the highest is 0.9; set relevant_from, such as 0.45" in warning
    caplog.clear()
    # What was judged and found irrelevant is 0, as in trec_eval.
    assert evaluate_run({"q": {"d1": 0}}, {"q": ["d1"]}, "mrr") == {"q": 0.0}
    assert not caplog.messages


@pytest.mark.parametrize(
    ("max_grade", "q1", "q2"),
    [
        # discount 1, 0.6309; the sum is 1.6309
        ("query", (0.4 / 0.9 + 0.6309297536) / 1.6309297536, 1 / 1.6309297536),
        ("dataset", (0.4 / 0.9 + 0.6309297536) / 1.6309297536, (0.7 / 0.9) / 1.6309297536),
        (1.0, (0.4 + 0.9 * 0.6309297536) / 1.6309297536, 0.7 / 1.6309297536),
    ],
)
def test_discounted_precision_divides_by_the_grade_that_is_named(max_grade, q1, q2):
    found = evaluate_run(
        QRELS, RUN, "discounted_precision@2", relevant_from=0.5, max_grade=max_grade
    )
    assert found == pytest.approx({"q1": q1, "q2": q2})
    # The same by arrays, of a part of the queries too: the data set's highest is that of all.
    qrels = Qrels.build(QRELS, query_ids=["q2"], scale=GradeScale(0.5, max_grade))
    judged = qrels.judge(Rankings.from_ids(["q2"], [["d2"]]))
    assert parse("discounted_precision@2").per_query(judged) == pytest.approx([q2])
