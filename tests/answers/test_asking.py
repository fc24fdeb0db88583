"""A function is asked for answers: kept as they come, within a budget, and given up in time."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from tuner.answers.answerer import Answerer, Reply
from tuner.answers.asking import Asking, Plan, ask_all
from tuner.core.errors import InputError, OutageError, TunerError

QUESTIONS = [Asking(f"q{number}", f"Who is {number}?", ("a", "b")) for number in range(10)]


def good(query, passages):
    return len(query) / 100


def asked(function, file, plan=None, questions=QUESTIONS, said=None, waits=None):
    return ask_all(
        questions,
        Answerer("mine:good", function),
        plan or Plan(),
        file,
        say=(said if said is not None else []).append,
        wait=(waits if waits is not None else []).append,
    )


@pytest.mark.parametrize(
    ("given", "reply"),
    [
        (0.5, Reply(0.5)),
        (True, Reply(1.0)),
        (np.float32(0.5), Reply(0.5)),
        (-3, Reply(-3.0)),
        ({"quality": 1, "answer": "Ada"}, Reply(1.0, "Ada")),
        ({"quality": 0.5, "answer": None, "money": 0.2}, Reply(0.5, "", 0.2)),
        ({"quality": 0.5, "money": -1.0}, Reply(0.5)),
    ],
)
def test_a_number_or_a_mapping_with_one_is_a_quality(given, reply):
    assert Answerer("mine", lambda query, passages: given).ask("q", ["a"]) == reply


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (math.nan, "mine returned nan, which is no quality; return a number"),
        (None, "mine returned None, which is no quality"),
        ("0.5", "mine returned '0.5', which is no quality"),
        ([0.5], r"mine returned \[0.5\], which is no quality"),
        ({"quality": math.inf}, "mine returned inf"),
        ({"answer": "Ada"}, "mine returned a mapping with 'answer' and no 'quality'"),
        ({}, "with no key and no 'quality'"),
    ],
)
def test_anything_else_is_none_and_it_is_said_what_to_return(given, problem):
    import re

    reply = Answerer("mine", lambda query, passages: given).ask("q", ["a"])
    assert reply.quality is None
    assert re.search(problem, reply.problem)
    assert "{'quality': 0.8" in reply.problem


def test_a_function_is_found_by_its_name_and_must_take_two_arguments():
    with pytest.raises(InputError, match="no_such_module"):
        Answerer.load("no_such_module:function")
    with pytest.raises(InputError, match=r"would be given 2 arguments: query, passages; write a"):
        Answerer.load("json:loads")


def test_every_question_is_asked_once_in_an_order_that_is_drawn(tmp_path):
    seen = []

    def function(query, passages):
        seen.append(query)
        return good(query, passages)

    twice = [*QUESTIONS, *QUESTIONS]
    found = asked(function, tmp_path / "kept", questions=twice)
    assert sorted(seen) == [one.query for one in QUESTIONS]
    assert seen != sorted(seen)
    assert found.values == [good(one.query, ()) for one in twice]
    assert (found.asked, found.kept, found.failed, found.money) == (10, 0, 0, None)
    assert found.sentence == "asked: 10 answers, 0 were kept from before"
    second = []
    asked(lambda query, passages: second.append(query) or 1.0, tmp_path / "other")
    assert second == seen
    other = []
    plan = Plan(seed=1)
    asked(lambda query, passages: other.append(query) or 1.0, tmp_path / "another", plan)
    assert other != seen


def test_what_was_answered_is_never_asked_again_even_after_a_kill(tmp_path):
    calls = []

    def function(query, passages):
        calls.append(query)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return {"quality": good(query, passages), "money": 0.5}

    with pytest.raises(KeyboardInterrupt):
        asked(function, tmp_path / "kept")
    found = asked(function, tmp_path / "kept")
    assert len(calls) == 11  # the fourth was lost on its way
    assert (found.asked, found.kept, found.money) == (7, 3, 5.0)
    again = asked(function, tmp_path / "kept")
    assert (again.asked, again.kept, again.values) == (0, 10, found.values)


def test_a_second_round_is_another_question(tmp_path):
    calls = []
    first, second = QUESTIONS[0], Asking("q0", QUESTIONS[0].query, ("a", "b"), round=1)
    asked(
        lambda query, passages: calls.append(1) or 1.0, tmp_path / "kept", questions=[first, second]
    )
    assert len(calls) == 2


def test_answers_of_another_function_and_torn_lines_are_not_used(tmp_path):
    file, said = tmp_path / "kept", []
    asked(good, file)
    file.write_text(file.read_text() + '{"answerer": "x", "k')
    found = ask_all(QUESTIONS[:2], Answerer("other", good), Plan(), file, say=said.append)
    assert (found.asked, found.kept) == (2, 0)
    assert said == [
        f"note: 10 answers in {file} are of another function, and are not used",
        f"note: 1 answers in {file} were torn by a crash, and are not used",
    ]
    assert asked(good, file).asked == 0


def test_a_file_of_another_kind_is_refused_with_its_line(tmp_path):
    file = tmp_path / "kept"
    file.write_text('{"query_id": "q1"}\n')
    with pytest.raises(InputError, match=r"holds no quality of an answer .* another --kept FILE"):
        asked(good, file)
    assert file.read_text() == '{"query_id": "q1"}\n'
    with pytest.raises(InputError, match="is no file"):
        asked(good, tmp_path)


def test_what_raises_is_tried_again_and_waited_for_only_where_a_system_is_away(tmp_path):
    waits, calls = [], []

    def function(query, passages):
        calls.append(query)
        if len(calls) < 3:
            raise (ConnectionError if len(calls) == 1 else ValueError)("no")
        return 1.0

    found = asked(function, tmp_path / "kept", questions=QUESTIONS[:1], waits=waits)
    assert (found.asked, len(calls), waits) == (1, 3, [1.0])


def test_one_that_fails_is_left_out_and_asked_by_the_next_run(tmp_path):
    def function(query, passages):
        if "3" in query and not is_mended:
            raise ValueError("no 3")
        return 1.0

    is_mended = False
    found = asked(function, tmp_path / "kept", Plan(retries=1))
    assert (found.asked, found.failed) == (9, 1)
    assert found.reason == "mine:good failed: ValueError: no 3"
    assert [math.isnan(value) for value in found.values].index(True) == 3
    is_mended = True
    found = asked(function, tmp_path / "kept", Plan(retries=1))
    assert (found.asked, found.kept, found.failed) == (1, 9, 0)


def test_five_in_a_row_without_an_answer_interrupt(tmp_path):
    calls = []

    def function(query, passages):
        calls.append(query)
        if len(calls) > 2:
            raise ConnectionError("refused")
        return 1.0

    with pytest.raises(OutageError) as caught:
        asked(function, tmp_path / "kept", Plan(retries=1))
    assert len(calls) == 2 + 5 * 2
    assert str(caught.value) == (
        "mine:good failed: ConnectionError: refused (5 in a row); the answers so far are kept in "
        f"{tmp_path / 'kept'}: run the same command again"
    )
    assert caught.value.exit_code == 130
    assert asked(good, tmp_path / "kept").kept == 2


def test_answers_of_no_use_are_kept_and_given_up_in_time(tmp_path):
    file = tmp_path / "kept"
    with pytest.raises(TunerError, match=r"returned nan.*\(5 in a row\).*mend the function"):
        asked(lambda query, passages: math.nan, file, Plan(retries=1))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == 5 * 2
    assert {line["quality"] for line in lines} == {None}


def test_nothing_is_asked_that_may_cost_more_than_is_left(tmp_path):
    file, calls = tmp_path / "kept", []

    def function(query, passages):
        calls.append(query)
        return {"quality": 1.0, "money": 0.3}

    with pytest.raises(TunerError) as caught:
        asked(function, file, Plan(budget=1.0))
    assert len(calls) == 3
    assert str(caught.value) == (
        "the budget of 1 does not allow another answer, which may cost 0.3: 0.9 are spent on 3 "
        f"answers, 7 more would cost about 2.1; the answers are kept in {file}: go on with a "
        "larger --budget"
    )
    assert asked(function, file, Plan(budget=3.0)).money == pytest.approx(3.0)


def test_a_budget_needs_a_price_or_a_function_that_tells(tmp_path):
    with pytest.raises(InputError, match="give --price"):
        asked(good, tmp_path / "kept", Plan(budget=1.0))
    assert asked(good, tmp_path / "priced", Plan(budget=1.0, price=0.1)).money == pytest.approx(1.0)
    with pytest.raises(TunerError, match=r"may cost 0\.2: 0 are spent on 0 answers, 10 more"):
        asked(good, tmp_path / "third", Plan(budget=0.1, price=0.2))
