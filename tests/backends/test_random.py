"""Random search: independent draws by the number of the trial."""

from __future__ import annotations

from tuner.backends.random import Random
from tuner.core.space import Integer, Real, SearchSpace
from tuner.core.trial import Trial, TrialState

SPACE = SearchSpace({"a": Real(0, 1), "k": Integer(1, 9)})


def test_points_asked_together_are_those_asked_one_by_one() -> None:
    together = Random(9).suggest(SPACE, [], count=6, seed=4)
    history: list[Trial] = []
    for number in range(6):
        (params,) = Random(9).suggest(SPACE, history, count=1, seed=4)
        history.append(Trial(number, "random", params))
    assert [trial.params for trial in history] == together


def test_results_do_not_steer_it() -> None:
    params = Random(9).suggest(SPACE, [], count=3, seed=4)
    good, bad = (
        [Trial(i, "random", p, TrialState.FINISHED, sign * i) for i, p in enumerate(params)]
        for sign in (1.0, -1.0)
    )
    assert Random(9).suggest(SPACE, good, count=2, seed=4) == Random(9).suggest(
        SPACE, bad, count=2, seed=4
    )
