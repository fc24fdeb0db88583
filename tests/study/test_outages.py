"""A system that stops answering costs no trial: the run is interrupted, and resumed it goes on."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pytest

from tuner.core.journal import read_journal
from tuner.core.trial import Blame, Outcome, Params, Trial, TrialState
from tuner.execution.local.inline import Inline
from tuner.execution.local.threads import Threads
from tuner.study.limit import GO, Leave
from tuner.study.loop import Event, run_study
from tuner.study.outages import UNANSWERED_IN_A_ROW, without_outages

REFUSED = ConnectionRefusedError("nobody listens")
OVER = Leave(over="enough is spent")


@dataclass
class Service:
    """Answers with the toy's score until it goes away; counts what it answered, by params."""

    toy: ModuleType
    answers_left: int | None = None
    error: BaseException = REFUSED
    answered: Counter[str] = field(default_factory=Counter)
    asked: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, params: Params) -> Outcome:
        with self.lock:
            self.asked += 1
            if self.answers_left == 0:
                raise self.error
            if self.answers_left is not None:
                self.answers_left -= 1
            self.answered[str(params)] += 1
        return self.toy.evaluate(params)  # type: ignore[no-any-return]


@pytest.mark.parametrize("execution", [Inline(), Threads(3)])
@pytest.mark.parametrize("first", [0, 1, 9])
def test_a_service_that_goes_away_twice_costs_no_trial(
    toy: ModuleType, tmp_path: Path, execution: Inline | Threads, first: int
) -> None:
    path, service = tmp_path / "journal.jsonl", Service(toy, answers_left=first)
    study, events = toy.create(path, 20), list[Event]()
    for answers in (7, None):
        assert run_study(study, execution, service, on_event=events.append) == "interrupted"
        study.close()
        assert (
            "the system does not answer: ConnectionRefusedError: nobody listens" in study.stopped_by
        )
        assert f"({UNANSWERED_IN_A_ROW} evaluations in a row)" in study.stopped_by
        assert (events[-1].kind, events[-1].text) == ("stopping", study.stopped_by)
        content = read_journal(path)
        assert content.notes[-1]["reason"] == study.stopped_by
        assert not any(trial.state is TrialState.FAILED for trial in content.trials.values())
        assert not content.suspects
        service.answers_left = answers
        study = toy.resume(path, 20)
    assert run_study(study, execution, service) == "finished"
    study.close()
    whole = toy.create(None, 20)
    run_study(whole, Inline(), toy.evaluate)
    assert len(study.trials) == len(whole.trials)
    assert all(trial.is_scored for trial in study.trials)
    assert set(service.answered.values()) == {1}


def test_what_is_asked_once_more_but_no_longer_sent_out_ends_the_run() -> None:
    # The study was stopped meanwhile: it is asked for what it has, and has nothing.
    trial = Trial(3, "tpe", {"k": 1})
    rounds = [[(trial, Outcome(error="refused", blame=Blame.SYSTEM))], []]
    asked_again = list[Trial]()

    def run() -> Iterator[tuple[Trial, Outcome]]:
        yield from rounds.pop(0)

    told = without_outages(
        run, hold_back=lambda _: None, ask_again=asked_again.append, is_answering=lambda: True
    )
    assert list(told) == []
    assert asked_again == [trial]
    assert not rounds


def test_a_short_outage_is_waited_for_and_its_trials_asked_once_more(toy: ModuleType) -> None:
    study, service = toy.create(None, 5), Service(toy)
    failing = {3, 4, 5}

    def evaluate(params: Params) -> Outcome:
        if service.asked + 1 in failing:
            service.asked += 1
            raise REFUSED
        return service(params)

    assert run_study(study, Inline(), evaluate) == "finished"
    assert all(trial.is_scored for trial in study.trials)
    assert set(service.answered.values()) == {1}


def _by_params(toy: ModuleType, error: BaseException) -> Callable[[Params], Outcome]:
    def evaluate(params: Params) -> Outcome:
        if params["hops"] == 3:
            raise error
        return toy.evaluate(params)  # type: ignore[no-any-return]

    return evaluate


@pytest.mark.parametrize("execution", [Inline(), Threads(2)])
def test_params_that_are_never_answered_fail_by_themselves(
    toy: ModuleType, execution: Inline | Threads
) -> None:
    study = toy.create(None, 60)
    service = _by_params(toy, TimeoutError("no answer within 1 s"))
    assert run_study(study, execution, service) == "finished"
    for trial in study.trials:
        assert trial.is_told
        assert (trial.state is TrialState.FAILED) == (trial.params["hops"] == 3)
    # The grid asks for 12 of them in a row: the system is then asked what it has answered before.
    failed = [trial.number for trial in study.trials if trial.arm == "grid" and trial.error]
    assert len(failed) == 12


def test_the_last_trial_fails_by_itself_where_the_system_answers_others(toy: ModuleType) -> None:
    study, asked = toy.create(None, 4), Counter[str]()
    last: list[str] = []

    def evaluate(params: Params) -> Outcome:
        asked[str(params)] += 1
        if len(asked) == 5 and not last:
            last.append(str(params))
        if [str(params)] == last:
            raise REFUSED
        return toy.evaluate(params)  # type: ignore[no-any-return]

    assert run_study(study, Inline(), evaluate) == "finished"
    (failed,) = (trial for trial in study.trials if trial.state is TrialState.FAILED)
    assert failed.error == "ConnectionRefusedError: nobody listens"
    assert asked[last[0]] == 2


@pytest.mark.parametrize("execution", [Inline(), Threads(3)])
@pytest.mark.parametrize("ahead", [0, 1, 4])
def test_a_trial_that_is_held_back_keeps_nobody_waiting_for_ever(
    toy: ModuleType, execution: Inline | Threads, ahead: int
) -> None:
    service = Service(toy)

    def evaluate(params: Params, rival: object = None) -> Outcome:
        with service.lock:
            is_out = service.asked in (3, 8)
            service.asked += is_out
        if is_out:
            raise REFUSED
        return service(params)

    # A race waits for the results of earlier trials.
    study = toy.create(None, 10, ahead=ahead, by_query=lambda per_query: per_query["score"])
    assert run_study(study, execution, evaluate, probe=lambda params: None) == "finished"
    assert not any(trial.error for trial in study.trials)
    assert set(service.answered.values()) == {1}


def test_an_outage_at_the_last_trials_leaves_them_for_the_resumed_study(
    toy: ModuleType, tmp_path: Path
) -> None:
    path = tmp_path / "journal.jsonl"
    study, service = toy.create(path, 2), Service(toy, answers_left=3)
    assert run_study(study, Inline(), service) == "interrupted"
    assert "evaluation" in study.stopped_by
    study.close()
    service.answers_left = None
    study = toy.resume(path, 2)
    assert run_study(study, Inline(), service) == "finished"
    assert all(trial.is_scored for trial in study.trials)
    assert set(service.answered.values()) == {1}


@pytest.mark.slow
def test_trials_past_their_time_fail_by_themselves_unless_all_are(
    toy: ModuleType, tmp_path: Path
) -> None:
    """A service that hangs is known by every evaluation of it taking longer than one may."""
    released, is_hanging = threading.Event(), threading.Event()

    def evaluate(params: Params) -> Outcome:
        if is_hanging.is_set() or params["hops"] == 1:
            released.wait(900)
        return toy.evaluate(params)  # type: ignore[no-any-return]

    path = tmp_path / "journal.jsonl"
    execution = Inline(trial_timeout_s=0.25)
    study = toy.create(path, 8)
    told = iter(range(100))

    def hang_later(event: Event) -> None:
        if event.kind == "told" and next(told) == 3:
            is_hanging.set()

    try:
        assert run_study(study, execution, evaluate, on_event=hang_later) == "interrupted"
        assert "no result within 0.25 s" in study.stopped_by
        study.close()
        is_hanging.clear()
        study = toy.resume(path, 8)
        assert run_study(study, execution, evaluate) == "finished"
    finally:
        released.set()
    assert all(trial.is_told for trial in study.trials)
    for trial in study.trials:
        assert (trial.state is TrialState.FAILED) == (trial.params["hops"] == 1)


def test_the_probe_is_what_the_caller_says(toy: ModuleType) -> None:
    study, service = toy.create(None, 12), Service(toy, answers_left=4)
    probed: list[Params] = []

    def probe(params: Params) -> None:
        probed.append(params)
        raise REFUSED

    assert run_study(study, Inline(), service, probe=probe) == "interrupted"
    assert len(probed) == 1
    assert service.asked == 4 + UNANSWERED_IN_A_ROW
    assert probed[0] in [trial.params for trial in study.trials if trial.is_scored]


def test_ctrl_c_in_an_outage_is_an_interruption_without_a_probe(toy: ModuleType) -> None:
    study = toy.create(None, 12)

    def evaluate(params: Params) -> Outcome:
        if params != toy.BASELINE:
            study.stop()
            raise REFUSED
        return toy.evaluate(params)  # type: ignore[no-any-return]

    def probe(params: Params) -> None:
        raise AssertionError(f"asked {params} although the study was stopped")

    assert run_study(study, Inline(), evaluate, probe=probe) == "interrupted"


def test_time_that_is_up_in_an_outage_leaves_the_study_for_later(
    toy: ModuleType, tmp_path: Path
) -> None:
    path = tmp_path / "journal.jsonl"
    study, service = toy.create(path, 12), Service(toy, answers_left=4)
    limit = lambda: OVER if service.asked > 5 else GO  # noqa: E731
    assert run_study(study, Inline(), service, limit=limit) == "interrupted"
    study.close()
    assert not any(trial.error for trial in read_journal(path).trials.values())


def test_a_baseline_without_an_answer_is_asked_again_though_a_limit_is_reached(
    toy: ModuleType,
) -> None:
    study, service = toy.create(None, 12), Service(toy)

    def evaluate(params: Params) -> Outcome:
        service.asked += 1
        if service.asked == 1:
            raise REFUSED
        return toy.evaluate(params)  # type: ignore[no-any-return]

    limit = lambda: OVER if any(trial.is_told for trial in study.trials) else GO  # noqa: E731
    assert run_study(study, Inline(), evaluate, limit=limit, probe=lambda _: None) == "finished"
    assert [trial.number for trial in study.trials if trial.is_told] == [0, 1]
    assert service.asked == 3


def test_an_outcome_that_says_it_is_the_system_counts_as_well(toy: ModuleType) -> None:
    study = toy.create(None, 12)

    def evaluate(params: Params) -> Outcome:
        return Outcome(error="503 from upstream", blame=Blame.SYSTEM)

    assert run_study(study, Inline(), evaluate) == "interrupted"
    assert "503 from upstream" in study.stopped_by
    assert not any(trial.is_told for trial in study.trials)
