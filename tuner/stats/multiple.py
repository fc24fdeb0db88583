"""Several comparisons at once: Holm's correction, and a breakdown by group of queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tuner.core.checks import is_whole
from tuner.core.errors import InputError
from tuner.core.rankings import FloatArray
from tuner.stats.paired import PairedComparison, compare_paired
from tuner.stats.pairs import check_share

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


# The first study after a default configuration finds most; afterwards no night is special, and
# what is left for later years must not cost the first one much.
FIRST_LOOKS, FIRST_YEAR, LATER_YEARS = 0.5, 0.4, 0.1

# Simulated years without anything to promote: .05 of them is known to a fiftieth of itself.
DRAWS = 50_000
LOOKS_AT_ONCE = 32


def alpha_of_look(number: int, *, alpha: float, looks_a_year: int = 365) -> float:
    """Return the error rate at which look ``number``, counted from 1, may decide.

    Half of ``alpha`` goes to the first looks, 1 / (k (k + 1)) of it to look k, which is 1/2, 1/6,
    1/12, …; .4 is spread evenly over the first ``looks_a_year`` = n; the rest goes to all that
    follow, (n + 1) / (k (k + 1)) of it to look k. Each of the three sums to 1 at most, so all looks
    together never spend more than ``alpha``, whenever one stops. No look is given more than the one
    before. Beyond the first year the rates fall with the square of the number: it is time for
    queries that were not looked at, with which the count begins anew.

    A look is a pair of configurations on a set of queries and an index: the same again is none.

    alpha = .05: .05 (.25 + .4 / 365) = .0126 for the first look, .05 (.5 / 930 + .4 / 365) = .00008
    for the 30th and .00006 for the 365th, which is z = 2.5, 3.9 and 4.0 against 1.96.

    >>> [round(alpha_of_look(number, alpha=0.05), 5) for number in (1, 2, 30, 365, 366)]
    [0.01255, 0.00422, 8e-05, 5e-05, 1e-05]

    Raises:
        InputError: a number or a year of no whole number from 1 up, or alpha outside 0 to 1.
    """
    check_share("alpha", alpha)
    for name, value in (("number", number), ("looks_a_year", looks_a_year)):
        if not is_whole(value) or value < 1:
            raise InputError(f"must be a whole number from 1 up, got {value!r}", key=(name,))
    falling = 1.0 / (number * (number + 1))
    if number <= looks_a_year:
        return alpha * (FIRST_LOOKS * falling + FIRST_YEAR / looks_a_year)
    return alpha * falling * (FIRST_LOOKS + LATER_YEARS * (looks_a_year + 1))


def levels_of_looks(
    differences: npt.ArrayLike, shares: Sequence[float], *, draws: int = DRAWS, seed: int = 0
) -> FloatArray:
    """Return the error rate at which each look at one champion may decide, shape (looks,).

    ``differences`` are the values of challenger - champion, shape (looks, queries), in the order of
    the looks, NaN where undefined; ``shares`` what ``alpha_of_look`` gives to each. Look k's
    critical value c_k is such that P(``|Z_j| <= c_j`` for all j < k and ``|Z_k| > c_k``) uses up
    what shares 1 to k have left, where the Z are standard normal and correlated as the differences
    are; its level is P(``|Z| > c_k``). No level is under its share, and further looks change none
    of those before. With a new champion the looks begin anew, the numbers of their shares do not.

    Two looks that are the same have levels s1 and s1 + s2; two without any correlation about s1 and
    s2.

    Raises:
        InputError: not one row and one share a look, or an infinite difference.
    """
    from scipy import special

    rows = np.asarray(differences, dtype=np.float64)
    if rows.ndim != 2 or len(rows) != len(shares) or np.isinf(rows).any():
        message = "give the differences as looks x queries, finite or NaN, and a share for each"
        raise InputError(f"{message}; got shape {rows.shape} and {len(shares)} shares")
    distances = _distances(rows, draws, np.random.default_rng(seed))
    is_open = np.ones(draws, dtype=bool)
    levels = np.empty(len(rows))
    spent = 0.0
    for look, (distance, share) in enumerate(zip(distances, shares, strict=True)):
        spent += share
        left = int(spent * draws) - int(np.count_nonzero(~is_open))
        levels[look] = share
        critical = float(special.ndtri(1.0 - share / 2.0))
        candidates = distance[is_open]
        # The first look shares with none; where all differences are the same there is no luck.
        if look and distance.any() and 0 < left <= candidates.size:
            # Beyond the n-th largest of N draws lies n / (N + 1) on average, beyond the next one
            # more: in a year of looks a seventh of .05.
            place = candidates.size - left
            drawn = float(np.partition(candidates, place)[place])
            if drawn < critical:
                critical = drawn
                levels[look] = 2.0 * special.ndtr(-critical)
        is_open &= distance < critical
    return levels


def _distances(
    rows: FloatArray, draws: int, random: np.random.Generator
) -> Iterator[npt.NDArray[np.float32]]:
    """Draw each look's ``|Z|``, shape (draws,), in the order of the looks."""
    directions = np.stack([_direction(row) for row in rows]) if len(rows) else rows
    # Z = L N with the correlations L L'. As L has nothing above its diagonal, look k needs normal
    # numbers 1 to k only, and neither a further look nor a further query changes those before.
    upper = np.linalg.qr(directions.T).R
    lower = (upper.T * np.where(np.diagonal(upper) < 0.0, -1.0, 1.0)).astype(np.float32)
    normal = random.standard_normal((lower.shape[1], draws), dtype=np.float32)
    for first in range(0, len(rows), LOOKS_AT_ONCE):
        some = lower[first : first + LOOKS_AT_ONCE, : first + LOOKS_AT_ONCE]
        yield from np.abs(some @ normal[: some.shape[1]])


def _direction(row: FloatArray) -> FloatArray:
    """Return differences less their mean, as a vector of length 1; zeros where all are the same."""
    is_defined = ~np.isnan(row)
    if not is_defined.any():
        return np.zeros(row.size)
    centred = np.where(is_defined, row - row[is_defined].mean(), 0.0)
    length = float(np.linalg.norm(centred))
    return centred / length if length > 0.0 else centred
