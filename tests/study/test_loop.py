"""The loop: it ends as finished, failed or interrupted, and always leaves a whole journal."""

from __future__ import annotations

import _thread
import itertools
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from tuner.core.journal import read_journal
from tuner.core.study_record import StudyHeader, StudySummary
from tuner.core.trial import Outcome, Params, Race, Trial, TrialState
from tuner.execution.base import Evaluate, Outcomes
from tuner.execution.call import call
from tuner.execution.local.inline import Inline
from tuner.execution.local.threads import Threads
from tuner.study.interrupt import interruptible
from tuner.study.limit import GO, Leave
from tuner.study.loop import Event, run_study
from tuner.study.study import Study

WAIT_S = 900.0
OVER = Leave(over="enough is spent")


class Tracker:
    def __init__(self) -> None:
        self.recorded: list[Trial] = []

    def start(self, header: StudyHeader, run_dir: Path) -> None:
        raise AssertionError("starting the tracker is the caller's")

    def record(self, trial: Trial) -> None:
        self.recorded.append(trial)

    def finish(self, summary: StudySummary) -> None:
        raise AssertionError("finishing the tracker is the caller's")


@pytest.mark.parametrize("execution", [Inline(), Threads(3)])
def test_every_trial_is_told_recorded_and_shown_once(
    toy: ModuleType, tmp_path: Path, execution: Inline | Threads
) -> None:
    path = tmp_path / "journal.jsonl"
    study = toy.create(path, 30)
    tracker, events = Tracker(), list[Event]()
    state = run_study(study, execution, toy.evaluate, tracker=tracker, on_event=events.append)
    study.close()
    assert state == "finished"
    assert study.is_done
    assert {t.number for t in tracker.recorded} == set(range(61))
    assert len(tracker.recorded) == 61
    assert [e.trial for e in events if e.kind == "told"] == tracker.recorded
    assert [e.text for e in events if e.kind == "execution"] == [execution.choice]
    assert TrialState.SHARED in {t.state for t in tracker.recorded}
    content = read_journal(path)
    assert list(content.trials.values()) == study.trials
    assert (content.notes[-1]["kind"], content.notes[-1]["state"]) == ("ended", "finished")


def test_ten_failures_at_the_start_end_the_study(toy: ModuleType) -> None:
    def fail(params: Params) -> Outcome:
        raise RuntimeError("no index")

    study = toy.create(None, 30)
    events: list[Event] = []
    assert run_study(study, Inline(), fail, on_event=events.append) == "failed"
    assert sum(trial.shared_from is None for trial in study.trials if trial.is_told) == 10
    assert events[-1].kind == "stopping"
    assert "the first 10 evaluations all failed" in events[-1].text
    assert "RuntimeError: no index" in events[-1].text


def test_trials_that_fail_once_more_cost_a_study_with_results_nothing(
    toy: ModuleType, tmp_path: Path
) -> None:
    path, calls = tmp_path / "journal.jsonl", itertools.count()

    def fail(params: Params) -> Outcome:
        raise RuntimeError("no index")

    def fail_at_times(params: Params) -> Outcome:
        return fail(params) if next(calls) % 3 == 1 else toy.evaluate(params)  # type: ignore[no-any-return]

    study = toy.create(path, 30)
    assert run_study(study, Inline(), fail_at_times) == "finished"
    study.close()
    study = toy.resume(path, 30)
    assert len(again := study.retry_failed()) > 11

    def stop(event: Event) -> None:
        if event.kind == "told":
            study.stop()

    assert run_study(study, Inline(), fail, on_event=stop) == "interrupted"
    study.close()
    # Also where the run that asks them again is cut off and taken up: the journal knows them.
    study = toy.resume(path, 30)
    assert study.failed_before == {trial.number for trial in again}
    assert run_study(study, Inline(), fail) == "finished"


@pytest.mark.parametrize(("ahead", "workers"), [(1, 3), (2, 3)])
def test_workers_that_have_to_wait_are_told_of_once(
    toy: ModuleType, ahead: int, workers: int
) -> None:
    events: list[Event] = []
    # A race waits for the results of earlier trials.
    study = toy.create(None, 15, ahead=ahead, by_query=lambda per_query: per_query["score"])

    def evaluate(params: Params, rival: object = None) -> Outcome:
        while params == toy.BASELINE and ahead == 1 and not study.has_kept_waiting:
            time.sleep(0.001)
        return toy.evaluate(params)  # type: ignore[no-any-return]

    assert run_study(study, Threads(workers), evaluate, on_event=events.append) == "finished"
    said = [event.text for event in events if event.kind == "execution"][1:]
    expected = "at most 2 evaluations at once, of 3 workers: study.ahead is 1; with more, more of "
    assert [text[: len(expected)] for text in said] == ([expected] if ahead == 1 else [])


@dataclass(frozen=True)
class Reversed:
    """Has as many trials under way as there are slots, and ends them last first."""

    slots: int
    choice: str = "evaluations run in this test"

    def run(
        self, evaluate: Evaluate, trials: Iterable[Trial], *, suspects: Container[int] = ()
    ) -> Outcomes:
        asked = iter(trials)
        while batch := list(itertools.islice(asked, self.slots)):
            yield from ((trial, call(evaluate, trial)) for trial in reversed(batch))


def evaluated(study: Study) -> list[Trial]:
    return [trial for trial in study.trials if trial.is_told and trial.shared_from is None]


@pytest.mark.parametrize(("failures", "state"), [(10, "failed"), (9, "finished")])
def test_the_first_evaluations_are_those_with_the_lowest_numbers(
    toy: ModuleType, failures: int, state: str
) -> None:
    whole = toy.create(None, 30)
    run_study(whole, Inline(), toy.evaluate)
    first = [trial.params for trial in evaluated(whole)][:failures]

    def evaluate(params: Params) -> Outcome:
        if params in first:
            raise RuntimeError("no index")
        return toy.evaluate(params)  # type: ignore[no-any-return]

    study = toy.create(None, 30)
    assert run_study(study, Reversed(14), evaluate) == state
    assert evaluated(study)[-1].is_scored  # and it was told before those that failed


def test_what_is_doubted_is_looked_at_in_the_order_of_numbers(toy: ModuleType) -> None:
    seen: list[int] = []

    def doubt(trial: Trial) -> str | None:
        seen.append(trial.number)
        return "no hit" if len(seen) == 20 else None

    study = toy.create(None, 30)
    assert run_study(study, Reversed(7), toy.evaluate, doubt=doubt) == "failed"
    assert study.stopped_by == "no hit"
    assert seen == [trial.number for trial in evaluated(study)][:20]


def test_a_run_that_was_killed_among_its_first_failures_goes_on_counting(
    toy: ModuleType, tmp_path: Path
) -> None:
    path = tmp_path / "journal.jsonl"

    def fail(params: Params) -> Outcome:
        raise RuntimeError("no index")

    study = toy.create(path, 30)
    for _ in range(4):
        (trial,) = study.ask(1)
        study.tell(trial, Outcome(error="no index"))
    study.close()
    for count in (10, 20):  # one that has ended so is given another chance
        study = toy.resume(path, 30)
        assert run_study(study, Inline(), fail) == "failed"
        study.close()
        assert len(evaluated(study)) == count


def test_a_trial_that_was_stopped_has_not_failed(toy: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"

    def stop(params: Params, rival: object = None) -> Outcome:
        return Outcome({"score": 0.1}, race=Race(10, 0.1, 0.0, 0.2))

    study = toy.create(path, 30)
    (baseline,) = study.ask(1)
    study.tell(baseline, Outcome({"score": 0.5}))
    study.close()
    study = toy.resume(path, 30)
    assert run_study(study, Inline(), stop) == "finished"
    study.close()


@pytest.mark.parametrize(("largest_hops", "state"), [(1, "failed"), (4, "finished")])
def test_more_failures_than_successes_are_a_failed_study(
    toy: ModuleType, largest_hops: int, state: str
) -> None:
    def evaluate(params: Params) -> Outcome:
        if params["hops"] > largest_hops and params != toy.BASELINE:  # type: ignore[operator]
            raise RuntimeError("too deep")
        return toy.evaluate(params)  # type: ignore[no-any-return]

    study = toy.create(None, 30)
    assert run_study(study, Inline(), evaluate) == state
    assert all(trial.is_told for trial in study.trials)


def test_a_backend_that_breaks_ends_the_run_with_its_error(toy: ModuleType) -> None:
    study = toy.create(None, 30)

    def broken_asks(**options: object) -> Iterator[Trial]:
        yield from study.ask(3)
        raise RuntimeError("a broken backend")

    study.asks = broken_asks
    for execution in (Inline(), Threads(2)):
        with pytest.raises(RuntimeError, match="a broken backend"):
            run_study(study, execution, toy.evaluate)


def test_stopped_from_elsewhere_is_interrupted(toy: ModuleType) -> None:
    study = toy.create(None, 30)

    def evaluate(params: Params) -> Outcome:
        if params != toy.BASELINE:
            study.stop()
        return toy.evaluate(params)  # type: ignore[no-any-return]

    assert run_study(study, Inline(), evaluate) == "interrupted"
    assert len(study.trials) == 2


def test_runs_outside_the_main_thread(toy: ModuleType) -> None:
    states = []
    study = toy.create(None, 5)
    thread = threading.Thread(
        target=lambda: states.append(run_study(study, Inline(), toy.evaluate))
    )
    thread.start()
    thread.join()
    assert states == ["finished"]


def test_handlers_come_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    names: list[str] = []
    is_said = threading.Event()

    def say(name: str) -> None:
        names.append(name)
        is_said.set()

    stopped: list[bool] = []
    with interruptible(lambda: stopped.append(True), say, grace_s=WAIT_S):
        os.kill(os.getpid(), signal.SIGTERM)
        assert is_said.wait(WAIT_S)
    assert (stopped, names) == ([True], ["SIGTERM"])
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_the_grace_period_ends_a_wait() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with (  # noqa: PT012  # what is raised comes from the outside
        pytest.raises(KeyboardInterrupt),
        interruptible(lambda: None, lambda name: None, grace_s=0.0),
    ):
        os.kill(os.getpid(), signal.SIGTERM)
        threading.Event().wait(WAIT_S)
        raise AssertionError("the grace period did not end the wait")
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_signal_that_does_not_wake_the_main_thread_is_seen(
    toy: ModuleType, tmp_path: Path
) -> None:
    release = threading.Event()

    def hang(params: Params) -> Outcome:
        # Marks the signal as received, as one does that comes just before the main thread waits.
        _thread.interrupt_main(signal.SIGTERM)
        release.wait(WAIT_S)
        return toy.evaluate(params)  # type: ignore[no-any-return]

    study = toy.create(None, 30)
    try:
        assert run_study(study, Threads(2), hang, grace_s=0.1) == "interrupted"
        assert not any(trial.is_told for trial in study.trials)
    finally:
        release.set()


def read_until(process: subprocess.Popen[str], beginning: str) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(beginning):
            return line
    raise AssertionError(f"the process ended without {beginning!r}")


@pytest.mark.parametrize(("kind", "workers"), [("inline", 1), ("threads", 2), ("processes", 2)])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_cleanly(
    tmp_path: Path,
    toy: ModuleType,
    spawn: Callable[..., subprocess.Popen[str]],
    kind: str,
    workers: int,
    number: signal.Signals,
) -> None:
    release = tmp_path / "release"
    process = spawn(
        run_dir=str(tmp_path), kind=kind, workers=workers, trials=50, hold_after=4, sleep_s=0.0
    )
    for _ in range(4):
        read_until(process, "told")
    process.send_signal(number)
    assert number.name in read_until(process, "stopping")
    release.touch()  # the evaluations under way may end now
    assert read_until(process, "state") == "state interrupted\n"
    assert process.wait(WAIT_S) == 0
    path = tmp_path / "journal.jsonl"
    content = read_journal(path)
    assert content.torn_bytes == 0
    assert content.notes[-1]["signal"] == number.name
    # Nothing was left under way: what had begun was told before the end.
    assert all(trial.is_told for trial in content.trials.values())
    told = {json.dumps(t.params) for t in content.trials.values()}
    assert told == set((tmp_path / "evaluated").read_text().splitlines())
    assert len(told) < 50
    toy.resume(path, 50).close()


def test_a_run_that_a_script_started_in_the_background_is_not_ended_by_ctrl_c(
    tmp_path: Path, spawn: Callable[..., subprocess.Popen[str]]
) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as for `command &` in a script
    try:
        process = spawn(
            run_dir=str(tmp_path), kind="inline", workers=1, trials=50, hold_after=4, sleep_s=0.0
        )
    finally:
        signal.signal(signal.SIGINT, before)
    for _ in range(4):
        read_until(process, "told")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    assert "SIGTERM" in read_until(process, "stopping")
    (tmp_path / "release").touch()
    assert read_until(process, "state") == "state interrupted\n"
    assert process.wait(WAIT_S) == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["inline", "threads", "processes"])
@pytest.mark.parametrize("by", ["grace period", "second signal"])
def test_an_evaluation_that_hangs_does_not_keep_a_run_alive(
    tmp_path: Path, spawn: Callable[..., subprocess.Popen[str]], kind: str, by: str
) -> None:
    process = spawn(
        run_dir=str(tmp_path),
        kind=kind,
        workers=1 if kind == "inline" else 2,
        trials=10,
        sleep_s=0.0,
        hang=True,
        grace_s=0.1 if by == "grace period" else 1000.0,
    )
    path = tmp_path / "journal.jsonl"
    read_until(process, "ready")
    while not path.exists() or b'"asked"' not in path.read_bytes():
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    read_until(process, "stopping")
    if by == "second signal":
        process.send_signal(signal.SIGINT)
    assert read_until(process, "state") == "state interrupted\n"
    assert process.wait(WAIT_S) == 0
    content = read_journal(path)
    assert content.torn_bytes == 0
    assert [trial.is_told for trial in content.trials.values()] == [False] * len(content.trials)


@pytest.mark.parametrize("execution", [Inline(), Threads(3)])
def test_when_the_time_is_up_what_is_under_way_ends_and_the_study_is_finished(
    toy: ModuleType, tmp_path: Path, execution: Inline | Threads
) -> None:
    told: list[Trial] = []

    def take(event: Event) -> None:
        if event.trial is not None:
            told.append(event.trial)

    path = tmp_path / "journal.jsonl"
    study = toy.create(path, 30)
    state = run_study(
        study, execution, toy.evaluate, on_event=take, limit=lambda: OVER if len(told) >= 5 else GO
    )
    study.close()
    assert state == "finished"
    assert 5 <= len(told) < 20
    assert all(trial.is_told for trial in study.trials)
    content = read_journal(path)
    assert (content.notes[-1]["kind"], content.notes[-1]["state"]) == ("ended", "finished")


def test_without_any_time_the_baseline_is_evaluated_all_the_same(toy: ModuleType) -> None:
    study = toy.create(None, 30)
    events: list[Event] = []
    state = run_study(study, Inline(), toy.evaluate, on_event=events.append, limit=lambda: OVER)
    assert state == "finished"
    assert [trial.arm for trial in study.trials if trial.is_told] == ["baseline"]
    assert "enough is spent: no further trial" in events[-1].text


def test_a_baseline_that_was_under_way_when_a_run_died_is_evaluated_without_time(
    toy: ModuleType, tmp_path: Path
) -> None:
    path = tmp_path / "journal.jsonl"
    study = toy.create(path, 30)
    study.ask(1)
    study.close()
    study = toy.resume(path, 30)
    assert run_study(study, Inline(), toy.evaluate, limit=lambda: OVER) == "finished"
    study.close()
    assert [trial.arm for trial in study.trials if trial.is_told] == ["baseline"]
