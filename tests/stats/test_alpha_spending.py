"""Looks at one holdout: together they spend no more than was there, whenever one stops."""

from __future__ import annotations

import math
import statistics
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import InputError
from tuner.stats.multiple import alpha_of_look, levels_of_looks

ALPHAS = st.floats(1e-6, 0.5)
YEARS = st.integers(1, 2_000)


@given(ALPHAS, YEARS, st.integers(1, 5_000))
def test_all_looks_together_spend_no_more_than_alpha(alpha: float, year: int, looks: int) -> None:
    spent = [alpha_of_look(k, alpha=alpha, looks_a_year=year) for k in range(1, looks + 1)]
    assert math.fsum(spent) <= alpha * (1 + 1e-12)
    assert min(spent) > 0.0


@given(ALPHAS, YEARS, st.integers(1, 5_000))
def test_no_look_is_given_more_than_the_one_before(alpha: float, year: int, number: int) -> None:
    now, next_ = (alpha_of_look(k, alpha=alpha, looks_a_year=year) for k in (number, number + 1))
    assert next_ <= now


def test_a_whole_eternity_is_spent_to_the_last() -> None:
    # The three parts sum to 1 - 1/(N+1), 1 and 1 - 366/(N+1): after N = 10^6 looks .99996 in all.
    spent = math.fsum(alpha_of_look(k, alpha=0.05) for k in range(1, 1_000_001))
    assert spent / 0.05 == pytest.approx(1 - 0.5 / 1_000_001 - 0.1 * 366 / 1_000_001, abs=1e-9)


def test_by_hand() -> None:
    # .05 * (.5 / 2 + .4 / 10) = .0145; .05 * (.5 / 6 + .04); .05 * (.5 / 132 + .1 * 11 / 132)
    assert alpha_of_look(1, alpha=0.05, looks_a_year=10) == pytest.approx(0.0145)
    assert alpha_of_look(2, alpha=0.05, looks_a_year=10) == pytest.approx(0.05 * (0.5 / 6 + 0.04))
    assert alpha_of_look(11, alpha=0.05, looks_a_year=10) == pytest.approx(0.05 * 1.6 / 132)


def test_the_first_look_has_a_quarter_and_a_night_in_summer_is_not_hopeless() -> None:
    assert alpha_of_look(1, alpha=0.05) > 0.05 / 4
    # A third of what an even share of all nights would be.
    assert alpha_of_look(180, alpha=0.05) > 0.05 / 365 / 3


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"number": 0}, "number"),
        ({"number": 1.0}, "number"),
        ({"number": True}, "number"),
        ({"looks_a_year": 0}, "looks_a_year"),
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": 1.5}, "alpha"),
        ({"alpha": math.nan}, "alpha"),
    ],
)
def test_what_cannot_be(options: dict[str, Any], key: str) -> None:
    given_ = {"number": 1, "alpha": 0.05, **options}
    with pytest.raises(InputError, match=key):
        alpha_of_look(given_.pop("number"), **given_)


def rows_of(seed: int, *, looks: int = 12, queries: int = 40, alike: float = 0.5) -> Any:
    """Differences whose correlation from one look to another is about ``alike``."""
    random = np.random.default_rng(seed)
    common, own = random.standard_normal(queries), random.standard_normal((looks, queries))
    return math.sqrt(alike) * common + math.sqrt(1.0 - alike) * own


def shares_of(looks: int) -> list[float]:
    return [alpha_of_look(number, alpha=0.05) for number in range(1, looks + 1)]


@pytest.mark.parametrize("alike", [0.0, 0.5, 0.95])
def test_a_year_in_which_nothing_is_better_promotes_within_alpha(alike: float) -> None:
    rows, shares = rows_of(1, alike=alike), shares_of(12)
    levels = levels_of_looks(rows, shares)
    # Other draws than those that the levels were found with: 200,000 years of normal differences.
    centred = rows - rows.mean(axis=1, keepdims=True)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    z = np.abs(np.random.default_rng(99).standard_normal((200_000, rows.shape[1])) @ unit.T)
    critical = np.array([statistics.NormalDist().inv_cdf(1 - level / 2) for level in levels])
    # Spent in 12 looks: .05 * (.5 * 12 / 13 + .4 * 12 / 365) = .0237; the error of two simulations
    # is .0007 + .0003.
    assert np.mean((z > critical).any(axis=1)) <= math.fsum(shares) + 0.003
    assert np.mean((z > critical).any(axis=1)) >= 0.6 * math.fsum(shares)


def test_the_same_look_again_has_both_shares() -> None:
    row = rows_of(2, looks=1)[0]
    levels = levels_of_looks(np.stack([row, row, -row]), [0.01, 0.01, 0.02])
    # sqrt(.04 * .96 / 50,000) = .0009
    np.testing.assert_allclose(levels, [0.01, 0.02, 0.04], atol=0.004)


def test_looks_that_have_nothing_in_common_keep_their_shares() -> None:
    # Orthogonal, each with mean 0: the union bound is nearly all there is.
    rows = [[1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]
    levels = levels_of_looks(rows, [0.02, 0.02, 0.02])
    # s / (1 - s) ** looks before: .02, .0204, .0208
    np.testing.assert_allclose(levels, [0.02, 0.0204, 0.0208], atol=0.004)


@given(st.integers(0, 1_000), st.floats(0.0, 1.0))
def test_levels_are_no_less_than_shares_and_further_looks_change_none(
    seed: int, alike: float
) -> None:
    rows, shares = rows_of(seed, alike=alike), shares_of(12)
    levels = levels_of_looks(rows, shares, draws=2_000)
    assert (levels >= np.array(shares) * (1 - 1e-9)).all()
    assert (levels <= 1.0).all()
    fewer = levels_of_looks(rows[:5], shares[:5], draws=2_000)
    np.testing.assert_allclose(fewer, levels[:5], rtol=1e-4)


def test_queries_that_no_look_has_change_no_level() -> None:
    rows, shares = rows_of(4), shares_of(12)
    wider = np.insert(rows, [0, 3, 40], np.nan, axis=1)
    levels = levels_of_looks(rows, shares, draws=2_000)
    np.testing.assert_allclose(levels_of_looks(wider, shares, draws=2_000), levels, rtol=1e-4)
    assert levels[0] == pytest.approx(shares[0])  # nothing to share yet, whatever the draws


def test_many_looks_at_few_draws_spend_no_more_either() -> None:
    # A draw too many for each look would be .014 more.
    rows, shares = rows_of(5, looks=365, queries=200), shares_of(365)
    levels = levels_of_looks(rows, shares, draws=5_000)
    centred = rows - rows.mean(axis=1, keepdims=True)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    z = np.abs(np.random.default_rng(99).standard_normal((20_000, rows.shape[1])) @ unit.T)
    critical = np.array([statistics.NormalDist().inv_cdf(1 - level / 2) for level in levels])
    # Standard errors: sqrt(.045 * .955 / 5,000) = .003 of the draws, .0015 of this simulation.
    assert np.mean((z > critical).any(axis=1)) <= math.fsum(shares) + 0.009


def test_undefined_and_constant_differences() -> None:
    rows = rows_of(3, looks=4)
    rows[1] = 0.25
    rows[2] = np.nan
    rows[3, :7] = np.nan
    levels = levels_of_looks(rows, shares_of(4), draws=2_000)
    assert (levels >= np.array(shares_of(4)) * (1 - 1e-9)).all()
    np.testing.assert_allclose(levels[1:3], shares_of(4)[1:3])
    assert levels[3] < 0.05


@pytest.mark.parametrize(
    ("differences", "shares"),
    [([0.1, 0.2], [0.01]), ([[0.1, 0.2]], [0.01, 0.01]), ([[0.1, math.inf]], [0.01])],
)
def test_looks_that_cannot_be(differences: Any, shares: list[float]) -> None:
    with pytest.raises(InputError, match="a share for each"):
        levels_of_looks(differences, shares)


def test_without_a_look_there_is_no_level() -> None:
    assert levels_of_looks(np.empty((0, 10)), []).size == 0
