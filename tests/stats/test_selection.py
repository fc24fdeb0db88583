from itertools import product

import numpy as np
import pytest

from tuner.core.errors import InputError
from tuner.stats import bootstrap_corrected, compare_paired, within_one_standard_error

NAN = float("nan")


def test_within_one_standard_error_by_hand():
    best = [0.5, 0.5, 0.5, 0.5]
    # d = -.2, 0, 0, .1: mean -.025; squares .175^2 + 2 * .025^2 + .125^2 = .0475; se .0629
    near = [0.3, 0.5, 0.5, 0.6]
    # d = -.1, -.1, -.1, -.2: mean -.125; squares 3 * .025^2 + .075^2 = .0075; sd .05, se .025
    far = [0.4, 0.4, 0.4, 0.3]
    # d = -.1 everywhere: se 0
    steady = [0.4, 0.4, 0.4, 0.4]
    values = np.array([near, best, far, steady, best])
    assert within_one_standard_error(values, 1).tolist() == [True, True, False, False, True]


def test_the_error_is_that_of_the_paired_difference():
    # Queries differ much more than trials: the error of a mean (.15) would forgive the loss of .05.
    best = np.linspace(0.0, 1.0, 5)
    worse = best - [0.05, 0.06, 0.04, 0.05, 0.05]
    assert best.std(ddof=1) / np.sqrt(5) > 0.15
    assert within_one_standard_error(np.array([best, worse]), 0).tolist() == [True, False]


def test_undefined_values_are_left_out_pair_by_pair():
    values = np.array(
        [
            [0.5, 0.7, 0.9, NAN],
            [0.5, 0.7, NAN, 0.1],  # shares two queries, equal on both
            [NAN, NAN, 0.9, 1.0],  # shares one
            [NAN, NAN, NAN, NAN],  # failed
        ]
    )
    assert within_one_standard_error(values, 0).tolist() == [True, True, False, False]
    before = values.copy()
    within_one_standard_error(values, 0)
    np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize(
    ("values", "best", "message"),
    [
        (np.zeros((2, 3)), 2, "best=2"),
        (np.zeros((2, 3)), -1, "best=-1"),
        (np.zeros(3), 0, "one row a trial"),
        (np.full((1, 3), NAN), 0, "trial 0 has no value"),
        (np.full((1, 3), np.inf), 0, "infinite"),
    ],
)
def test_a_best_that_is_none_is_refused(values, best, message):
    with pytest.raises(InputError, match=message):
        within_one_standard_error(values, best)


def test_the_correction_agrees_with_all_27_draws_of_three_queries():
    values = np.array([[0.9, 0.1, 0.4], [0.2, 0.8, 0.5], [0.5, 0.5, 0.3]])
    scores = []
    for draw in product(range(3), repeat=3):
        left = [query for query in range(3) if query not in draw]
        if left:
            winner = values[:, list(draw)].mean(axis=1).round(9).argmax()
            scores.append(values[winner, left].mean())
    assert len(scores) == 27 - 6  # 3! draws take every query once
    result = bootstrap_corrected(values, seed=0, resamples=20_000)
    # The standard deviation of a score is about .25, so of the mean .0018.
    assert result.estimate == pytest.approx(np.mean(scores), abs=0.01)
    assert result.interval == pytest.approx((min(scores), max(scores)))
    assert result.naive == pytest.approx(0.5)  # (.2 + .8 + .5) / 3
    assert result.winner == 1
    assert result.optimism == pytest.approx(result.naive - result.estimate)


def test_one_trial_needs_no_correction():
    values = np.random.default_rng(0).uniform(0.0, 1.0, (1, 40))
    result = bootstrap_corrected(values, seed=0)
    assert result.naive == pytest.approx(values.mean())
    assert result.optimism == pytest.approx(0.0, abs=0.01)


def test_the_best_of_100_equal_trials_looks_better_than_it_is_and_the_correction_takes_it_back():
    random = np.random.default_rng(8)
    naive, corrected, false_alarms = [], [], 0
    for seed in range(20):
        # sd .13 a query, 100 queries: the best of 100 is 2.5 * .013 = .033 too high.
        values = 0.5 + random.normal(0.0, 0.13, (100, 100))
        result = bootstrap_corrected(values, seed=seed, resamples=200)
        naive.append(result.naive - 0.5)
        corrected.append(result.estimate - 0.5)
        p_value = compare_paired(
            values[result.winner], values[0], seed=0, permutations=0, resamples=0
        ).p_value
        false_alarms += p_value < 0.05
    assert np.mean(naive) == pytest.approx(0.033, abs=0.004)
    assert abs(np.mean(corrected)) < 0.01  # its standard error is about .013 / sqrt(20) = .003
    assert false_alarms >= 3  # against 1 that a test on other queries would give


def test_a_true_winner_keeps_its_gain_over_the_baseline():
    random = np.random.default_rng(9)
    values = random.uniform(0.3, 0.7, 40) + random.normal(0.0, 0.05, (20, 40))
    values[7] += 0.2
    result = bootstrap_corrected(values - values[0], seed=1)
    assert result.winner == 7
    assert result.estimate == pytest.approx(0.2, abs=0.04)
    assert result.interval[0] > 0.1


def test_failed_trials_and_undefined_queries_are_left_out_and_counted():
    values = np.array([[NAN, NAN, NAN, NAN], [0.1, 0.2, NAN, 0.3], [0.4, 0.5, NAN, 0.6]])
    result = bootstrap_corrected(values, seed=0)
    assert (result.winner, result.trials, result.left_out_trials) == (2, 2, 1)
    assert (result.queries, result.undefined) == (3, 1)
    assert result == bootstrap_corrected(values, seed=0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([[0.5], [0.6]]), "1 of 1 queries"),
        (np.array([[0.5, NAN], [NAN, 0.6]]), "0 of 2 queries"),
        (np.full((2, 2), NAN), "0 of 2 queries"),
        (np.zeros((0, 4)), "0 of 4 queries"),
    ],
)
def test_too_little_to_correct_is_refused(values, message):
    with pytest.raises(InputError, match=message):
        bootstrap_corrected(values, seed=0)
