"""Judging rankings by the part of a document that was retrieved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import MetricError
from tuner.core.rankings import WHOLE, Rankings
from tuner.metrics import Qrels

GRADES = {"q1": {"a": 3, "b": 1}, "q2": {"b": 2}}
SPANS = {"q1": {"a": (10, 20)}, "q2": {"b": (0, 5)}}
DOCUMENTS = ("a", "b", "c")


def rankings(documents, spans) -> Rankings:
    return Rankings(("q1", "q2"), DOCUMENTS, np.array(documents), spans=np.array(spans))


def test_a_grade_counts_where_the_span_holds_all_of_it():
    qrels = Qrels.build(GRADES, document_ids=DOCUMENTS, spans=SPANS)
    judged = qrels.judge(
        rankings([[0, 1, 2], [1, 0, -1]], [[(10, 20), (40, 60), (0, 9)], [(0, 5), (0, 9), (0, 0)]])
    )
    # b has no span in q1: wherever it is found, it counts.
    assert judged.gains.tolist() == [[3, 1, 0], [2, 0, 0]]
    missed = qrels.judge(rankings([[0], [1]], [[(11, 30)], [(0, 4)]]))
    assert missed.gains.tolist() == [[0], [0]]
    # What is to be found stays what it was.
    assert missed.relevant_count.tolist() == [2, 1]
    assert missed.ideal.tolist() == [[3, 1], [2, 0]]


def test_only_the_first_ranks_are_looked_at():
    qrels = Qrels.build(GRADES, document_ids=DOCUMENTS, spans=SPANS)
    given = rankings([[0, 1], [1, 0]], [[WHOLE, WHOLE], [WHOLE, WHOLE]])
    assert qrels.judge(given, depth=1).gains.tolist() == [[3], [2]]


def test_rankings_without_spans_are_refused():
    qrels = Qrels.build(GRADES, document_ids=DOCUMENTS, spans=SPANS)
    told = replace(rankings([[0], [1]], [[WHOLE], [WHOLE]]), spans=None)
    with pytest.raises(MetricError, match="does not tell which part of a document"):
        qrels.judge(told)
    # What retrieved nothing has nothing to tell.
    nothing = Rankings.from_ids(["q1", "q2"], [(), ()])
    assert qrels.judge(nothing).gains.shape == (2, 0)


span = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda ends: tuple(sorted(ends)))
rows = st.lists(st.permutations(range(4)), min_size=2, max_size=2)


@given(
    documents=rows,
    told=st.lists(span, min_size=8, max_size=8),
    wanted=st.dictionaries(st.sampled_from("abcd"), span),
    grades=st.dictionaries(st.sampled_from("abcd"), st.integers(-1, 3)),
)
def test_more_text_never_lowers_a_gain_and_whole_documents_have_all(
    documents, told, wanted, grades
):
    ids = ("a", "b", "c", "d")
    judgements = {"q1": grades, "q2": grades}
    plain = Qrels.build(judgements, document_ids=ids)
    strict = Qrels.build(judgements, document_ids=ids, spans={"q1": wanted, "q2": wanted})
    spans = np.array(told).reshape(2, 4, 2)
    some = Rankings(("q1", "q2"), ids, np.array(documents), spans=spans)
    more = replace(some, spans=spans + np.array([-1, 1]))
    whole = replace(some, spans=np.broadcast_to(np.array(WHOLE), spans.shape))
    gains = [strict.judge(each).gains for each in (some, more, whole)]
    assert (gains[0] <= gains[1]).all()
    assert (gains[1] <= gains[2]).all()
    assert (gains[2] == plain.judge(some).gains).all()
    for row, column in np.ndindex(2, 4):
        name = ids[documents[row][column]]
        begin, end = spans[row, column]
        first, last = wanted.get(name, (99, -99))
        counts = begin <= first and last <= end
        assert gains[0][row, column] == (max(grades.get(name, 0), 0) if counts else 0)
