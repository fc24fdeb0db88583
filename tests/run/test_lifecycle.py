"""The life of a study: what is written when, and that its journal is let go of whatever happens."""

from __future__ import annotations

import time
from contextlib import nullcontext

import pytest

from tuner.backends.random import Random
from tuner.core.errors import InputError
from tuner.core.journal import read_journal
from tuner.core.run_files import JOURNAL_FILE
from tuner.core.space import Real, SearchSpace
from tuner.core.study_record import ArmRecord, StudyHeader
from tuner.core.trial import Outcome
from tuner.evaluation.objective import Objective
from tuner.execution.local.inline import Inline
from tuner.run.asking import keep_time
from tuner.run.folder import TIMES_NOTE, earlier_seconds
from tuner.run.lifecycle import carry_through, closed_on_error, open_study
from tuner.study.arms import Arm
from tuner.study.loop import run_study
from tuner.study.results import summarise
from tuner.study.spec import StudySpec

SPACE = SearchSpace({"x": Real(0.0, 1.0)})
OBJECTIVE = Objective({"score": 1.0})


def opened(run_dir, study_id="one"):
    header = StudyHeader(
        study_id, "study", 0.0, 1, (ArmRecord("random", "random", 3),), SPACE.to_mapping(),
        OBJECTIVE.to_mapping(),
    )  # fmt: skip
    return open_study(header, StudySpec([Arm("random", Random(3), 3)], SPACE, OBJECTIVE), run_dir)


class Watched:
    """A tracker that notes what it is told."""

    def __init__(self):
        self.told = []

    def start(self, header, run_dir):
        self.told.append((header.study_id, run_dir))

    def record(self, trial):
        self.told.append(trial.number)

    def finish(self, summary):
        raise AssertionError("finishing is for what comes afterwards")


def carried(study, *, afterwards=lambda summary: summary, search=None, tracker=None):
    def searched():
        return run_study(
            study, Inline(), lambda params: Outcome({"score": params["x"]}), tracker=tracker
        )

    def sum_up(state):
        return summarise(state, study.header, study.trials, seconds=0.0)

    return carry_through(
        study,
        search or searched,
        sum_up,
        tracker=tracker,
        meanwhile=nullcontext(),
        afterwards=afterwards,
    )


def summaries(run_dir):
    notes = read_journal(run_dir / "journal.jsonl").notes
    return [note["state"] for note in notes if note["kind"] == "summary"]


def test_the_summary_is_in_the_journal_before_anything_is_made_of_it(tmp_path):
    seen = []
    summary = carried(
        opened(tmp_path), afterwards=lambda summary: (seen.append(summaries(tmp_path)), summary)[1]
    )
    assert seen == [["finished"]]
    assert summary.finished_trials == 3


def test_the_tracker_is_started_with_the_folder_and_told_of_every_trial(tmp_path):
    tracker = Watched()
    carried(opened(tmp_path), tracker=tracker)
    assert tracker.told == [("one", tmp_path), 0, 1, 2]


def test_a_folder_with_a_study_goes_on_with_that_one(tmp_path):
    carried(opened(tmp_path))
    study = opened(tmp_path, study_id="two")
    assert study.header.study_id == "one"
    assert len(study.trials) == 3
    study.close()


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert carried(opened(None)).state == "finished"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", ["search", "afterwards"])
def test_the_journal_is_let_go_of_where_a_step_fails(tmp_path, where):
    def fails(*given):
        raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        carried(opened(tmp_path), **{where: fails})
    opened(tmp_path).close()  # another one may write it now


def test_a_session_that_does_not_come_about_lets_go_of_the_journal(tmp_path):
    study = opened(tmp_path)
    with pytest.raises(InputError):
        opened(tmp_path)  # another run is writing it
    with pytest.raises(KeyError), closed_on_error(study):
        raise KeyError("broken")
    opened(tmp_path).close()


def test_what_a_killed_session_took_does_not_depend_on_the_time_of_day(tmp_path, monkeypatch):
    study = opened(tmp_path)
    with monkeypatch.context() as patch:
        begun = time.monotonic()
        patch.setattr(time, "time", lambda: 4e9)  # the clock jumps by decades
        patch.setattr(time, "monotonic", lambda: begun + 7.5)
        study.note("anything")  # and the session is killed
    study.close()
    assert earlier_seconds(read_journal(tmp_path / JOURNAL_FILE)) == pytest.approx(7.5, abs=1.0)
    later = opened(tmp_path)
    later.note(TIMES_NOTE, seconds=2.0)
    later.close()
    assert earlier_seconds(read_journal(tmp_path / JOURNAL_FILE)) == pytest.approx(9.5, abs=1.0)


def test_a_session_that_is_killed_before_its_first_trial_has_taken_its_time(tmp_path, monkeypatch):
    study = opened(tmp_path)
    before = (tmp_path / JOURNAL_FILE).read_text()
    keep_time(study)  # its last line is new
    assert (tmp_path / JOURNAL_FILE).read_text() == before
    with monkeypatch.context() as patch:
        begun = time.monotonic()
        patch.setattr(time, "monotonic", lambda: begun + 60.0)
        keep_time(study)  # and the session is killed, while it asks what is free
    study.close()
    assert earlier_seconds(read_journal(tmp_path / JOURNAL_FILE)) == pytest.approx(60.0, abs=1.0)
    opened(tmp_path).close()
