"""A study whose trials race: who is sent out against whom, and what a stopped trial leaves."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tuner.core.journal import read_journal
from tuner.core.study_record import Savings, StudySummary
from tuner.core.trial import Outcome, Race, Trial, TrialState
from tuner.study.results import summarise
from tuner.study.study import Study
from tuner.verdict.winner import choose_winner

RACE = Race(queries=10, estimate=0.2, low=0.1, high=0.3)


def by_query(per_query):
    return per_query["score"]


def values(score: float) -> dict[str, np.ndarray]:
    return {"score": np.array([score - 0.1, score + 0.1])}


def start(toy: ModuleType, path: Path | None, **options: int) -> Study:
    return toy.create(path, 30, by_query=by_query, **options)


def tell(study: Study, trial: Trial, score: float) -> None:
    study.tell(trial, Outcome({"score": score}, values(score)))


def test_trials_are_sent_out_against_the_best_that_they_may_know(toy: ModuleType) -> None:
    study = start(toy, None, ahead=1)
    baseline, first = study.ask(2)
    assert baseline.rival is None
    assert first.rival is None  # nothing is known yet
    assert study.ask(1) == []
    tell(study, baseline, 0.5)
    (second,) = study.ask(1)
    np.testing.assert_allclose(second.rival, [0.4, 0.6])
    tell(study, second, 0.9)
    tell(study, first, 0.7)
    (third,) = study.ask(1)
    np.testing.assert_allclose(third.rival, [0.6, 0.8])  # .9 is known, but to no trial before 4
    tell(study, third, 0.3)
    for _ in range(2):  # .3 is no better
        (later,) = study.ask(1)
        np.testing.assert_allclose(later.rival, [0.8, 1.0])
        tell(study, later, 0.8)
    assert all(trial.rival is None for trial in study.trials)  # only what is sent out has one


def test_without_racing_nobody_has_a_rival(toy: ModuleType) -> None:
    study = toy.create(None, 30)
    for trial in study.ask(3):
        study.tell(trial, Outcome({"score": 0.5}, values(0.5)))
    assert study.ask(1)[0].rival is None


def test_a_stopped_trial_has_a_state_and_an_interval_and_no_score(
    toy: ModuleType, tmp_path: Path
) -> None:
    path = tmp_path / "journal.jsonl"
    study = start(toy, path)
    baseline, first = study.ask(2)
    study.tell(baseline, Outcome({"score": 0.5}, values(0.5)))
    (told,) = study.tell(first, Outcome({"score": 0.9}, values(0.9), race=RACE))
    assert told.state is TrialState.RACED_OUT
    assert (told.objective, told.is_scored, told.worth) == (None, False, 0.2)
    assert study.best == study.trials[0]
    assert choose_winner(study.trials, {0: values(0.5)["score"]}) == study.trials[0]
    study.close()
    content = read_journal(path)
    assert content.trials[1] == told
    assert content.trials[1].race == RACE
    summary = summarise("finished", study.header, study.trials, seconds=1.0)
    assert (summary.raced_out_trials, summary.finished_trials, summary.failed_trials) == (1, 1, 0)


def finished(number: int, **changes: object) -> Trial:
    return replace(Trial(number, "tpe", {}, TrialState.FINISHED, 0.5), **changes)


def savings(toy: ModuleType, trials: list[Trial], *, queries: int = 50) -> Savings | None:
    header = replace(
        toy.header(),
        config={"racing": {"rungs": [0.1, 0.2, 0.7], "stop_below": -1.0}},
        dataset={"tune_queries": queries},
    )
    return summarise("finished", header, trials, seconds=1.0).racing


def test_what_racing_saved_is_counted_by_query(toy: ModuleType) -> None:
    raced = {"state": TrialState.RACED_OUT, "objective": None}
    trials = [
        finished(0),
        finished(1, race=RACE, **raced),  # 10 of 50 asked: 40 saved
        finished(2, race=replace(RACE, queries=35), **raced),  # 15 saved
        finished(3, race=RACE, shared_from=1, **raced),  # nothing was asked for it in any case
        finished(4, state=TrialState.SHARED, shared_from=0),
        finished(5, state=TrialState.FAILED, objective=None, error="it broke"),
        Trial(6, "tpe", {}),
    ]
    assert savings(toy, trials) == Savings(55, 150)  # of three trials


def test_racing_that_could_stop_nothing_says_why(toy: ModuleType) -> None:
    # .7 of 13 queries are 9, and a rung takes 10.
    few = savings(toy, [finished(0), finished(1)], queries=13)
    assert few is not None
    assert (few.saved, few.of) == (0, 26)
    assert few.note.endswith("of 13 queries to tune on, no rung has the 10 that it takes")
    enough = savings(toy, [finished(0), finished(1)], queries=14)  # 9.8, rounded
    assert enough == Savings(0, 28)
    broken = savings(toy, [finished(0, violation=0.1), finished(1, violation=0.2)])
    assert broken is not None
    assert broken.note.endswith("none met the constraints, so there was none to beat")
    assert savings(toy, [finished(0, violation=0.1), finished(1)]) == Savings(0, 100)
    assert savings(toy, []) == Savings(0, 0)


def test_a_study_without_racing_saved_nothing_to_speak_of(toy: ModuleType) -> None:
    header = replace(toy.header(), config={"racing": None}, dataset={"tune_queries": 50})
    assert summarise("finished", header, [finished(0)], seconds=1.0).racing is None
    assert summarise("finished", toy.header(), [finished(0)], seconds=1.0).racing is None


def test_savings_are_read_back_and_an_older_summary_has_none(toy: ModuleType) -> None:
    header = replace(
        toy.header(), config={"racing": {"rungs": [0.7]}}, dataset={"tune_queries": 13}
    )
    summary = summarise("finished", header, [finished(0)], seconds=1.0)
    record = json.loads(json.dumps(summary.to_record()))
    assert record["racing"]["of"] == 13
    assert StudySummary.from_record(record) == summary
    del record["racing"]
    assert StudySummary.from_record(record) == replace(summary, racing=None)


def test_who_has_the_params_of_a_stopped_trial_is_stopped_too(toy: ModuleType) -> None:
    study = start(toy, None)
    while not study.is_done:
        trials = study.ask(5)
        for trial in trials:
            is_baseline = trial.arm == "baseline"
            race = None if is_baseline else replace(RACE, estimate=toy.score(trial.params))
            study.tell(trial, Outcome({"score": 0.5}, values(0.5), race=race))
    shared = [trial for trial in study.trials if trial.shared_from not in (None, 0)]
    assert shared
    for trial in shared:
        assert trial.state is TrialState.RACED_OUT
        assert trial.race == study.trials[trial.evaluated_as].race


def test_a_resumed_study_races_against_what_it_had(toy: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    study = start(toy, path, ahead=2)
    trials = study.ask(3)
    tell(study, trials[1], 0.8)
    tell(study, trials[0], 0.5)
    trials += study.ask(1)
    tell(study, trials[2], 0.6)
    trials += study.ask(1)
    np.testing.assert_allclose(trials[4].rival, [0.7, 0.9])  # of the two that are seen
    study.close()
    resumed = Study.resume(toy.header(30, ahead=2), toy.spec(30, by_query=by_query), path)
    again = resumed.ask(2)
    assert [trial.number for trial in again] == [3, 4]
    np.testing.assert_allclose(again[0].rival, [0.4, 0.6])  # of one, as before
    np.testing.assert_allclose(again[1].rival, [0.7, 0.9])
    resumed.close()


@pytest.mark.parametrize("kind", ["gp", "tpe"])
def test_a_search_learns_from_the_estimate_of_a_stopped_trial(toy: ModuleType, kind: str) -> None:
    from tuner.core import registry

    backend = registry.load("backends", kind)(budget=40)

    def history(is_raced: bool) -> list[Trial]:
        trials = []
        for n in range(12):
            params = {"hops": n % 5 + 1, "weight": n / 10}
            worth = toy.score(params)
            if is_raced and n % 2:
                race = Race(10, worth, worth - 0.1, worth + 0.1)
                trials.append(Trial(n, "arm", params, TrialState.RACED_OUT, race=race))
            else:
                trials.append(Trial(n, "arm", params, TrialState.FINISHED, worth))
        return trials

    def suggested(trials: list[Trial]) -> object:
        return backend.suggest(toy.SPACE, trials, count=1, seed=5)

    # What was raced out counts as if it had been scored with its estimate, no more and no less.
    assert suggested(history(True)) == suggested(history(False))
    assert suggested(history(True)) != suggested([t for t in history(True) if t.is_scored])
