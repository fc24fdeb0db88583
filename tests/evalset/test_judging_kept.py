"""What a judge has answered is kept, and used again only where it fits; and a budget is kept to."""

from __future__ import annotations

import json
import time

import pytest

from tests.evalset.judge_service import SCALE, graded, model, serving, sheet
from tuner.core.errors import InputError, TunerError
from tuner.evalset.judges import ChatJudge, FunctionJudge, Scale
from tuner.evalset.judging import Plan
from tuner.evalset.sheets import Row


@pytest.fixture
def service():
    with serving() as one:
        yield one


def test_a_build_that_was_stopped_goes_on_and_pays_nothing_twice(service, tmp_path):
    rows, answers = sheet(), tmp_path / "answers"
    service.fails = {7: 500}
    with pytest.raises(TunerError, match=r"500.*are kept in .*: run again"):
        graded(rows, model(service), answers)
    paid = len(answers.read_text().splitlines())
    assert 4 <= paid <= 7  # those that were asked together with the one that failed count as well
    before = service.calls
    found = graded(rows, model(service), answers)
    assert service.calls - before == 12 - paid
    assert found.kept == paid
    again = graded(rows, model(service), answers)
    assert (again.asked, again.kept) == (0, 12)
    assert again.grades == found.grades
    assert again.money == found.money


@pytest.mark.parametrize("torn", ['{"judge": "x", "key', '{"ju', "\0\0\0\0"])
def test_a_line_that_a_crash_has_torn_is_passed_over(service, tmp_path, torn):
    answers, said = tmp_path / "answers", []
    graded(sheet(1), model(service), answers)
    answers.write_text(answers.read_text() + torn)
    found = graded(sheet(2), model(service), answers, said=said)
    assert found.kept == 4
    assert said == [f"note: 1 answers in {answers} were torn by a crash, and are not used"]
    again = graded(sheet(2), model(service), answers)  # the torn one is in the middle now
    assert again.asked == 0


@pytest.mark.parametrize("line", ['{"_id": "q1", "text": "Where?"}', "query_id,grade", "[1]", "{}"])
def test_a_file_of_another_kind_is_refused_with_its_line(service, tmp_path, line):
    answers = tmp_path / "answers"
    graded(sheet(1), model(service), answers)
    before = answers.read_text() + line + "\n"
    answers.write_text(before)
    with pytest.raises(InputError, match="holds no answer of a judge") as caught:
        graded(sheet(2), model(service), answers)
    assert (caught.value.problems[0].file, caught.value.problems[0].line) == (str(answers), 5)
    assert answers.read_text() == before


def test_an_answer_is_on_the_disk_while_others_are_waited_for(service, tmp_path):
    answers, seen = tmp_path / "answers", []

    def wait_for_the_others(number):
        end = time.monotonic() + 5.0
        while number == 4 and time.monotonic() < end:
            seen.append(len(answers.read_text().splitlines()) if answers.exists() else 0)
            if seen[-1] == 3:
                return
            time.sleep(0.01)

    service.meanwhile = wait_for_the_others
    graded(sheet(), model(service), answers)
    assert seen[-1] == 3


def test_a_kill_in_the_fourth_query_loses_none_of_three(tmp_path):
    calls = []

    def grade(query, passages):
        calls.append(query)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return [1] * len(passages)

    rows, answers, plan = sheet(4, 3), tmp_path / "answers", Plan(twice=0.0)
    judge = FunctionJudge("grade", grade, SCALE)
    with pytest.raises(KeyboardInterrupt):
        graded(rows, judge, answers, plan)
    found = graded(rows, judge, answers, plan)
    assert (found.kept, found.asked) == (3, 1)


def test_answers_that_come_after_one_of_no_price_are_kept(service, tmp_path):
    answers = tmp_path / "answers"
    graded(sheet(1), model(service), answers)
    with pytest.raises(InputError, match="--budget needs to know what answers cost"):
        graded(sheet(), model(service, price=None), answers, Plan(batch=4, budget=10.0))
    assert len(answers.read_text().splitlines()) == service.calls


def test_answers_in_other_grades_are_not_used(service, tmp_path):
    answers = tmp_path / "answers"
    graded(sheet(1), model(service), answers)
    two = ChatJudge.build(service.url, "small", Scale((0, 1)), key=None, retries=0)
    service.says = dict.fromkeys(range(5, 100), "[0, 1, 0, 1]")
    found = graded(sheet(1, 4), two, answers, Plan(batch=4, twice=0.0))
    assert found.kept == 0
    assert set(found.grades["q0"].values()) == {0.0, 1.0}


def test_scores_that_were_kept_are_not_taken_for_grades(tmp_path):
    answers, plan, said = tmp_path / "answers", Plan(twice=0.0, retries=0), []

    def score(query, passages):
        return [0.73] * len(passages)

    graded(sheet(1, 2), FunctionJudge("score", score, Scale((0, 1), (0.5,))), answers, plan)
    judge = FunctionJudge("score", score, Scale((0, 1)))
    found = graded(sheet(1, 2), judge, answers, plan, said=said)
    assert found.grades == {}
    assert found.kept == 0
    assert "of other grades" in said[0]


def test_a_kept_answer_is_seen_through_as_one_that_comes(service, tmp_path):
    answers = tmp_path / "answers"
    plan = Plan(batch=4, twice=0.0)
    graded(sheet(1, 4), model(service), answers, plan)
    line = json.loads(answers.read_text())
    answers.write_text(json.dumps(line | {"values": [0, 7, 1, 2]}) + "\n")
    found = graded(sheet(1, 4), model(service), answers, plan)
    assert found.asked == 1
    assert sorted(found.grades["q0"].values()) == [0.0, 1.0, 2.0, 3.0]
    assert found.money == pytest.approx(0.04)


def test_the_folder_of_the_answers_is_made_before_one_is_paid_for(service, tmp_path):
    answers = tmp_path / "data" / "answers"
    assert graded(sheet(1), model(service), answers).asked == 4
    assert len(answers.read_text().splitlines()) == 4
    (tmp_path / "file").touch()
    before = service.calls
    for path in (tmp_path / "file" / "answers", tmp_path):
        with pytest.raises(InputError):
            graded(sheet(1), model(service), path)
    assert service.calls == before


def test_the_budget_is_never_exceeded_and_going_on_pays_for_the_rest_only(service, tmp_path):
    rows, answers = sheet(), tmp_path / "answers"
    judge = model(service, price=(10.0, 2000.0))  # .0101 each, and up to .0341 by its price
    with pytest.raises(TunerError, match=r"budget of 0\.07 .* 4 answers, 8 more would cost about"):
        graded(rows, judge, answers, Plan(batch=4, twice=0.5, budget=0.07))
    assert service.calls == 4
    found = graded(rows, judge, answers, Plan(batch=4, twice=0.5, budget=1.0))
    assert service.calls == 12
    assert found.money == pytest.approx(12 * 0.0101)


def test_a_budget_is_spent_to_its_last_cent(tmp_path):
    # As a computer adds them up, 39 of 0.01 are 0.39000000000000007.
    judge = FunctionJudge("grade", lambda *_: {"grades": [1], "money": 0.01}, SCALE)
    rows, answers = sheet(50, 1), tmp_path / "answers"
    with pytest.raises(TunerError, match=r"0\.4 are spent on 40 answers, 10 more would cost"):
        graded(rows, judge, answers, Plan(twice=0.0, budget=0.4))
    assert len(answers.read_text().splitlines()) == 40


@pytest.mark.parametrize("budget", [0.05, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("is_priced", [True, False])
def test_a_long_request_is_not_sent_where_it_may_pass_the_budget(
    service, tmp_path, budget, is_priced
):
    rows = [
        Row(f"q{q}", "query", f"d{q}", "", f"worth {q % 4} " + "long " * 400 * (q % 3))
        for q in range(9)
    ]
    answers = tmp_path / "answers"
    paid = []

    def grade(query, passages):
        paid.append((len(query) + len(passages[0])) / 2000)
        return {"grades": [1], "money": paid[-1]}

    service.counts_tokens = True
    judge = model(service) if is_priced else FunctionJudge("grade", grade, SCALE)
    with pytest.raises(TunerError, match="does not allow another answer"):
        graded(rows, judge, answers, Plan(twice=0.0, budget=budget))
    lines = answers.read_text().splitlines()
    spent = sum(json.loads(line)["money"] for line in lines)
    assert spent <= budget
    assert len(lines) == (len(paid) or service.calls)
    assert lines or budget < 0.1


def test_answers_of_another_model_are_not_used(service, tmp_path):
    answers, said = tmp_path / "answers", []
    graded(sheet(1), model(service), answers)
    other = ChatJudge.build(service.url, "large", SCALE, key=None, retries=0)
    found = graded(sheet(1), other, answers, said=said)
    assert found.kept == 0
    assert "are of another judge" in said[0]
