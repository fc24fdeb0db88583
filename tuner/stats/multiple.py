"""Several comparisons at once: Holm's correction, and a breakdown by group of queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tuner.core.errors import InputError
from tuner.core.rankings import FloatArray
from tuner.stats.paired import PairedComparison, compare_paired

# Of fewer queries an interval says next to nothing (for two of them it is wider than the metric),
# and a test of them only takes from the others' share of alpha.
FEWEST_IN_GROUP = 5


@dataclass(frozen=True)
class GroupComparison:
    """One group of queries, with its p-value corrected for the number of groups.

    ``adjusted_p`` is None where the group was not tested because it has fewer than 5 queries;
    there is no interval then either.
    """

    group: str
    comparison: PairedComparison
    adjusted_p: float | None


def correct_holm(p_values: Sequence[float | None] | FloatArray) -> FloatArray:
    """Return p-values that may be held against the same alpha although several were tested.

    Holm 1979: sorted ascending, p_(i) is multiplied by the number of those not yet rejected,
    m - i + 1, and never falls below the one before it; at most 1. None or NaN means "not tested":
    it stays NaN and does not count.

    .01, .04, .03: .01 * 3 = .03; .03 * 2 = .06; .04 * 1 = .04, raised to .06.

    >>> correct_holm([0.01, 0.04, 0.03, None]).round(4).tolist()
    [0.03, 0.06, 0.06, nan]

    Raises:
        InputError: a p-value is outside 0 to 1.
    """
    raw = np.asarray(p_values, dtype=np.float64)
    tested = np.flatnonzero(~np.isnan(raw))
    wrong = tested[(raw[tested] < 0.0) | (raw[tested] > 1.0)]
    if wrong.size:
        raise InputError(f"{float(raw[wrong[0]])} is not a p-value: give numbers from 0 to 1")
    ascending = tested[np.argsort(raw[tested], kind="stable")]
    still_open = np.arange(ascending.size, 0, -1)
    adjusted = np.full(raw.shape, np.nan)
    adjusted[ascending] = np.minimum(np.maximum.accumulate(still_open * raw[ascending]), 1.0)
    return adjusted


def per_group(
    treatment: FloatArray,
    control: FloatArray,
    groups: Sequence[str],
    *,
    seed: int,
    confidence: float = 0.95,
    largest: float | None = None,
    permutations: int = 9_999,
    resamples: int = 9_999,
) -> tuple[GroupComparison, ...]:
    """Compare within each group, such as each query type; ``groups[i]`` is the group of query i.

    Groups come in alphabetical order. ``adjusted_p`` is Holm's over the groups that could be
    tested; the intervals are for one group alone, and end at ``largest``, the most that two means
    can differ by. A group of fewer than 5 queries has neither.

    Raises:
        InputError: lengths differ, or values are not finite or undefined.
    """
    left = np.asarray(treatment, dtype=np.float64)
    right = np.asarray(control, dtype=np.float64)
    if not left.shape == right.shape == (len(groups),):
        raise InputError(
            f"{len(groups)} groups, treatment of shape {left.shape}, control of shape "
            f"{right.shape}; give one group and two values for each query"
        )
    names = sorted(set(groups))
    member = np.asarray([names.index(group) for group in groups], dtype=np.int64)
    comparisons = [
        _enough(
            compare_paired(
                left[member == number],
                right[member == number],
                seed=seed,
                confidence=confidence,
                permutations=permutations,
                resamples=resamples,
            )
        ).within(largest)
        for number in range(len(names))
    ]
    adjusted = correct_holm([comparison.p_value for comparison in comparisons])
    return tuple(
        GroupComparison(name, comparison, None if np.isnan(p) else float(p))
        for name, comparison, p in zip(names, comparisons, adjusted, strict=True)
    )


def _enough(found: PairedComparison) -> PairedComparison:
    """Take the interval and the tests from a comparison of fewer than 5 queries."""
    if found.n >= FEWEST_IN_GROUP or found.n == 0:
        return found
    return replace(
        found,
        interval=None,
        interval_kind="undefined",
        bca_interval=None,
        degrees_of_freedom=None,
        p_value=None,
        permutation_p=None,
        remark=f"fewer than {FEWEST_IN_GROUP} queries: too few for an interval",
    )
