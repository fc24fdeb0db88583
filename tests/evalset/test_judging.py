"""A judge grades a sheet: over real HTTP on the loopback, by a function, killed and gone on."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.evalset.judge_service import KEY, SCALE, graded, model, serving, sheet
from tuner.cli.dataset.build import build
from tuner.core.errors import InputError, TunerError
from tuner.datasets import open_dataset
from tuner.evalset.judges import FunctionJudge, Scale
from tuner.evalset.judging import Plan, askings
from tuner.evalset.sheets import Row, write_sheet


@pytest.fixture
def service():
    with serving() as one:
        yield one


def test_every_passage_gets_the_grade_that_the_model_gave_it(service, tmp_path):
    rows = sheet()
    found = graded(rows, model(service), tmp_path / "answers")
    expected = {(row.query_id, row.document_id): float(row.passage[-1]) for row in rows}
    assert {
        (query, document): grade
        for query, of in found.grades.items()
        for document, grade in of.items()
    } == expected
    # 4 queries of 6 passages, 4 at once: 8 requests; half of the queries again: 4 more.
    assert found.asked == service.calls == 12
    assert found.money == pytest.approx(12 * (10 * 1000 + 5 * 2000) / 1e6)
    assert found.tokens == (120, 60)
    assert (found.agreement.pairs, found.agreement.kappa) == (12, 1.0)


def test_passages_are_asked_in_another_order_the_second_time():
    rows = sheet(queries=1, passages=8)
    first, second = askings(rows, Plan(batch=8, twice=1.0))
    assert [row.document_id for row in first.rows] != [row.document_id for row in second.rows]
    assert set(first.rows) == set(second.rows) == set(rows)
    assert askings(rows, Plan(batch=8, twice=1.0)) == [first, second]
    assert askings(rows, Plan(batch=8, twice=1.0, seed=1))[0].rows != first.rows


@pytest.mark.slow
def test_a_service_that_is_busy_is_asked_again(service, tmp_path):
    service.fails = {1: 429, 3: 503}
    judge = model(service, retries=2)
    found = graded(sheet(1), judge, tmp_path / "answers", Plan(batch=4, twice=0.0))
    assert service.calls == 4
    assert found.asked == 2
    assert len(found.grades["q0"]) == 6


def test_what_cannot_be_read_is_paid_for_and_asked_again(service, tmp_path):
    service.says = {1: "I would say 2 and 3.", 2: "[0, 1]", 3: "[0, 9, 9, 9]"}
    answers = tmp_path / "answers"
    found = graded(sheet(1, 4), model(service), answers, Plan(batch=4, twice=0.0, retries=3))
    assert found.money == pytest.approx(4 * 0.02)
    assert len(found.grades["q0"]) == 4
    problems = [json.loads(line)["problem"] for line in answers.read_text().splitlines()]
    assert "no JSON list" in problems[0]
    assert "2 values for 4 passages" in problems[1]
    assert "9, which is none of the grades 0, 1, 2, 3" in problems[2]
    assert problems[3] == ""


def test_passages_that_fail_together_are_asked_one_by_one_and_then_left_out(service, tmp_path):
    class Picky(FunctionJudge):
        pass

    def grade(query, passages):
        is_bad = any("0.2" in passage for passage in passages)
        return ["?"] * len(passages) if is_bad else [1] * len(passages)

    judge = Picky("picky", grade, SCALE)
    found = graded(sheet(1, 4), judge, tmp_path / "answers", Plan(batch=4, twice=0.0, retries=0))
    assert found.lacking == (("q0", "d2"),)
    assert set(found.grades["q0"]) == {"d0", "d1", "d3"}
    again = graded(sheet(1, 4), judge, tmp_path / "answers", Plan(batch=4, twice=0.0, retries=0))
    assert again.asked == 0


def test_a_judge_of_no_use_at_all_is_soon_given_up(service, tmp_path):
    service.says = dict.fromkeys(range(1, 100), "no")
    with pytest.raises(TunerError, match="no answer is of use: small returned no JSON list"):
        graded(sheet(20), model(service), tmp_path / "answers")
    assert service.calls <= 12


def test_the_key_comes_from_the_environment_and_is_written_nowhere(service, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    service.fails = {3: 401}
    judge = model(service, key="MY_KEY")
    with pytest.raises(TunerError) as caught:
        graded(sheet(), judge, tmp_path / "answers")
    assert service.keys[0] == f"Bearer {KEY}"
    assert KEY not in str(caught.value)
    assert KEY not in (tmp_path / "answers").read_text() + json.dumps(judge.record())


def test_a_prompt_of_ones_own_is_filled_once(service, tmp_path):
    rows = [Row("q", "which {passages}?", "d", "A title", "worth 3 {query}")]
    judge = model(service, prompt="Q: {query}\nP: {passages}\nG: {grades}")
    graded(rows, judge, tmp_path / "answers", Plan(twice=0.0))
    prompt = service.prompts[0]
    assert prompt.startswith(
        "Q: which {passages}?\nP: Passage 1:\nA title\nworth 3 {query}\nG: 0: "
    )
    with pytest.raises(InputError, match=r"no place \{passages\}"):
        model(service, prompt="{query}")


def test_scores_become_grades_by_thresholds_that_cost_nothing_to_change(tmp_path):
    calls = []

    def score(query, passages):
        calls.append(query)
        return [-1.0, 0.5, 7.5]

    rows, answers, plan = sheet(1, 3), tmp_path / "answers", Plan(twice=0.0)
    strict = FunctionJudge("score", score, Scale((0, 1, 2), (0.0, 5.0)))
    found = graded(rows, strict, answers, plan)
    assert sorted(found.grades["q0"].values()) == [0.0, 1.0, 2.0]
    lenient = FunctionJudge("score", score, Scale((0, 1, 2), (-2.0, 5.0)))
    assert sorted(graded(rows, lenient, answers, plan).grades["q0"].values()) == [1.0, 1.0, 2.0]
    assert len(calls) == 1


def test_a_function_that_fails_is_called_again(tmp_path):
    calls, waits = [], []

    def grade(query, passages):
        calls.append(query)
        if len(calls) < 3:
            raise RuntimeError("overloaded")
        return {"grades": [2] * len(passages), "money": 0.5}

    judge = FunctionJudge("grade", grade, SCALE, retries=2, wait=waits.append)
    found = graded(sheet(1, 3), judge, tmp_path / "answers", Plan(twice=0.0, budget=2.0))
    assert waits == [1.0, 2.0]
    assert found.money == 0.5


JUDGE = """
def grade(query, passages):
    with open("calls", "a") as file:
        print(query, file=file)
    return [3 if "Vistula" in passage else 0 for passage in passages]
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("my_judge_of_tests.py").write_text(JUDGE)
    texts = {"d1": "Warsaw lies on the Vistula.", "d2": "Paris lies on the Seine."}
    with Path("corpus.jsonl").open("w") as file:
        for id_, text in texts.items():
            print(json.dumps({"_id": id_, "title": "", "text": text}), file=file)
    queries = {"q1": "Where is Warsaw?", "q2": "Which river?"}
    with Path("queries.jsonl").open("w") as file:
        for id_, text in queries.items():
            print(json.dumps({"_id": id_, "text": text}), file=file)
    rows = [
        Row(query, queries[query], document, "", texts[document])
        for query in queries
        for document in texts
    ]
    write_sheet("sheet.csv", rows)
    yield tmp_path
    sys.modules.pop("my_judge_of_tests", None)


def invoke(*arguments):
    given = ("judge", "sheet.csv", "--queries", "queries.jsonl", "--corpus", "corpus.jsonl")
    return CliRunner().invoke(build, [*given, "--out", "judged", *arguments])


def test_the_command_writes_a_data_set_and_who_graded_it(project):
    done = invoke("--by", "my_judge_of_tests:grade", "--twice", "1")
    assert done.exit_code == 0, done.output
    assert "2 queries, 4 judgements, 2 of them relevant: judged" in done.output
    assert "100 % of the 4 passages asked twice got the same grade" in done.output
    assert open_dataset("judged").qrels["q1"] == {"d1": 3.0, "d2": 0.0}
    record = json.loads(Path("judged/judge.json").read_text())
    assert record["judge"]["by"] == "my_judge_of_tests:grade"
    assert record["self_agreement"]["same"] == 1.0
    assert len(Path("calls").read_text().splitlines()) == 4


def test_the_command_asks_a_model_and_keeps_its_prompt(project, service, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    Path("corpus.jsonl").write_text(
        '{"_id": "d1", "title": "", "text": "worth 3"}\n{"_id": "d2", "text": "worth 0"}\n'
    )
    Path("sheet.csv").unlink()
    texts = {"d1": "worth 3", "d2": "worth 0"}
    write_sheet("sheet.csv", [Row("q1", "Where?", id_, "", text) for id_, text in texts.items()])
    done = invoke("--url", service.url, "--model", "small", "--price", "1000,2000", "--budget", "1")
    assert done.exit_code == 0, done.output
    assert open_dataset("judged").qrels["q1"] == {"d1": 3.0, "d2": 0.0}
    record = json.loads(Path("judged/judge.json").read_text())
    assert record["judge"]["model"] == "small"
    assert "{passages}" in record["judge"]["prompt"]
    assert record["money"] == pytest.approx(0.02)
    assert service.keys == [None]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--by", "a:b", "--url", "http://x"), "give --by or --url, not both"),
        (("--by", "my_judge_of_tests:nothing"), "has no 'nothing'"),
        (("--by", "my_judge_of_tests:grade", "--model", "m"), "--model belongs to --url"),
        (("--by", "my_judge_of_tests:grade", "--thresholds", "1,0,2"), "3 rising numbers"),
        (("--by", "my_judge_of_tests:grade", "--budget", "1"), "needs to know what answers cost"),
        (("--url", "http://127.0.0.1:1/v1"), "give --model"),
        (("--url", "ftp://x", "--model", "m"), "no HTTP URL"),
        (("--url", "http://x", "--model", "m", "--budget", "1"), "--budget needs --price"),
        (("--url", "http://x", "--model", "m", "--key", "NOT_SET"), "NOT_SET.*is not set"),
        (("--budget", "1"), "give --by or --url"),
    ],
)
def test_options_that_do_not_fit_are_refused(project, arguments, message):
    done = invoke(*arguments)
    assert isinstance(done.exception, InputError)
    assert re.search(message, str(done.exception))
    assert not Path("judged").exists()
