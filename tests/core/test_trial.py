"""Trials: which of several is the best."""

from __future__ import annotations

from tuner.core.trial import Trial, TrialState, best_trial


def told(number: int, objective: float, violation: float = 0.0) -> Trial:
    return Trial(number, "tpe", {}, TrialState.FINISHED, objective, violation)


def test_the_best_is_the_earliest_of_equals_in_whatever_order_they_come() -> None:
    equal = [told(2, 0.5), told(0, 0.4), told(1, 0.5), told(3, 0.5)]
    assert best_trial(equal) == equal[2]
    assert best_trial(equal[::-1]) == equal[2]


def test_a_trial_that_meets_the_constraints_beats_one_that_does_not() -> None:
    assert best_trial([told(0, 0.9, violation=0.1), told(1, 0.2)]) == told(1, 0.2)
    none = [told(0, 0.9, violation=0.2), told(1, 0.2, violation=0.1)]
    assert best_trial(none) == none[1]
    assert best_trial([]) is None
