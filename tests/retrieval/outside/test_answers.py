"""What an outside system may answer, and what is refused in words."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from tuner.core.corpus import Query
from tuner.core.errors import TunerError
from tuner.retrieval.adapters.answers import Answer, passage_tokens, rankings_of, read_answer

KNOWN = {"a": 3, "b": 4, "7": 5}


@pytest.mark.parametrize(
    ("raw", "ids", "scores"),
    [
        ([], (), None),
        (["a", "b"], ("a", "b"), None),
        (("a",), ("a",), None),
        (np.array(["b", "a"]), ("b", "a"), None),
        ([7, "a"], ("7", "a"), None),
        ([np.int64(7)], ("7",), None),
        ([("a", 0.5), ("b", 0.5)], ("a", "b"), (0.5, 0.5)),
        ([["a", 2], ["b", -math.inf]], ("a", "b"), (2.0, -math.inf)),
        ([{"id": "a", "score": 1.5}, {"id": "b", "score": 1}], ("a", "b"), (1.5, 1.0)),
        ([{"id": "a", "text": "not looked at"}], ("a",), None),
        ({"results": ["a"]}, ("a",), None),
        # A repeated id keeps its first place and score, and the ranks close up.
        (["a", "b", "a"], ("a", "b"), None),
        ([("a", 3.0), ("a", 2.0), ("b", 1.0)], ("a", "b"), (3.0, 1.0)),
    ],
)
def test_answers_that_are_read(raw, ids, scores):
    assert read_answer(raw, KNOWN) == Answer(ids, scores)


@pytest.mark.parametrize(
    ("raw", "answer"),
    [
        ([{"id": "a", "span": [0, 7]}], Answer(("a",), spans=((0, 7),))),
        (
            [{"id": "a", "tokens": 7}, {"id": "b", "tokens": 0.5}],
            Answer(("a", "b"), tokens=(7, 0.5)),
        ),
        # Without a span, as a mapping with JMESPath gives it.
        ([{"id": "a", "score": 2, "span": None}], Answer(("a",), (2.0,))),
        # Of a document that is there twice, the better part counts.
        (
            [{"id": "b", "score": 2, "span": (5, 9)}, {"id": "b", "score": 1, "span": (0, 4)}],
            Answer(("b",), (2.0,), spans=((5, 9),)),
        ),
        (
            {"results": [{"id": "a", "span": np.array([1, 1])}], "context_tokens": 3},
            Answer(("a",), context_tokens=3.0, spans=((1, 1),)),
        ),
    ],
)
def test_an_answer_may_say_which_part_of_a_document_it_is(raw, answer):
    assert read_answer(raw, KNOWN) == answer


def test_tokens_stand_beside_the_documents_of_every_query():
    queries = [Query("q", "?"), Query("r", "?"), Query("s", "?")]
    answers = [Answer(("b",), tokens=(2.5,)), Answer(()), Answer(("a", "b"), tokens=(0.0, 5.0))]
    for known in (KNOWN, None):
        rankings = rankings_of(queries, answers, known, {})
        assert rankings.tokens.tolist() == [[2.5, 0.0], [0.0, 0.0], [0.0, 5.0]]
        assert rankings.context_tokens.tolist() == [2.5, 0.0, 5.0]
    told = [Answer(("b",), context_tokens=40.0, tokens=(2.5,))]
    assert rankings_of(queries[:1], told, KNOWN, {}).context_tokens.tolist() == [40.0]
    with pytest.raises(TunerError, match="tokens were reported for some queries and not for"):
        rankings_of(queries[:2], [answers[0], Answer(("a",))], KNOWN, {})


def test_spans_stand_beside_the_documents_of_every_query():
    queries = [Query("q", "?"), Query("r", "?"), Query("s", "?")]
    answers = [
        Answer(("b",), spans=((2, 4),)),
        Answer(()),
        Answer(("a", "b"), spans=((0, 3), (1, 5))),
    ]
    rankings = rankings_of(queries, answers, KNOWN, {})
    assert rankings.spans.tolist() == [[[2, 4], [0, 0]], [[0, 0], [0, 0]], [[0, 3], [1, 5]]]
    assert rankings_of(queries[:1], [Answer(("b",))], KNOWN, {}).spans is None
    with pytest.raises(TunerError, match="span was reported for some queries and not for others"):
        rankings_of(queries[:2], [answers[0], Answer(("a",))], KNOWN, {})


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (None, "a list of document ids is needed, the answer is nothing"),
        ("a", "a list of document ids is needed, the answer is str a"),
        ({"ids": ["a"]}, "the answer has no `results`, but ids"),
        ({"results": None}, "the answer is nothing"),
        ({"results": {"results": ["a"]}}, "a list of document ids is needed"),
        (["a", "zz"], "result 2: no document of the data set has the id 'zz' (one that has: '7')"),
        ([None], "result 1 is None; an id, or an id with a score, is needed"),
        ([True], "result 1 is True"),
        ([1.5], "result 1 is 1.5"),
        ([{"doc": "a"}], "result 1 is {'doc': 'a'}; an id"),
        ([["a", "b", "7"]], "result 1 is ['a', 'b', '7']; an id"),
        ([("a", math.nan)], "the score of result 1 is nan, not a number"),
        ([("a", "high")], "the score of result 1 is the string 'high', not a number"),
        ([("a", "0.9")], "the score of result 1 is the string '0.9', not a number"),
        ({"results": ["a"], "graph_used": "true"}, "is the string 'true', not true or false"),
        ([("a", True)], "the score of result 1 is True, not a number"),
        ([{"id": "a", "span": [0, 1]}, "b"], "1 of 2 results have a span; give all or none"),
        ([{"id": "a", "span": [4, 2]}], "the span of result 1 is [4, 2]; [begin, end] is needed"),
        ([{"id": "a", "span": [-1, 2]}], "the span of result 1 is [-1, 2]"),
        ([{"id": "a", "span": [0.0, 2]}], "the span of result 1 is [0.0, 2]"),
        ([{"id": "a", "span": [True, 2]}], "the span of result 1 is [True, 2]"),
        ([{"id": "a", "span": [0, 1 << 31]}], "the span of result 1 is [0, 2147483648]"),
        ([{"id": "a", "span": "0-2"}], "the span of result 1 is the string '0-2'"),
        ([{"id": "a", "span": 7}], "the span of result 1 is 7"),
        (
            {"results": [{"id": "a", "span": [0, 1]}], "legs": {"x": [["a", 1]]}},
            "results have a span, and there are legs",
        ),
        ([{"id": "a", "tokens": -1}], "the tokens of result 1 are -1, no number from 0 up"),
        ([{"id": "a", "tokens": ["x"]}], "the tokens of result 1 are ['x'], no number"),
        ([{"id": "a", "tokens": 1}, {"id": "b"}], "1 of 2 results have tokens; give all or none"),
        ([("a", 0.2), ("b", 0.9)], "the scores rise from 0.2 to 0.9 at result 2"),
        (["a", ("b", 0.9)], "1 of 2 results have a score; give all or none"),
        ([{"id": "a", "score": 1}, {"id": "b"}], "1 of 2 results have a score"),
        ({"results": ["a"], "context_tokens": -1}, "context_tokens is -1, not a number from 0 up"),
        ({"results": ["a"], "context_tokens": math.nan}, "context_tokens is nan"),
        (
            {"results": ["a"], "context_tokens": "12"},
            "context_tokens is the string '12', not a number",
        ),
        ([("a", 10**400)], "the score of result 1 is 1000"),
        ({"results": ["a"], "context_tokens": 10**400}, "context_tokens is 1000"),
        ({"results": ["a"], "graph_used": 1}, "graph_used is 1, not true or false"),
        ({"results": ["a"], "legs": ["a"]}, "legs is ['a'], not each leg's name with its results"),
        ({"results": ["a"], "legs": {"graph": ["a"]}}, "leg 'graph': each result needs a score"),
        ({"results": ["a"], "legs": {"text": [["a", math.inf]]}}, "needs a score that is finite"),
        ({"results": ["a"], "legs": {"text": [["zz", 1]]}}, "leg 'text': result 1: no document"),
    ],
)
def test_answers_that_are_refused(raw, reason):
    with pytest.raises(TunerError) as raised:
        read_answer(raw, KNOWN)
    assert reason in str(raised.value)


def test_without_documents_any_id_is_taken():
    assert read_answer(["zz"], None).ids == ("zz",)


def rankings(*raw):
    queries = [Query(f"q{row}", "") for row in range(len(raw))]
    return rankings_of(queries, [read_answer(one, KNOWN) for one in raw], KNOWN, {"call": 0.1})


def test_rankings_hold_what_was_answered():
    found = rankings([("a", 2.0), ("b", 1.0)], [], [("7", 3.0)])
    assert [found.ids(row) for row in range(3)] == [["a", "b"], [], ["7"]]
    assert found.query_ids == ("q0", "q1", "q2")
    assert found.scores is not None
    assert found.scores[0].tolist() == [2.0, 1.0]
    assert np.isnan(found.scores[1]).all()
    assert found.seconds == {"call": 0.1}


def test_scores_of_some_queries_only_are_left_out():
    assert rankings([("a", 2.0)], ["b"]).scores is None


def test_tokens_are_counted_where_the_system_does_not_tell(corpus):
    # "Lima" + "Lima lies on a river called Rimac." = 1 + 7 words
    assert passage_tokens(corpus)["d0"] == 8
    assert rankings(["a", "b"], []).context_tokens.tolist() == [7.0, 0.0]  # 3 + 4
    told = rankings({"results": ["a"], "context_tokens": 50}, {"results": [], "context_tokens": 0})
    assert told.context_tokens.tolist() == [50.0, 0.0]


def test_what_is_told_for_some_queries_only_is_refused():
    with pytest.raises(TunerError, match="graph_used was reported for some queries and not"):
        rankings({"results": ["a"], "graph_used": True}, ["b"])


def test_a_document_of_another_library_is_told_where_its_id_may_stand():
    document = SimpleNamespace(page_content="Lima", metadata={"source": "a.txt", "id": "7"})
    with pytest.raises(TunerError) as raised:
        read_answer([document], None)
    assert "an id, or an id with a score, is needed" in str(raised.value)
    assert 'return its .metadata["id"], or where its id stands' in str(raised.value)
    assert "its metadata holds 'source', 'id'" in str(raised.value)


def test_legs_are_told_with_what_each_found():
    raw = {"results": ["b"], "legs": {"graph": [["b", 2], ["a", 1]], "text": []}}
    answers = [read_answer(raw, KNOWN), read_answer({**raw, "results": []}, KNOWN)]
    legs = rankings_of([Query("q1", ""), Query("q2", "")], answers, KNOWN, {}).legs
    assert legs.names == ("graph", "text")
    assert legs.documents.tolist() == [[1, 0], [1, 0]]  # a, b: of equal scores the lower id
    assert legs.scores[0].tolist() == [[1.0, 2.0], [1.0, 2.0]]
    assert np.isnan(legs.scores[1]).all()
    assert legs.tokens.tolist() == [[3.0, 4.0], [3.0, 4.0]]


def test_a_leg_that_some_queries_lack_is_refused():
    raw = {"results": ["b"], "legs": {"graph": [["b", 2]]}}
    for other in ({"results": ["b"]}, {"results": ["b"], "legs": {"text": [["b", 2]]}}):
        answers = [read_answer(raw, KNOWN), read_answer(other, KNOWN)]
        with pytest.raises(TunerError, match="an empty list"):
            rankings_of([Query("q1", ""), Query("q2", "")], answers, KNOWN, {})
