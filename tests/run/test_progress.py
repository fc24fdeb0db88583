"""What people see while something takes long, and what is said of where the time went."""

from __future__ import annotations

import io
import json
import threading
from itertools import pairwise

import pytest

from tuner.core.corpus import Corpus, Document, Query
from tuner.core.steps import INDEX, SEARCH, Phases, Step, duration, where_it_went
from tuner.core.study_record import ArmRecord
from tuner.core.trial import Trial, TrialState
from tuner.datasets import open_dataset
from tuner.retrieval.hybrid import Hybrid
from tuner.run.progress import Bars, Lines, Quiet
from tuner.study.loop import Event


class Clock:
    """A clock that is set by hand."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def lines(clock, capsys):
    shown = Lines(clock=clock)

    def at(seconds, step=None):
        clock.now = seconds
        if step is not None:
            shown.step(step)
        shown.tick()
        return capsys.readouterr().err

    return at


def test_a_phase_that_is_over_soon_is_not_told(lines):
    assert lines(0.0, Step(INDEX)) == ""
    assert lines(1.9, Step(INDEX, 5, 10)) == ""
    assert lines(1.9, Step(INDEX, is_over=True)) == ""
    assert lines(60.0) == ""


def test_a_long_one_has_a_line_now_and_then_with_the_time_left(lines):
    lines(0.0, Step(INDEX))
    assert lines(2.0, Step(INDEX, 20, 100)) == "index: 20 %, about 8.0 s left\n"
    assert lines(4.0, Step(INDEX, 40, 100)) == ""
    assert lines(7.0, Step(INDEX, 70, 100)) == "index: 70 %, about 3.0 s left\n"
    assert lines(13.0) == "index: 70 %, about 5.6 s left\n"
    assert lines(19.0, Step(INDEX, 100, 100)) == "index: 19.0 s so far\n"  # what is left is unknown


def test_what_takes_minutes_has_fewer_lines(lines):
    lines(0.0, Step(INDEX, 1, 100))
    told = [now for now in range(600) if lines(float(now))]
    assert told[:3] == [2, 7, 12]
    assert [later - now for now, later in pairwise(told)][-1] > 50


def test_one_that_cannot_tell_how_far_it_is_says_for_how_long(lines):
    lines(10.0, Step("reading"))
    assert lines(12.5) == "reading: 2.5 s so far\n"
    assert lines(200.0) == "reading: 3 min 10 s so far\n"


def test_of_the_search_the_trials_tell(lines):
    lines(0.0, Step(SEARCH))
    assert lines(99.0) == ""


def test_quiet_says_news_only(capsys):
    with Quiet() as progress:
        progress.follow([ArmRecord("tpe", "tpe", 4)], [])
        progress.step(Step(INDEX, 1, 2))
        progress.show(Event("told", trial=Trial(0, "tpe", {}, TrialState.FINISHED, 0.5)))
        progress.say("a note")
    assert capsys.readouterr().err == "a note\n"


def test_a_terminal_has_a_bar_for_a_long_phase_and_one_an_arm(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    with Bars(shown_after_s=0.0) as progress:
        progress.say("[local] is no markup")
        progress.step(Step(INDEX, 1, 2))
        while "50 %" not in screen.getvalue():  # drawn five times a second
            threading.Event().wait(0.01)
        assert "index" in screen.getvalue()
        progress.step(Step(INDEX, is_over=True))
        progress.follow([ArmRecord("[tpe]", "tpe", 4)], [])
        trial = Trial(0, "[tpe]", {}, TrialState.FINISHED, 0.5, told_at=1.0)
        progress.show(Event("told", trial=trial))
    assert "[local] is no markup" in screen.getvalue()
    assert "1/4 best 0.5000" in screen.getvalue()
    assert "[tpe]" in screen.getvalue()


def test_phases_add_up_and_are_told():
    told = []
    phases = Phases(told.append)
    for _ in range(2):
        with phases.phase("reading") as advance:
            advance(1, 2)
    with pytest.raises(KeyError), phases.phase("index"):
        raise KeyError
    assert list(phases.seconds) == ["reading", "index"]
    assert sum(phases.seconds.values()) <= phases.total
    assert told[:3] == [Step("reading"), Step("reading", 1, 2), Step("reading", is_over=True)]
    assert told[-1] == Step("index", is_over=True)


def test_small_parts_are_left_out_and_what_is_in_no_phase_is_the_rest():
    seconds = {"reading": 2.0, "index": 0.4, "search": 5.0}
    assert where_it_went(seconds, 10.0) == "reading 2.0 s, search 5.0 s, the rest 3.0 s"
    # 86.9 - 78.7: what is in no phase, and what is too small to be named
    assert where_it_went({"search": 78.7, "verdict": 3.5}, 86.9) == "search 78.7 s, the rest 8.2 s"
    assert where_it_went({}, 0.0) == ""
    assert [duration(s) for s in (0.04, 99.94, 100.0, 5999.0, 7260.0)] == [
        "0.0 s", "99.9 s", "1 min 40 s", "99 min 59 s", "2 h 1 min",
    ]  # fmt: skip


def test_reading_indexing_and_preparing_tell_how_far_they_are(tmp_path):
    folder = tmp_path / "large"
    (folder / "qrels").mkdir(parents=True)
    with (folder / "corpus.jsonl").open("w") as corpus:
        for number in range(10_000):
            corpus.write(json.dumps({"_id": f"d{number}", "title": f"T{number}"}) + "\n")
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "who?"}\n')
    (folder / "qrels" / "test.tsv").write_text("q\td1\t1\n")

    def told_by(work):
        told = []
        work(lambda done, of: told.append(done / of))
        assert told == sorted(told)
        return told

    read = told_by(lambda advance: open_dataset(folder, advance=advance))
    assert len(read) > 50
    assert (read[0], read[-1]) == (0.0, 1.0)

    documents = tuple(Document(str(n), f"Name{n}", f"Name{n} knows Name{n + 1}.") for n in range(9))
    engine = None

    def build(advance):
        nonlocal engine
        engine = Hybrid.build(Corpus(documents), cache_dir=tmp_path / "cache", advance=advance)

    built = told_by(build)
    assert len(built) > 20
    assert built[-1] == 1.0
    queries = [Query(str(n), f"Who is Name{n}?") for n in range(3)]
    assert told_by(lambda advance: engine.prepare(queries, advance))[0] == 0.0
    assert told_by(lambda advance: engine.prepare(queries, advance)) == []  # it is there already
