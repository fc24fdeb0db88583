"""Which trials are compared: the first ones that are named, then those furthest from them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.answers.configurations import spread
from tuner.core.trial import Trial, TrialState


def trial(number, **metrics):
    return Trial(number, "tpe", {"x": number}, TrialState.FINISHED, objective=0.0, metrics=metrics)


def numbers(trials):
    return [one.number for one in trials]


def test_each_further_trial_is_the_furthest_from_those_before():
    trials = [trial(n, recall=value) for n, value in enumerate([0.5, 0.1, 0.2, 0.3, 0.9])]
    # Ranks .75, 0, .25, .5, 1: from .75 the furthest is 0; then .25 is as near to 0 as 1 to .75,
    # and .5 to .75: the earliest of equals.
    assert numbers(spread(trials, [trials[0]], 3)) == [0, 1, 2]
    assert numbers(spread(trials, [trials[4], trials[1]], 3)) == [4, 1, 3]


def test_an_outlier_counts_by_its_rank_alone():
    trials = [trial(n, recall=value) for n, value in enumerate([0.50, 0.51, 0.52, 0.53, 0.0])]
    near = spread(trials, [trials[4]], 2)
    assert numbers(near) == [4, 3]
    assert numbers(spread(trials, [trials[4], trials[3]], 3)) == [4, 3, 1]


def test_trials_with_the_same_metrics_are_taken_once():
    trials = [trial(n, recall=0.5, mrr=0.2) for n in range(4)] + [trial(4, recall=0.5, mrr=0.3)]
    assert numbers(spread(trials, [trials[2]], 5)) == [2, 4]


def test_a_metric_that_some_trials_lack_does_not_count():
    trials = [trial(0, recall=0.1), trial(1, recall=0.1, mrr=0.9), trial(2, recall=float("nan"))]
    assert numbers(spread(trials, trials[:1], 3)) == [0]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=9),
    st.integers(2, 6),
)
def test_no_trial_is_chosen_twice_and_the_first_come_first(values, count):
    trials = [trial(n, recall=float(a), mrr=float(b)) for n, (a, b) in enumerate(values)]
    chosen = spread(trials, [trials[-1], trials[-1], trials[0]], count)
    assert numbers(chosen)[:2] == [len(trials) - 1, 0]
    assert len(set(numbers(chosen))) == len(chosen) <= count
    profiles = [tuple(one.metrics.values()) for one in chosen[2:]]
    assert len(set(profiles)) == len(profiles)


def test_without_names_the_first_trial_begins():
    assert numbers(spread([trial(0, recall=0.1), trial(1, recall=0.2)], [], 2)) == [0, 1]


@pytest.mark.parametrize("count", [1, 2])
def test_no_more_than_were_asked_for(count):
    trials = [trial(n, recall=float(n)) for n in range(5)]
    assert len(spread(trials, trials[:3], count)) == count
