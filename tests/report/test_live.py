"""A study that is watched: what a page is told, how much of it, and that nothing is written."""

from __future__ import annotations

import csv
import io
import json
import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from tuner.core.errors import InputError
from tuner.core.journal import read_journal
from tuner.core.local_server import Asked
from tuner.report.live.watched import Watched, rows_of
from tuner.report.query_data import query_data
from tuner.report.review import read_review
from tuner.report.study_data import study_data


class Growing:
    """A run directory whose journal is let grow line by line, as a study would write it."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir, self.path = run_dir, run_dir / "journal.jsonl"
        self.rest = self.path.read_bytes().splitlines(keepends=True)
        self.path.write_bytes(b"")
        self.grow(1)

    def grow(self, lines: int | None = None, *, torn: int = 0) -> None:
        lines = len(self.rest) if lines is None else lines
        now, self.rest = self.rest[:lines], self.rest[lines:]
        with self.path.open("ab") as file:
            file.writelines(now)
            if torn:
                file.write(self.rest[0][:torn])

    def mend(self, torn: int) -> None:
        """Finish the line of which so many bytes are there."""
        with self.path.open("ab") as file:
            file.write(self.rest.pop(0)[torn:])

    def note(self, **record: object) -> None:
        with self.path.open("ab") as file:
            file.write(json.dumps({"event": "note", **record}).encode() + b"\n")


@pytest.fixture
def growing(study):
    return lambda **options: Growing(study(**options))


def everything(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in [folder, *folder.rglob("*")]
    }


def test_only_what_is_new_is_told(growing):
    one = growing()
    one.grow(1 + 2 * 5)  # started, and five trials
    watched = Watched(one.run_dir)
    made = watched.page()
    assert (made.position, made.trials) == (10, 5)
    assert "numbers" not in watched.news(made.stage, made.position)
    one.grow(2)
    news = watched.news(made.stage, made.position)
    assert (news["stage"], news["position"], news["numbers"]) == (made.stage, 12, [5])
    assert len(news["study"]["state"]) == 1
    assert {len(column) for column in news["study"]["columns"].values()} == {1}
    one.grow(1)  # asked, and under way
    again = watched.news(made.stage, 12)
    assert again["numbers"] == [6]
    assert again["study"]["states"][again["study"]["state"][0]] == "running"
    assert "6 of about 32 trials told, 1 under way" in again["state"]["said"]


def test_an_update_is_as_large_after_thousands_of_trials_as_after_a_few(growing):
    one = growing(arms=(("random", 5_001),), queries=2, keeps_values=False, state=None)
    one.grow(1 + 2 * 20)
    watched = Watched(one.run_dir)
    watched.news("", 0)

    def size_of_next(trials):
        position = watched.news("", 0)["position"]
        one.grow(2 * trials)
        news = watched.news("0-1", position)
        assert len(news["numbers"]) == trials
        return len(json.dumps(news))

    few = size_of_next(1)
    one.grow(2 * 4_900)
    many = size_of_next(1)
    # A number may have some digits more.
    assert abs(many - few) < 200
    assert many < 6_000


def test_each_line_of_a_journal_is_read_once(growing, monkeypatch):
    one = growing(arms=(("random", 300),), keeps_values=False, state=None)
    read = []

    class Counting(io.FileIO):
        def read(self, *arguments):
            content = super().read(*arguments)
            read.append(len(content))
            return content

    monkeypatch.setattr(Path, "open", lambda path, mode: Counting(path, "r"))
    one_by_one = Watched(one.run_dir)
    lines = len(one.rest)
    monkeypatch.undo()
    longest = max(map(len, one.rest))
    for _ in range(lines):
        one.grow(1)
        with monkeypatch.context() as patched:
            patched.setattr(Path, "open", lambda path, mode: Counting(path, "r"))
            one_by_one.news("0-1", 0)
    # Each time the new line, and the one before it, by which the file is known to be the same.
    assert sum(read) <= 2 * one.path.stat().st_size + longest * 2


def test_updates_add_up_to_the_page_of_the_whole(growing):
    one = growing(failing=2, stopped=3, state=None)
    watched = Watched(one.run_dir)
    rows, position = {}, 0
    while one.rest:
        one.grow(3)
        news = watched.news("0-1", position)
        position = news["position"]
        for row, number in enumerate(news.get("numbers", ())):
            rows[number] = {key: column[row] for key, column in news["study"]["columns"].items()}
    whole = study_data(read_review(one.run_dir))["columns"]
    assert {n: {k: whole[k][n] for k in rows[n]} for n in rows} == rows
    assert len(rows) == len(next(iter(whole.values())))


def test_arms_keep_their_colours_in_an_update(study):
    review = read_review(study())
    (arm,) = rows_of(review, [len(review.trials) - 1])["arms"]
    assert arm == {"name": "tpe", "place": review.arm_places["tpe"]}


def test_a_torn_last_line_waits_for_its_rest(growing):
    one = growing()
    one.grow(1 + 2, torn=20)
    watched = Watched(one.run_dir)
    assert watched.news("0-1", 0)["numbers"] == [0]
    one.mend(20)
    assert watched.news("0-1", 2)["numbers"] == [1]


def test_a_resume_that_cuts_the_torn_line_off_is_followed(growing):
    one = growing()
    one.grow(1 + 2 * 3, torn=20)
    watched = Watched(one.run_dir)
    before = watched.news("", 0)
    one.path.write_bytes(one.path.read_bytes()[:-20])
    one.note(kind="resumed", pid=1, host="elsewhere", time=0.0)
    after = watched.news(before["stage"], before["position"])
    assert after["stage"] != before["stage"]  # a page of it is loaded again
    assert "numbers" not in after
    assert after["position"] == before["position"]


def test_another_study_in_its_place_is_noticed(growing, study):
    one = growing()
    one.grow()
    watched = Watched(one.run_dir)
    made = watched.page()
    other = study(seed=2, arms=(("grid", 3),))
    one.path.write_bytes((other / "journal.jsonl").read_bytes())
    news = watched.news(made.stage, made.position)
    assert news["stage"].startswith("1-")
    assert news["position"] == 2 * 4


def test_the_end_is_another_stage_with_its_verdict(growing):
    one = growing()
    one.grow(len(one.rest) - 1)
    watched = Watched(one.run_dir)
    made = watched.page()
    assert "Still searching</p>" in made.html
    assert "Go on with: tuner resume" not in made.html  # while another process is at it
    one.note(kind="ended", time=0.0, state="finished")
    news = watched.news(made.stage, made.position)
    assert news["state"] == {
        "is_over": False,
        "said": "The search has ended; its verdict is being reached.",
    }
    assert news["stage"] == made.stage
    one.grow()
    news = watched.news(made.stage, made.position)
    assert news["state"] == {"is_over": True, "said": "The study has ended: 33 trials told."}
    assert news["stage"] != made.stage
    sentence = read_review(one.run_dir).verdict["finding"]
    assert sentence in watched.page().html


def test_a_process_that_is_gone_is_said_and_one_elsewhere_is_not(growing):
    one = growing(state=None)
    one.grow()
    watched = Watched(one.run_dir)

    def said(**opening):
        one.note(kind="resumed", time=0.0, **opening)
        return watched.news("", 0)["state"]["said"]

    here = socket.gethostname()
    assert said(pid=os.getpid(), host=here).startswith("The study runs: ")
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    gone = said(pid=child, host=here)
    assert gone.startswith(f"The study's process ({child}) is gone without an end; 32 of about 32")
    assert gone.endswith(f"To go on: tuner resume {one.run_dir}")
    assert said(pid=child, host="another-machine").startswith("The study runs: ")


def test_figures_are_made_anew_when_trials_have_grown_by_a_tenth(growing):
    one = growing(state=None)
    one.grow(1 + 2 * 20)
    now = [0.0]
    watched = Watched(one.run_dir, clock=lambda: now[0])
    made = watched.page()
    now[0] += 1000.0
    one.grow(2)
    assert not watched.news(made.stage, made.position, 20)["is_grown"]  # 21 are less than 22
    one.grow(2)
    assert watched.news(made.stage, made.position, 20)["is_grown"]
    watched.page()
    assert not watched.news(made.stage, made.position, 22)["is_grown"]


def test_each_of_two_pages_is_told_when_its_own_figures_are_old(growing):
    one = growing(state=None)
    one.grow(1 + 2 * 10)
    watched = Watched(one.run_dir, clock=iter([0.0, 10.0, 500.0, 500.0, 510.0]).__next__)
    made = watched.page()
    one.grow(2 * 5)
    assert watched.news(made.stage, made.position, 10)["is_grown"]
    assert watched.page().trials == 15  # for the one
    assert not watched.news(made.stage, made.position, 15)["is_grown"]
    assert watched.news(made.stage, made.position, 10)["is_grown"]  # the other one: it is made


def test_figures_take_no_more_than_a_twentieth_of_the_time(growing):
    one = growing(state=None)
    one.grow(1 + 2 * 10)
    times = iter([0.0, 10.0, 150.0, 211.0])  # the page took 10 s
    watched = Watched(one.run_dir, clock=lambda: next(times))
    made = watched.page()
    one.grow(2 * 10)
    assert not watched.news(made.stage, made.position, 10)["is_grown"]  # 140 s later
    assert watched.news(made.stage, made.position, 10)["is_grown"]  # 201 s later


def test_what_is_new_is_told_while_the_page_is_made(growing):
    one = growing(state=None)
    one.grow(1 + 2 * 10)
    watched = Watched(one.run_dir)
    made = watched.page()
    one.grow(2 * 5)
    with watched._making:  # as whoever asks for the page has it meanwhile
        news = watched.news(made.stage, made.position, 10)
    assert news["numbers"] == [10, 11, 12, 13, 14]
    assert not news["is_grown"]  # the page would have to wait
    assert watched.page().trials == 15


def test_the_files_of_the_queries_stand_beside_the_page(growing):
    one = growing()
    one.grow()
    expected = dict(query_data(read_review(one.run_dir)).files)
    watched = Watched(one.run_dir)
    assert expected
    for name, text in expected.items():
        answer = watched.answer(Asked(f"report-data/{name}", {}))
        assert (answer.text, answer.kind) == (text, "text/javascript")
    assert watched.answer(Asked("report-data/queries-9999.js", {})) is None
    assert watched.answer(Asked("report-data/../journal.jsonl", {})) is None


def test_nothing_is_written_into_the_run_directory(growing):
    one = growing()
    one.grow()
    before = everything(one.run_dir)
    watched = Watched(one.run_dir)
    made = watched.page()
    watched.news(made.stage, 0)
    watched.answer(Asked("figures/convergence.csv", {}))
    assert everything(one.run_dir) == before


def test_the_page_may_ask_its_server_and_a_report_may_not(growing):
    one = growing()
    one.grow()
    watched = Watched(one.run_dir)
    answer = watched.answer(Asked("", {}))
    assert "connect-src 'self';" in answer.policy
    assert answer.policy.replace("'", "&#39;") in answer.text or answer.policy in answer.text
    from tuner.report.page_view import to_html
    from tuner.report.writing import make_page

    report = to_html(make_page(read_review(one.run_dir)))
    assert "connect-src" not in report
    assert 'id="live"' not in report


def test_figures_have_their_numbers_and_there_are_no_other_files(growing):
    one = growing()
    one.grow()
    watched = Watched(one.run_dir)
    answer = watched.answer(Asked("figures/convergence.csv", {}))
    rows = list(csv.reader(io.StringIO(answer.text)))
    assert rows[0] == ["curve", "trials", "trial", "best_objective"]
    for name in ("figures", "figures/", "figures/../journal.jsonl", "journal.jsonl", "..", "x"):
        assert watched.answer(Asked(name, {})) is None
    assert watched.answer(Asked("new", {"since": "0", "stage": ""}, body={})) is None


@pytest.mark.parametrize("since", ["", "-1", "x", "١"])
def test_a_wrong_question_is_told(growing, since):
    one = growing()
    one.grow()
    with pytest.raises(InputError, match="is no whole number"):
        Watched(one.run_dir).answer(Asked("new", {"since": since}))


def test_hostile_texts_stay_texts(growing):
    one = growing(texts="</script><script>alert(1)</script>", failing=1, state=None)
    one.grow()
    assert "<script>alert" not in Watched(one.run_dir).page().html


def test_a_study_before_its_first_trial_has_a_page(growing):
    one = growing()
    watched = Watched(one.run_dir)
    made = watched.page()
    assert 'id="live"' in made.html
    assert made.position == 0
    one.grow(2)
    assert watched.news("0-1", 0)["numbers"] == [0]


def test_what_is_no_study_is_named(tmp_path):
    with pytest.raises(InputError, match="is not a run directory"):
        Watched(tmp_path / "nowhere")
    (tmp_path / "journal.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match="this line cannot be right"):
        Watched(tmp_path).page()


def test_the_whole_journal_is_what_its_parts_add_up_to(growing):
    one = growing(failing=1)
    watched = Watched(one.run_dir)
    while one.rest:
        one.grow(1, torn=0)
        watched.news("", 0)
    content = watched._reader.content()
    assert replace(content, torn_bytes=0) == read_journal(one.path)
