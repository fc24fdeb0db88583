"""Random search: evenly spread draws by the number of the trial."""

from __future__ import annotations

import numpy as np

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


def test_draws_leave_smaller_gaps_than_independent_ones() -> None:
    for dimensions in (2, 20):
        space = SearchSpace({f"x{i}": Real(0, 1) for i in range(dimensions)})

        def widest_gap(rows: np.ndarray) -> float:
            ends = np.zeros((1, rows.shape[1])), np.ones((1, rows.shape[1]))
            ordered = np.sort(np.vstack([ends[0], rows, ends[1]]), axis=0)
            return float(np.diff(ordered, axis=0).max())

        spread, independent = [], []
        for seed in range(5):
            points = Random(40).suggest(space, [], count=40, seed=seed)
            spread.append(widest_gap(np.array([space.encode(params) for params in points])))
            independent.append(widest_gap(np.random.default_rng(seed).random((40, dimensions))))
        assert np.mean(spread) < 0.7 * np.mean(independent)


def test_a_longer_search_begins_as_a_shorter_one() -> None:
    short, long = (Random(n).suggest(SPACE, [], count=n, seed=1) for n in (10, 30))
    assert long[:10] == short
