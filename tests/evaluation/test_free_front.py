"""Several goals at once: what one answer tells of their front."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.evaluation.test_free_weights import THREE, TWO, made, worth
from tuner.backends.front import hypervolume, is_efficient
from tuner.core.journal import of_alternative
from tuner.core.space import Integer, Real, SearchSpace
from tuner.evaluation.free.alternatives import MOST
from tuner.evaluation.objective import Bounds, Objective
from tuner.retrieval.computed import answer_at

WEIGHTS = {"recall@5": 0.5, "ndcg@10": 0.5}
GOALS = Objective(WEIGHTS, pareto=("composite", "context_tokens"))
SPACE = SearchSpace({"weight": Real(0, 1), "top_k": Integer(2, 10)})


def measured(profiler, answer, params):
    return profiler.evaluator.measure(answer_at(profiler.free, answer, params))


def goals_of(profiler, answer, params):
    return profiler.objective.goals(measured(profiler, answer, params).metrics)


def share_of_front(profiler, answer, points):
    """Return the share of the hypervolume of 201 weights with every top_k that points have."""
    known = np.array(
        [
            goals_of(profiler, answer, {"weight": weight, "top_k": k})
            for weight in np.linspace(0, 1, 201).tolist()
            for k in range(2, 11)
        ]
    )
    worst = known.min(axis=0)
    whole = hypervolume(known[is_efficient(known)], worst)
    return hypervolume(np.array(points), worst) / whole


def test_one_answer_tells_of_the_front():
    profiler, answer = made(TWO, GOALS, SPACE)
    chosen, profile, by_query = profiler.with_alternatives(answer, {})
    alone, own = profiler.profile(answer, {})
    assert chosen == alone  # the trial is told with the best by the objective, as ever
    assert replace(profile, alternatives=(), looked_at=own.looked_at) == own
    assert profile.looked_at > own.looked_at
    assert 3 <= len(profile.alternatives) <= MOST
    points = [goals_of(profiler, answer, chosen)]
    for place, one in enumerate(profile.alternatives, start=1):
        outcome = measured(profiler, answer, one.params)
        assert one.metrics == outcome.metrics
        points.append(profiler.objective.goals(outcome.metrics))
        tokens = by_query[of_alternative(place, "context_tokens")]
        assert tokens.tolist() == outcome.per_query["context_tokens"].tolist()
        composite = by_query[of_alternative(place, "composite")]
        assert np.nanmean(composite) == pytest.approx(points[-1][0])
    assert len(by_query) == 2 * len(profile.alternatives)
    assert is_efficient(np.array(points)).all()
    assert share_of_front(profiler, answer, points) > 0.98


def test_a_goal_beside_the_composite_is_looked_for_too():
    three = replace(GOALS, pareto=("composite", "recall@5", "context_tokens"))
    profiler, answer = made(TWO, three, SPACE)
    chosen, profile, _ = profiler.with_alternatives(answer, {})
    settings = [chosen, *(one.params for one in profile.alternatives)]
    best = max(goals_of(profiler, answer, params)[1] for params in settings)
    grid = (
        goals_of(profiler, answer, {"weight": weight, "top_k": k})[1]
        for weight in np.linspace(0, 1, 101).tolist()
        for k in (5, 10)
    )
    assert best >= max(grid)


@pytest.mark.parametrize("is_repeated", [False, True])
def test_of_three_legs_and_of_passages_a_front_is_told_of(is_repeated):
    names = {name: Real(0, 1) for name in "abc"} if not is_repeated else {"weight": Real(0, 1)}
    space = SearchSpace({**names, "top_k": Integer(2, 10)})
    mixing = TWO if is_repeated else THREE
    profiler, answer = made(mixing, GOALS, space, repeated=is_repeated)
    _, profile, _ = profiler.with_alternatives(answer, {})
    depths = {one.params["top_k"] for one in profile.alternatives}
    assert {2, 3} <= depths
    assert all(list(one.params) == list(space.names) for one in profile.alternatives)


def test_what_breaks_a_constraint_is_no_alternative():
    bound = replace(GOALS, constraints={"context_tokens": Bounds(max=30.0)})
    profiler, answer = made(TWO, bound, SPACE)
    _, profile, _ = profiler.with_alternatives(answer, {})
    assert profile.alternatives
    for one in profile.alternatives:
        assert worth(profiler, answer, one.params).violation == 0.0


def test_a_goal_that_an_answer_does_not_decide_leaves_nothing_to_choose_from():
    timed = replace(GOALS, pareto=("composite", "latency_p95_ms"))
    profiler, answer = made(TWO, timed, SPACE)
    _, profile, by_query = profiler.with_alternatives(answer, {})
    assert (profile.alternatives, by_query) == ((), {})


def test_what_chance_may_tell_apart_is_kept_once():
    # Neither goal has a price: settings of all depths from 10 on are nearly the same.
    ranks = replace(GOALS, pareto=("composite", "recall@5"))
    profiler, answer = made(TWO, ranks, SPACE)
    chosen, profile, by_query = profiler.with_alternatives(answer, {})
    own = measured(profiler, answer, chosen)
    for place, one in enumerate(profile.alternatives, start=1):
        other = measured(profiler, answer, one.params)
        pairs = {
            "recall@5": other.per_query["recall@5"] - own.per_query["recall@5"],
            "composite": by_query[of_alternative(place, "composite")]
            - profiler.objective.by_query(own.per_query),
        }
        apart = [
            abs(np.nanmean(d)) > np.nanstd(d, ddof=1) / np.sqrt((~np.isnan(d)).sum())
            for d in pairs.values()
        ]
        assert any(apart)
