"""Two sides on the same questions: asked by turns, scored alike, a sentence."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tuner.core.corpus import Query
from tuner.core.errors import InputError, TunerError
from tuner.scoring.answer_metrics import find_similarity
from tuner.scoring.answers import Answers, ask_by_turns, compare_answers
from tuner.stats import compare_paired

QUERIES = tuple(
    Query(f"q{n}", f"question {n}?", "even" if n % 2 == 0 else "odd") for n in range(60)
)
ACCEPTED = {query.id: (f"answer {query.id}",) for query in QUERIES}
F1 = find_similarity("token_f1")
EXACT = find_similarity("exact_match")


def right_on(numbers):
    return Answers(
        {q.id: f"answer {q.id}" if n in numbers else "" for n, q in enumerate(QUERIES)}, {}
    )


def test_questions_are_asked_by_turns_in_random_order():
    asked = []

    def side(name):
        def answer(context, query):
            asked.append((name, context, query))
            return f"{name} {query}"

        return answer

    contexts = tuple([f"{name}{n}" for n in range(60)] for name in "ab")
    a, b = ask_by_turns((side("a"), side("b")), contexts, QUERIES, seed=1)
    assert len(asked) == 120
    pairs = [(asked[n], asked[n + 1]) for n in range(0, 120, 2)]
    # Both are asked a question before the next one comes, each with its own context.
    for one, other in pairs:
        assert {one[0], other[0]} == {"a", "b"}
        assert one[2] == other[2]
        assert one[1][1:] == one[2].split()[1].strip("?")
        assert one[1][0] == one[0]
    order = [one[2] for one, _ in pairs]
    assert sorted(order) == sorted(query.text for query in QUERIES) != order
    first = sum(one[0] == "a" for one, _ in pairs)
    assert 15 <= first <= 45  # a fair coin: 30 +- 3.9 of 60
    assert b.texts["q3"] == "b question 3?"
    assert (a.errors, b.errors) == ({}, {})
    again = []
    asked, before = again, asked
    ask_by_turns((side("a"), side("b")), contexts, QUERIES, seed=1)
    assert again == before


def test_the_figures_are_those_of_the_paired_comparison():
    duel = compare_answers(
        (right_on(range(20)), right_on(range(10, 50))), QUERIES, ACCEPTED, [F1, EXACT], seed=0
    )
    b = np.array([10 <= n < 50 for n in range(60)], dtype=float)
    a = np.array([n < 20 for n in range(60)], dtype=float)
    expected = compare_paired(b, a, seed=0)
    assert duel.metrics["exact_match"][0] == expected
    # 40 of 60 less 20 of 60
    assert expected.mean_difference == pytest.approx(1 / 3)
    assert (expected.wins, expected.losses) == (30, 10)
    # Holm over two equal p-values: twice each.
    assert duel.metrics["token_f1"][1] == pytest.approx(2 * expected.p_value)
    assert duel.sentence.startswith("Take B: token_f1 0.667 against 0.333, +0.333 [+0.")
    assert [group.group for group in duel.by_type] == ["even", "odd"]
    json.dumps(duel.to_record())


def test_the_sentence_says_what_to_do():
    def sentence(a, b):
        return compare_answers((right_on(a), right_on(b)), QUERIES, ACCEPTED, [F1], seed=0).sentence

    assert sentence(range(40), range(5)).startswith("Take A: ")
    assert sentence(range(40), range(40)).startswith("Keep A: no difference")
    few = sentence(range(20), range(16, 44))  # 16 lost, 24 gained
    assert few.startswith("Not enough queries: the difference may be chance")
    assert few.endswith("; a difference of this size would need about 294 queries to show.")
    hopeless = sentence(range(30), range(2, 33))  # 2 lost, 3 gained
    assert hopeless.endswith(". More queries will hardly decide it.")
    lower = sentence(range(30), range(2, 31))  # 2 lost, 1 gained
    assert lower.endswith(". Nothing speaks for B: keep A.")


def test_no_answer_is_scored_as_an_empty_one_and_told():
    partial = Answers({"q0": "answer q0"}, {})
    duel = compare_answers((right_on(range(60)), partial), QUERIES, ACCEPTED, [F1], seed=0)
    assert duel.metrics["token_f1"][0].treatment_mean == pytest.approx(1 / 60)
    assert duel.remarks == ("B gave no answer to 59 queries; each is scored as an empty one",)


def test_a_call_that_fails_has_given_no_answer():
    def fails_at_times(context, query):
        if query == "question 7?":
            raise ValueError("context too long")
        return None if query == "question 8?" else "answer"

    def always(context, query):
        raise RuntimeError("no credit")

    contexts = (["c"] * 60, ["c"] * 60)
    answers = ask_by_turns((fails_at_times, fails_at_times), contexts, QUERIES, seed=0)
    duel = compare_answers(answers, QUERIES, ACCEPTED, [F1], seed=0)
    assert duel.remarks[0] == "A failed on 1 queries, such as: ValueError: context too long"
    assert duel.remarks[1].startswith("A gave no answer to 2 queries")
    with pytest.raises(TunerError, match="B failed on all 60 queries: RuntimeError: no credit"):
        ask_by_turns((fails_at_times, always), contexts, QUERIES, seed=0)


def test_questions_without_an_expected_answer_are_left_out():
    accepted = {"q1": ("answer q1",), "q2": ("", "answer q2"), "q3": ("",), "q4": ()}
    duel = compare_answers((right_on({1}), right_on({2})), QUERIES, accepted, [F1], seed=0)
    assert [query.id for query in duel.queries] == ["q1", "q2"]
    with pytest.raises(InputError, match="none of the queries has an expected answer"):
        compare_answers((right_on({1}), right_on({2})), QUERIES, {}, [F1], seed=0)
    with pytest.raises(InputError, match="at least one similarity"):
        compare_answers((right_on({1}), right_on({2})), QUERIES, ACCEPTED, [], seed=0)
