"""Rungs: how many queries a racing trial is asked before its rival is looked at again."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tuner.core.corpus import Query
from tuner.core.errors import InputError
from tuner.datasets.split import split_queries

# Measured in experiments/racing: they save more than two rungs do, of 20 and 50 %.
RUNGS = (0.1, 0.2, 0.3, 0.5, 0.7)
# With fewer queries the standard error is itself too uncertain to stop by.
FEWEST = 10


def usable_rungs(queries: int, shares: Sequence[float]) -> list[float]:
    """Return the shares that amount to at least 10 of so many queries.

    >>> usable_rungs(50, [0.1, 0.2, 0.5])
    [0.2, 0.5]
    """
    return [share for share in shares if round(share * queries) >= FEWEST]


def divide(
    queries: Sequence[Query], shares: Sequence[float], *, stratify_by: Sequence[str], seed: int
) -> list[frozenset[str]]:
    """Return the ids that each rung adds, the last one those that are left."""
    left = tuple(queries)
    parts, before = [], 0.0
    for share in usable_rungs(len(queries), shares):
        if len(left) < 2:
            break
        rest, drawn = split_queries(
            left, holdout=(share - before) / (1.0 - before), stratify_by=stratify_by, seed=seed
        )
        parts.append(frozenset(drawn))
        left = tuple(query for query in left if query.id in set(rest))
        before = share
    return [*parts, frozenset(query.id for query in left)]


def check_racing(shares: Sequence[float], stop_below: float) -> None:
    """Refuse rungs that cannot be.

    Raises:
        InputError: shares that do not rise between 0 and 1, or ``stop_below`` above 0.
    """
    is_rising = all(a < b for a, b in zip((0.0, *shares), (*shares, 1.0), strict=True))
    if not shares or not is_rising:
        message = f"{list(shares)} must rise and lie between 0 and 1, as [0.2, 0.5] does"
        raise InputError(message, key=("rungs",))
    if not stop_below <= 0 or not math.isfinite(stop_below):
        message = f"{stop_below} must be a number of at most 0: the trial is behind there"
        raise InputError(message, key=("stop_below",))
