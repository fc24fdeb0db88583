"""Studies with free parameters: arms suggest the others, and trials are told with all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.study import toy
from tuner.core.journal import read_journal
from tuner.core.profile import Curve, Profile
from tuner.core.space import Real, SearchSpace
from tuner.core.trial import Outcome, Params, Trial, TrialState
from tuner.execution.call import call, plain
from tuner.study.arms import Arm, Fixed
from tuner.study.spec import StudySpec
from tuner.study.study import Study

CURVE = Curve("weight", (0.0, 1.1), (0.25, 0.75), (0.01, None))


def evaluate(params: Params) -> Outcome:
    """Choose the free weight .3, which is worth the number of hops."""
    if "weight" in params:
        return Outcome({"score": 0.5})
    profile = Profile(dict(params), 12, 9.0, (CURVE,))
    chosen: Params = {**params, "weight": 0.3}
    return Outcome({"score": float(params["hops"])}, params=chosen, profile=profile)


def run(study: Study, most: int = 100) -> list[Trial]:
    told = []
    while len(told) < most and (trials := study.ask(1)):
        told += study.tell(trials[0], call(evaluate, trials[0]))
    return study.trials


def free_study(path=None, trials=10) -> Study:
    study = toy.create(path, trials, ahead=0)
    study.let_free(["weight"])
    return study


def test_arms_ask_without_the_free_parameter_and_trials_have_it():
    trials = run(free_study())
    baseline, *searched = trials
    assert (baseline.params, baseline.profile) == (toy.BASELINE, None)
    assert searched
    assert all(trial.params["weight"] == 0.3 for trial in searched)
    assert all(trial.asked == {"hops": trial.params["hops"]} for trial in searched)
    # Five numbers of hops are all there is to ask; the arms share the answers.
    evaluated = [trial for trial in searched if trial.state is TrialState.FINISHED]
    assert sorted(trial.params["hops"] for trial in evaluated) == [1, 2, 3, 4, 5]
    assert {trial.state for trial in searched} <= {TrialState.FINISHED, TrialState.SHARED}


def test_a_profile_is_in_the_journal_and_read_back(tmp_path):
    path = tmp_path / "journal.jsonl"
    study = free_study(path)
    trials = run(study)
    study.close()
    read = list(read_journal(path).trials.values())
    assert [trial.params for trial in read] == [trial.params for trial in trials]
    assert read[1].profile == Profile({"hops": trials[1].params["hops"]}, 12, 9.0, (CURVE,))


def test_a_study_that_is_resumed_suggests_what_one_long_run_would(tmp_path):
    long = run(free_study())
    path = tmp_path / "journal.jsonl"
    first = free_study(path)
    run(first, most=4)
    first.ask(1)  # under way when the run is killed
    first.close()
    second = Study.resume(replace(toy.header(10, ahead=0)), toy.spec(10), path)
    second.let_free(["weight"])
    assert [t.params for t in run(second)] == [t.params for t in long]


def test_a_space_of_free_parameters_alone_takes_one_trial():
    study = toy.create(None, 10, ahead=0)
    study.let_free(["weight", "hops"])
    asked = []
    while trials := study.ask(1):
        asked.append(trials[0].params)
        profile = Profile({}, 12, 9.0)
        chosen: Params = {"hops": 1, "weight": 0.3}
        is_baseline = trials[0].arm == "baseline"
        outcome = Outcome({"score": 1.0}) if is_baseline else Outcome({"score": 1.0}, params=chosen)
        study.tell(trials[0], outcome if is_baseline else replace(outcome, profile=profile))
    assert asked == [toy.BASELINE, {}]


def test_of_known_points_that_differ_in_what_is_free_the_best_is_learnt_from():
    points: tuple[Params, ...] = ({"place": 0.1, "weight": 0.0}, {"place": 0.1, "weight": 0.5})
    arms = [Arm("known", Fixed(points), 2), *toy.arms(5)]
    space = SearchSpace({"place": Real(0.0, 1.0), "weight": Real(0.0, 1.1)})
    spec = StudySpec(arms, space, toy.OBJECTIVE, free=("weight",))
    told = [
        Trial(0, "known", points[0], TrialState.FINISHED, objective=0.1),
        Trial(1, "known", points[1], TrialState.FINISHED, objective=0.2),
    ]
    (only,) = spec.history(arms[-1], told, unseen=0, seed=0)
    assert (only.params, only.objective) == ({"place": 0.1}, 0.2)


def test_a_known_point_keeps_no_point_of_a_small_space_from_being_asked():
    known: tuple[Params, ...] = ({"hops": 1, "weight": 0.0}, {"hops": 2, "weight": 0.5})
    earlier = Trial(-1, "earlier", {"hops": 3, "weight": 0.1}, TrialState.FINISHED, objective=0.1)
    arms = [Arm("known", Fixed(known), 2), *toy.arms(5)]
    spec = StudySpec(arms, toy.SPACE, toy.OBJECTIVE, earlier=(earlier,), free=("weight",))
    told = [
        Trial(number, "known", params, TrialState.FINISHED, objective=0.1)
        for number, params in enumerate(known)
    ]
    assert spec.history(arms[-1], told, unseen=0, seed=0) == []


@pytest.mark.parametrize("profile", [None, "none"])
def test_an_outcome_keeps_its_parameters_only_with_a_profile(profile):
    outcome = Outcome({"score": 1.0}, params={"hops": 1}, profile=profile)
    assert (plain(outcome).params, plain(outcome).profile) == (None, None)
