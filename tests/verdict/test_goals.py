"""What became of each goal, by hand: changes, intervals, readings, and why the winner won."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tuner.core.journal import of_alternative, read_per_query, write_per_query
from tuner.core.profile import Alternative, Profile
from tuner.core.study_record import Standing, StudySummary
from tuner.core.trial import Trial, TrialState
from tuner.evaluation.objective import Objective
from tuner.study.pareto import front, front_record
from tuner.verdict.goals import chance_of, front_notes, goal_changes, ran_beside

GOALS = ("composite", "context_tokens", "latency_p95_ms")
OBJECTIVE = Objective({"ndcg@10": 1.0}, pareto=GOALS)


def standing(number, arm="tpe", objective=0.8, *, holdout=True, **metrics):
    metrics = {"ndcg@10": objective, "context_tokens": 900.0, "latency_p95_ms": 10.0, **metrics}
    held = {"holdout_objective": objective, "holdout_metrics": metrics} if holdout else {}
    return Standing(arm, number, {"x": number}, objective, metrics, **held)


def changes(winner, baseline, by_query=lambda name: None, *, is_beside=True):
    found = goal_changes(
        OBJECTIVE,
        winner,
        baseline,
        by_query,
        confidence=0.95,
        is_beside=is_beside,
        seed=0,
    )
    return {one["goal"]: one for one in found}


def test_each_goal_has_its_change_and_its_reading():
    winner = standing(3, objective=0.8, context_tokens=450.0, latency_p95_ms=22.9)
    found = changes(winner, standing(0, "baseline", 0.7))
    assert list(found) == list(GOALS)
    assert found["composite"]["sentence"] == "composite 0.8 against 0.7, +0.100: better"
    assert found["context_tokens"]["sentence"] == "context_tokens 450 against 900, -50 %: better"
    assert found["latency_p95_ms"]["sentence"] == "latency_p95_ms 22.9 against 10, +129 %: worse"


def test_an_interval_decides_where_values_by_query_are_known():
    # Differences 20, -10, 20, -10: mean 5, and t(3) = 3.18 times sd 17.3 / 2 is 27.6.
    tokens = np.array([120.0, 90.0, 120.0, 90.0]), np.full(4, 100.0)
    found = changes(
        standing(3), standing(0), lambda name: tokens if name == "context_tokens" else None
    )
    one = found["context_tokens"]
    assert (one["winner"], one["baseline"], one["difference"]) == (105.0, 100.0, 5.0)
    assert one["interval"][0] < 0.0 < one["interval"][1]
    assert one["reading"] == "no clear change"
    assert one["sentence"].startswith("context_tokens 105 against 100, +5 % (-2")
    quality = np.array([0.9, 0.1]), np.array([0.1, 0.2])
    found = changes(standing(3), standing(0), lambda name: quality if name == "composite" else None)
    assert found["composite"]["interval"] == (-1.0, 1.0)  # no further than the metric reaches


@pytest.mark.parametrize(
    ("holdout", "is_beside", "latency", "reading"),
    [
        (True, True, 22.9, "worse"),  # the held-out queries are asked by one after the other
        (False, True, 22.9, "not comparable, since trials ran beside each other"),
        (False, False, 22.9, "worse"),
        (True, False, 12.0, "no clear change"),
        (True, False, 5.0, "better"),
        (True, False, 10.0, "the same"),
    ],
)
def test_a_latency_is_compared_only_where_it_can_be(holdout, is_beside, latency, reading):
    winner = standing(3, holdout=holdout, latency_p95_ms=latency)
    found = changes(winner, standing(0, holdout=holdout), is_beside=is_beside)
    assert found["latency_p95_ms"]["reading"] == reading
    assert found["latency_p95_ms"]["part"] == ("holdout" if holdout else "tune")


def trial(number, quality, tokens, latency=10.0, *, asked_at=None):
    metrics = {"ndcg@10": quality, "context_tokens": tokens, "latency_p95_ms": latency}
    begun = float(number) if asked_at is None else asked_at
    times = {"asked_at": begun, "told_at": begun + 0.9}
    return Trial(
        number, "tpe", {"x": number}, TrialState.FINISHED, quality, metrics=metrics, **times
    )


def test_trials_ran_beside_each_other_where_one_was_asked_before_another_was_told():
    apart = [trial(n, 0.5, 100) for n in range(4)]
    assert not ran_beside(apart)
    assert ran_beside([*apart, trial(4, 0.5, 100, asked_at=3.5)])
    assert not ran_beside([*apart, replace(trial(4, 0.5, 100, asked_at=3.5), shared_from=3)])


def test_a_point_is_beaten_only_by_more_than_chance(tmp_path):
    (tmp_path / "trials").mkdir()
    rng = np.random.default_rng(0)
    # As good in tokens; 1 is better than 0 by chance, 2 is better than both on every query.
    values = {0: rng.uniform(0.2, 0.6, 50)}
    values[1] = values[0] + rng.normal(0.0, 0.2, 50) + 0.005
    values[2] = values[0] + 0.2
    trials = []
    for number, array in values.items():
        tokens = np.full(50, 100.0)
        path = tmp_path / "trials" / f"{number}.npz"
        np.savez(path, **{"ndcg@10": array, "context_tokens": tokens})
        trials.append(trial(number, float(array.mean()), 100.0))
    assert trials[0].objective < trials[1].objective < trials[2].objective
    objective = replace(OBJECTIVE, pareto=GOALS[:2])

    def kept(trials):
        chance = chance_of(objective, tmp_path / "journal.jsonl", trials)
        return [one.trial.number for one in front(trials, objective.goals, chance)]

    assert kept(trials[:2]) == [1, 0]
    assert kept(trials) == [2]
    assert [one.trial.number for one in front(trials[:2], objective.goals)] == [1]
    # What a damaged file held is not known, and a finished search is not lost for it.
    (tmp_path / "trials" / "0.npz").write_bytes(b"PK damaged")
    assert kept(trials) == [2]
    assert kept(trials[:2]) == [1]


def test_alternatives_of_answers_are_beaten_by_no_less_than_trials(tmp_path):
    (tmp_path / "trials").mkdir()
    rng = np.random.default_rng(1)
    base = rng.normal(0.5, 0.2, 50)
    noise = rng.normal(0.0, 0.1, 50)
    noise -= noise.mean()
    near, far = base + 0.001 + noise, base + 0.1 + noise  # one standard error is 0.014
    tokens = np.full(50, 100.0)
    found = {
        "ndcg@10": base,
        "context_tokens": tokens,
        of_alternative(1, "composite"): near,
        of_alternative(1, "context_tokens"): tokens,
        of_alternative(2, "composite"): far,
        of_alternative(2, "context_tokens"): tokens,
    }
    journal = tmp_path / "journal.jsonl"
    write_per_query(journal, 0, found)
    objective = replace(OBJECTIVE, pareto=GOALS[:2])

    def kept(*others):
        metrics = [{"ndcg@10": float(one.mean()), "context_tokens": 100.0} for one in others]
        alternatives = tuple(Alternative({"k": n}, one) for n, one in enumerate(metrics))
        profile = Profile({}, 3, 0.5, alternatives=alternatives)
        one = replace(trial(0, float(base.mean()), 100.0), profile=profile)
        return [
            point.place
            for point in front([one], objective.goals, chance_of(objective, journal, [one]))
        ]

    assert kept(near) == [1, 0]  # what is better by chance beats nothing
    assert kept(near, far) == [2]
    # Whoever reads a trial's values finds its own.
    assert read_per_query(journal, 0).keys() == {"ndcg@10", "context_tokens"}
    (tmp_path / "trials" / "0.npz").write_bytes(b"PK damaged")
    assert kept(near) == [1]  # what a damaged file held is not known


def test_no_point_is_beaten_by_a_latency_that_cannot_be_compared(tmp_path):
    def kept(*trials):
        chance = chance_of(OBJECTIVE, tmp_path / "journal.jsonl", trials)
        return [one.trial.number for one in front(trials, OBJECTIVE.goals, chance)]

    assert kept(trial(0, 0.5, 100, 10.0), trial(1, 0.5, 100, 30.0)) == [0]
    assert kept(trial(0, 0.5, 100, 10.0), trial(1, 0.5, 100, 11.0)) == [0, 1]
    assert kept(trial(0, 0.5, 100, 10.0), trial(1, 0.5, 100, 30.0, asked_at=0.5)) == [0, 1]


def summed_up(trials, winner, best):
    record = front_record(trials, GOALS, OBJECTIVE.goals)
    return StudySummary(
        "finished", best, None, (), len(trials), 0, 0, 1.0, winner=winner, front=record
    )


def test_why_the_winner_is_that_point_is_said():
    trials = [
        trial(0, 0.9, 900),
        trial(1, 0.8, 300),
        trial(2, 0.5, 100),
        trial(3, 0.7, 400),
    ]
    best = standing(0, objective=0.9)

    def why(number, arm="tpe"):
        return front_notes(summed_up(trials, standing(number, arm), best), GOALS, trials)

    assert why(0) == (
        "The winner, tpe #0, is a point of the front but not its knee (tpe #1); it was chosen "
        "because it has the highest objective.",
    )
    cheaper = (
        "it takes the fewest tokens of those whose objective cannot be told from the highest, that "
        "of tpe #0."
    )
    assert why(1) == (
        f"The winner, tpe #1, is the knee of the front; it was chosen because {cheaper}",
    )
    assert why(3) == (
        "The winner, tpe #3, is not on the front, since another is as good in every goal and "
        f"better in one; it was chosen because {cheaper}",
    )
    assert why(3, "baseline")[0].startswith("No trial has a higher objective than the baseline")
    trials.append(trial(4, 0.1, 950, asked_at=3.5))
    assert why(1)[1:] == (
        "Points of the front are not ranked by latency_p95_ms: not comparable, since trials ran "
        "beside each other.",
    )
