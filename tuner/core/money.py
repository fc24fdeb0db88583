"""Sums of money, in the user's currency: as on paper, so that forty times 0.01 are 0.40.

Binary fractions are not what people write: 39 of 0.01 add up to 0.39000000000000007, and a budget
of 0.40 would then refuse the fortieth. Here every amount counts as the shortest decimal fraction
that it is written as.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal


def total(amounts: Iterable[float]) -> float:
    """Add up amounts.

    >>> total([0.01] * 39), total([0.1, 0.2]), total([])
    (0.39, 0.3, 0.0)
    """
    return float(sum(map(_exact, amounts), Decimal(0)))


def priced(each: float, count: float) -> float:
    """Return what so many cost at a price each.

    >>> priced(0.07, 100), priced(0.1, 3)
    (7.0, 0.3)
    """
    return float(_exact(each) * _exact(count))


def is_passed(limit: float, *, by: float) -> bool:
    """Say whether a limit is passed by more than the last digits of an amount may be off.

    >>> is_passed(0.3, by=0.1 + 0.2), is_passed(0.3, by=0.301)
    (False, True)
    """
    return by > limit * (1.0 + 1e-9)


def _exact(amount: float) -> Decimal:
    return Decimal(repr(float(amount)))
