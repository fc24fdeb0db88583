"""A study whose trials race: who is sent out against whom, and what a stopped trial leaves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tuner.core.trial import Outcome, Race, Trial, TrialState
from tuner.study.reading import read_journal
from tuner.study.results import summarise
from tuner.study.study import Study
from tuner.study.winner import choose_winner

RACE = Race(queries=10, estimate=0.2, low=0.1, high=0.3)


def by_query(per_query):
    return per_query["score"]


def values(score: float) -> dict[str, np.ndarray]:
    return {"score": np.array([score - 0.1, score + 0.1])}


def start(toy: ModuleType, path: Path | None) -> Study:
    return toy.create(path, 30, by_query=by_query)


def test_trials_are_sent_out_against_the_best_so_far(toy: ModuleType) -> None:
    study = start(toy, None)
    baseline, first = study.ask(2)
    assert baseline.rival is None
    assert first.rival is None  # nothing is known yet
    study.tell(first, Outcome({"score": 0.5}, values(0.5)))
    (second,) = study.ask(1)
    np.testing.assert_allclose(second.rival, [0.4, 0.6])
    study.tell(second, Outcome({"score": 0.3}, values(0.3)))
    (third,) = study.ask(1)
    np.testing.assert_allclose(third.rival, [0.4, 0.6])  # .3 is no better
    study.tell(third, Outcome({"score": 0.7}, values(0.7)))
    (fourth,) = study.ask(1)
    np.testing.assert_allclose(fourth.rival, [0.6, 0.8])
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
    study = start(toy, path)
    for trial, score in zip(study.ask(3), (0.5, 0.8, 0.6), strict=True):
        study.tell(trial, Outcome({"score": score}, values(score)))
    study.close()
    resumed = Study.resume(
        toy.header(30), arms=toy.arms(30), space=toy.SPACE, objective=toy.OBJECTIVE, path=path,
        by_query=by_query,
    )  # fmt: skip
    (trial,) = resumed.ask(1)
    np.testing.assert_allclose(trial.rival, [0.7, 0.9])
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
