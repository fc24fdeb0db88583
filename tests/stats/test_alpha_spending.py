"""Looks at one holdout: together they spend no more than was there, whenever one stops."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import InputError
from tuner.stats.alpha_spending import alpha_of_look

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
