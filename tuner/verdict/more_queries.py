"""How many queries would tell, and how to say so."""

from __future__ import annotations

import math
from statistics import NormalDist

from tuner.stats import minimum_detectable_difference, queries_needed

HELD_OUT = "held-out queries"
# From fewer queries no number of further ones is derived, and no difference at all is no evidence:
# the spread of nine values is uncertain by a quarter, and what differs on a tenth of all queries is
# absent from nine of them in four cases of ten.
FEWEST_TO_PLAN = 10
POWER = 0.8
POWER_SHOWN = f"{100 * POWER:g} %"


def needed(
    difference: float,
    deviation: float,
    *,
    alpha: float,
    run_shift: float = 0.0,
    power: float = POWER,
) -> int | None:
    """Return how many queries, in all, show a true difference with ``power``; None: none does.

    With a system that moves by s between runs, a difference D is tested against the error
    sqrt(sd^2 / n + s^2). With z = z_(1 - alpha / 2) + z_power that needs D^2 - (z s)^2 =
    z^2 sd^2 / n: as many as the difference sqrt(D^2 - (z s)^2) does without the movement.
    """
    reach = _reach(alpha, power) * run_shift
    left = difference**2 - reach**2
    if left <= 0.0:
        return None
    return queries_needed(math.sqrt(left), deviation, alpha=alpha, power=power)


def shown_by(
    queries: int, deviation: float, *, alpha: float, run_shift: float = 0.0, power: float = POWER
) -> float:
    """Return the smallest true difference that so many queries show, as ``needed`` reckons."""
    least = minimum_detectable_difference(queries, deviation, alpha=alpha, power=power)
    return math.hypot(least, _reach(alpha, power) * run_shift)


def _reach(alpha: float, power: float) -> float:
    normal = NormalDist()
    return normal.inv_cdf(1.0 - alpha / 2.0) + normal.inv_cdf(power)


def in_queries(number: int, kind: str = "queries") -> str:
    """Return a number with its noun: ``1 query``, ``2,568 held-out queries``."""
    return f"{number:,} {kind.replace('queries', 'query') if number == 1 else kind}"


def confidence(alpha: float) -> str:
    """Return the level of an interval, as exact as its error rate asks for.

    >>> confidence(0.05), confidence(0.012555), confidence(0.00008)
    ('95 %', '98.7 %', '99.992 %')
    """
    digits = max(0, 1 - math.floor(math.log10(100.0 * alpha)))
    return f"{round(100.0 * (1.0 - alpha), digits):g} %"


def to_label(more: int, held_out_share: float | None) -> int | None:
    """Return how many to label so that ``more`` are held out; None where the share is moot."""
    if held_out_share is None or not 0.0 < held_out_share < 1.0:
        return None
    return math.ceil(more / held_out_share)
