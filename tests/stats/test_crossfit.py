"""How much parts depend on each other that choose for one another."""

from __future__ import annotations

import numpy as np
import pytest

from tuner.core.errors import InputError
from tuner.stats import widened_by, widened_by_both_ways
from tuner.stats.selection import best_means


def halves(queries):
    return np.arange(queries) % 2


def test_one_configuration_that_is_always_chosen_needs_no_wider_interval():
    gains = np.stack([np.zeros(100), np.random.default_rng(0).normal(size=100)])

    def second(values, drawn):
        return np.ones(len(drawn), dtype=np.intp)

    (factor,) = widened_by(gains, halves(100), choose=second, seed=0, resamples=8_000)
    # Both parts test the same one on queries of their own: t is that of one sample.
    assert factor == pytest.approx(1.0, abs=0.05)


def test_opposite_directions_agree_by_chance_and_widen_the_interval():
    noise = np.random.default_rng(1).normal(size=200)
    gains = np.stack([np.zeros(200), noise, -noise])
    (factor,) = widened_by(gains, halves(200), choose=best_means, seed=0, resamples=8_000)
    # Each half has z of its own, a and b; chosen by the other, both gains are positive where the
    # signs agree: t = (abs(a) + abs(b)) / sqrt(2) in one of two cases. P(t > c) = 2 P(a + b >
    # c sqrt(2), a > 0, b > 0), which is .025 at c = 2.23: 2.23 / 1.96 = 1.14.
    assert factor == pytest.approx(1.14, abs=0.05)


def test_what_is_clearly_worse_is_chosen_by_nobody_and_widens_nothing():
    noise = np.random.default_rng(1).normal(size=200)
    apart = np.random.default_rng(5).normal(size=200)
    gains = np.stack([np.zeros(200), noise - noise.mean(), apart.mean() - apart - 5.0])
    alone = np.stack([gains[0], gains[1]])
    found = [
        widened_by(values, halves(200), choose=best_means, seed=0, resamples=8_000)
        for values in (gains, alone)
    ]
    assert found[0] == found[1]


def test_further_values_have_a_factor_of_their_own_by_the_same_choice():
    random = np.random.default_rng(2)
    noise = random.normal(size=200)
    gains = np.stack([np.zeros(200), noise, -noise])
    apart = np.stack([np.zeros(200), *random.normal(size=(2, 200))])
    own, other = widened_by(
        gains, halves(200), choose=best_means, seed=0, tested=[apart], resamples=8_000
    )
    assert own > other  # what is tested has nothing to do with what chose
    assert other == pytest.approx(1.0, abs=0.05)


def test_the_same_seed_gives_the_same_factor_and_undefined_queries_are_left_out():
    values = np.random.default_rng(3).normal(size=(5, 60))
    values[0] = 0.0
    more = np.concatenate([values, np.full((5, 3), np.nan)], axis=1)
    found = [
        widened_by(gains, part_of, choose=best_means, seed=1, resamples=500)
        for gains, part_of in ((values, halves(60)), (more, halves(63)))
    ]
    assert found[0] == found[1]


def test_a_gain_without_spread_widens_nothing():
    gains = np.stack([np.zeros(50), np.full(50, 0.25)])
    assert widened_by(gains, halves(50), choose=best_means, seed=0, resamples=200) == (1.0,)


@pytest.mark.parametrize(
    ("gains", "part_of", "said"),
    [
        (np.zeros((2, 10)), np.zeros(9, dtype=int), "not of the same queries"),
        (np.zeros((2, 10)), np.zeros(10, dtype=int), "1 part with values"),
        (np.full((2, 10), np.nan), halves(10), "0 part"),
    ],
)
def test_what_is_no_parts_is_refused(gains, part_of, said):
    with pytest.raises(InputError, match=said):
        widened_by(gains, part_of, choose=best_means, seed=0)


def test_a_second_way_to_a_claim_widens_the_interval_as_a_second_test_does():
    random = np.random.default_rng(3)
    gain, change = random.normal(size=(2, 400))

    def second(values, drawn):
        return np.ones(len(drawn), dtype=np.intp)

    def factor(own, other, margin):
        rows = [np.stack([np.zeros(400), one]) for one in (own, other)]
        given = {"choose": second, "margin": margin, "seed": 0, "resamples": 8_000}
        return widened_by_both_ways(*rows, halves(400), **given)

    # A change so small that no margin is ever in question: two independent tests. Of the second way
    # only those count that gain more than it: P(either > c) = .025 at 1 - sqrt(.975), c = 2.24.
    assert factor(gain, 1e-3 * change, 1.0) == pytest.approx(2.24 / 1.96, abs=0.04)
    # A margin of 0 is shown only where it is better anyway, and so is no further way.
    assert factor(gain, change, 0.0) == pytest.approx(1.0, abs=0.05)
    # The same values: the second way is the first one, but never gains more.
    assert factor(gain, gain, 1.0) == pytest.approx(1.0, abs=0.05)


def test_both_ways_need_at_least_what_the_parts_dependence_needs():
    noise = np.random.default_rng(1).normal(size=200)
    gains = np.stack([np.zeros(200), noise, -noise])
    given = {"choose": best_means, "seed": 0, "resamples": 2_000}
    (alone,) = widened_by(gains, halves(200), **given)
    assert widened_by_both_ways(gains, gains, halves(200), margin=0.01, **given) == alone
