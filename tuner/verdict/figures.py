"""How a verdict writes its figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

HELD_OUT = "held-out queries"
# Of three digits.
SHOWN_FROM = 0.0005


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


def signed(value: float) -> str:
    """Return a number with its sign; what is 0 to three digits has none."""
    return "0.000" if abs(value) < SHOWN_FROM else f"{value:+.3f}"


def interval(figures: Mapping[str, Any]) -> str:
    """Return an interval with its level."""
    level = confidence(figures["alpha"])
    return f"{level} interval {signed(figures['low'])} to {signed(figures['high'])}"
