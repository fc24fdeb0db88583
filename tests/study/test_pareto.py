"""Fronts by hand: who is on it, where its knee is, and what a search is told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.backends.gp import Gp
from tuner.backends.tpe import Tpe
from tuner.core.errors import InputError
from tuner.core.profile import Alternative, Profile
from tuner.core.space import SearchSpace
from tuner.core.study_record import ArmRecord
from tuner.core.trial import Outcome, Race, Trial, TrialState
from tuner.evaluation.objective import Objective
from tuner.study.arms import Arm
from tuner.study.pareto import front, front_record, knee, points_of, scaled, swept
from tuner.study.spec import StudySpec
from tuner.study.study import Study

OBJECTIVE = Objective(
    {"ndcg@10": 1.0}, {"context_tokens_per_1000": 0.1}, pareto=("composite", "context_tokens")
)


def trial(number, quality, tokens, **extra):
    metrics = {"ndcg@10": quality, "context_tokens": tokens}
    extra = {"state": TrialState.FINISHED, "objective": quality - tokens / 10_000, **extra}
    return Trial(number, "arm", {"x": number}, metrics=metrics, **extra)


def test_goals_are_higher_is_better_and_the_composite_is_without_its_price():
    assert OBJECTIVE.goals({"ndcg@10": 0.7, "context_tokens": 500.0}) == (0.7, -500.0)
    assert OBJECTIVE.metric_names == ("ndcg@10", "context_tokens")
    for wrong, reason in [(("composite",), "two goals or more"), (("a", "a"), "twice")]:
        with pytest.raises(InputError, match=reason):
            Objective({"ndcg@10": 1.0}, pareto=wrong)


def test_the_front_holds_who_is_not_beaten():
    trials = [
        trial(0, 0.9, 900),
        trial(1, 0.8, 300),
        trial(2, 0.8, 400),  # beaten by 1
        trial(3, 0.5, 100),
        trial(4, 0.9, 900),  # the same as 0
        trial(5, 0.4, 200),  # beaten by 3
        trial(6, 0.95, 50, violation=0.5),  # breaks a constraint
        Trial(7, "arm", {"x": 7}, TrialState.FAILED, error="no"),
        trial(8, 0.9, 900, shared_from=0, state=TrialState.SHARED),
    ]
    assert [one.trial.number for one in front(trials, OBJECTIVE.goals)] == [0, 1, 3]
    assert front(trials[6:8], OBJECTIVE.goals) == []
    records = front_record(trials, OBJECTIVE.pareto, OBJECTIVE.goals)
    assert [record["trial"] for record in records] == [0, 1, 3]
    # Scaled: (1, 0), (.75, .75), (0, 1)
    assert [record["is_knee"] for record in records] == [False, True, False]
    assert records[1]["goals"] == {"composite": 0.8, "context_tokens": 300}
    assert front_record(trials, (), OBJECTIVE.goals) == ()


def answered(number, quality, tokens, *others):
    """Return a trial whose answer tells of other settings, too."""
    alternatives = tuple(
        Alternative({"x": number, "k": place}, {"ndcg@10": q, "context_tokens": t})
        for place, (q, t) in enumerate(others)
    )
    profile = Profile({"x": number}, 10, quality, alternatives=alternatives)
    return replace(trial(number, quality, tokens), profile=profile)


def test_the_front_holds_what_answers_tell_of_other_settings():
    trials = [
        trial(0, 0.85, 500),
        answered(1, 0.9, 900, (0.8, 300), (0.85, 500)),  # the last is a twin of 0
        answered(2, 0.7, 400, (0.5, 100)),  # the trial itself is beaten by an alternative of 1
        replace(answered(3, 0.9, 900, (0.95, 50)), violation=0.5),
        replace(answered(4, 0.9, 900, (0.95, 50)), shared_from=3, state=TrialState.SHARED),
    ]
    found = front(trials, OBJECTIVE.goals)
    assert [(one.trial.number, one.place) for one in found] == [(1, 0), (0, 0), (1, 1), (2, 1)]
    records = front_record(trials, OBJECTIVE.pareto, OBJECTIVE.goals)
    assert records[2]["params"] == {"x": 1, "k": 0}
    assert records[2]["goals"] == {"composite": 0.8, "context_tokens": 300}
    assert sum(record["is_knee"] for record in records) == 1


def test_a_point_keeps_what_is_the_same_for_the_whole_answer():
    timed = answered(1, 0.9, 900, (0.8, 300))
    timed = replace(timed, metrics={**timed.metrics, "latency_p95_ms": 5.0})
    own, other = points_of([timed])
    assert (own.metrics, own.params) == (timed.metrics, timed.params)
    expected = {"ndcg@10": 0.8, "context_tokens": 300, "latency_p95_ms": 5.0}
    assert (other.metrics, other.params) == (expected, {"x": 1, "k": 0})
    assert (other.as_trial.metrics, other.as_trial.params) == (expected, {"x": 1, "k": 0})


def test_a_search_takes_a_trial_for_the_best_that_its_answer_tells_of():
    history = [answered(0, 0.9, 900, (0.7, 300)), trial(1, 0.5, 100)]
    told = swept(history, OBJECTIVE.goals, seed=1)
    weights = np.random.default_rng([1, 2]).dirichlet(np.ones(2))
    # Scaled by hand: quality (1, .5, 0), tokens (0, .75, 1)
    scalars = []
    for parts in [(1.0, 0.0), (0.5, 0.75), (0.0, 1.0)]:
        weighted = weights * parts
        scalars.append(weighted.min() + 0.05 * weighted.sum())
    assert told[0].objective == pytest.approx(max(scalars[:2]))
    assert told[1].objective == pytest.approx(scalars[2])
    # No one point stands for the others, so nobody has goals.
    assert [one.goals for one in told] == [(), ()]


def test_the_knee_is_farthest_from_the_line_between_the_ends():
    assert knee(np.array([[1.0, -900.0], [0.9, -700.0], [0.8, -100.0], [0.2, -90.0]])) == 2
    assert knee(np.array([[0.5, 1.0]])) == 0
    assert scaled(np.array([[2.0, 5.0], [4.0, 5.0]])).tolist() == [[0.0, 0.0], [1.0, 0.0]]


def test_a_search_of_one_objective_sweeps_over_the_front():
    history = [trial(0, 0.9, 900), trial(1, 0.7, 300), trial(2, 0.5, 100)]
    told = swept(history, OBJECTIVE.goals, seed=1)
    assert [one.goals for one in told] == [(0.9, -900), (0.7, -300), (0.5, -100)]
    weights = np.random.default_rng([1, 3]).dirichlet(np.ones(2))
    # Scaled by hand: quality (1, .5, 0), tokens (0, .75, 1)
    for one, parts in zip(told, [(1.0, 0.0), (0.5, 0.75), (0.0, 1.0)], strict=True):
        weighted = weights * parts
        assert one.objective == pytest.approx(weighted.min() + 0.05 * weighted.sum())
    assert swept(history, OBJECTIVE.goals, seed=1) == told
    longer = [*history, Trial(3, "arm", {"x": 3})]
    assert swept(longer, OBJECTIVE.goals, seed=1)[0].objective != told[0].objective
    assert swept(longer, OBJECTIVE.goals, seed=1)[3] == longer[3]
    assert swept(longer[3:], OBJECTIVE.goals, seed=1) == longer[3:]


def test_an_estimate_of_another_objective_is_not_learnt_from():
    raced = Trial(1, "arm", {"x": 1}, TrialState.RACED_OUT, race=Race(10, 0.4, 0.3, 0.5))
    told = swept([trial(0, 0.9, 900), raced], OBJECTIVE.goals, seed=1)
    assert raced.worth == 0.4
    assert told[1].worth is None
    assert told[0].goals == (0.9, -900)


def test_a_resumed_study_goes_on_towards_the_same_front(toy, tmp_path):
    def evaluate(params):
        if params["hops"] == 5 and params["weight"] > 0.9:
            return Outcome(error="out of memory")
        quality = params["weight"] * (1 - 0.1 * params["hops"])
        return Outcome({"ndcg@10": quality, "context_tokens": 100.0 * params["hops"]})

    arms = [Arm("tpe", Tpe(10, initial=3), 10), Arm("gp", Gp(10, initial=3), 10)]
    header = replace(
        toy.header(), arms=tuple(ArmRecord(arm.name, arm.name, arm.budget) for arm in arms)
    )
    spec = StudySpec(arms, toy.SPACE, OBJECTIVE, goals=OBJECTIVE.goals)

    def finish(study, steps):
        while steps and (trials := study.ask(1)):
            study.tell(trials[0], evaluate(trials[0].params))
            steps -= 1
        return [(one.number, one.arm, one.params, one.state) for one in study.trials]

    whole = finish(Study.create(header, spec), 100)
    assert len(whole) == 21
    for steps in (5, 16):
        path = tmp_path / f"{steps}" / "journal.jsonl"
        first = Study.create(header, spec, path)
        finish(first, steps)
        first.ask(1)  # Asked, never told.
        first.close()
        second = Study.resume(header, spec, path)
        assert finish(second, 100) == whole
        second.close()


points = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12)


@given(points)
def test_nobody_on_the_front_beats_another_and_everybody_else_is_beaten_or_a_twin(found):
    trials = [trial(n, quality, tokens) for n, (quality, tokens) in enumerate(found)]

    def is_beaten(by, one):
        return by != one and by[0] >= one[0] and by[1] <= one[1]

    kept = {found[one.trial.number] for one in front(trials, OBJECTIVE.goals)}
    assert kept == {one for one in found if not any(is_beaten(by, one) for by in found)}
    assert len(front(trials, OBJECTIVE.goals)) == len(kept)


@pytest.mark.parametrize("kind", ["tpe", "gp", "random"])
def test_every_search_finds_both_ends_of_a_front(kind):
    from tuner.core import registry

    # Quality grows with x and so do tokens: every point is on the front. y only costs.
    space = SearchSpace.from_mapping(
        {"x": {"type": "real", "low": 0, "high": 1}, "y": {"type": "real", "low": 0, "high": 1}}
    )
    backend = registry.load("backends", kind)(budget=30)
    history = []
    for number in range(30):
        told = swept(history, OBJECTIVE.goals, seed=3)
        (params,) = backend.suggest(space, told, count=1, seed=3)
        quality, tokens = params["x"], 1000 * params["x"] ** 2 + 500 * params["y"]
        one = trial(number, quality, tokens)
        history.append(Trial(**{**vars(one), "params": params}))
    qualities = [one.metrics["ndcg@10"] for one in front(history, OBJECTIVE.goals)]
    assert len(qualities) >= 3
    assert max(qualities) > 0.8
    assert min(qualities) < 0.4
