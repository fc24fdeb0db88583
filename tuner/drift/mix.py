"""Did the mix of kinds change between two windows of days? Such as that of query types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.core.errors import InputError
from tuner.core.rankings import FloatArray

MODERATE_PSI = 0.1
"""Below it a mix counts as unchanged, from 0.25 on as another one: the rule of credit scoring."""


@dataclass(frozen=True)
class MixChange:
    """How the shares of the kinds moved from the reference to the recent days.

    Attributes:
        kinds: in the order of the columns.
        before, after: the share of each kind, adding up to 1.
        stability_index: the population stability index, 0 where nothing moved.
        statistic: Pearson's chi-square of the two windows, before correction.
        dispersion: how much more the days of a window differ than independent queries do, >= 1.
        p_value: of no change in any direction.
    """

    kinds: tuple[str, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    stability_index: float
    statistic: float
    dispersion: float
    p_value: float


def compare_mix(kinds: Sequence[str], reference: npt.ArrayLike, recent: npt.ArrayLike) -> MixChange:
    """Compare counts of shape (days, kinds) in two windows of days.

    Queries of a day come together (a customer's batch, a weekend), so Pearson's chi-square alone
    would sound the alarm far too often. It is divided by its degrees of freedom and by the
    dispersion: the same figure between the days within each window, at least 1. That is F
    distributed (McCullagh and Nelder 1989, 4.5). The stability index is sum (a - b) ln(a / b) over
    the shares, half a query added to each count so that a new kind is not infinitely far.

    Counts 60, 40 then 40, 60, in one day each: chi-square = 4 * 10^2 / 50 = 8.

    >>> change = compare_mix(["one", "two"], [[60, 40]], [[40, 60]])
    >>> round(change.statistic, 6), round(change.stability_index, 3), round(change.p_value, 4)
    (8.0, 0.159, 0.0047)

    Raises:
        InputError: not counts of these kinds, or a window without any query.
    """
    windows = [_counts(kinds, counts) for counts in (reference, recent)]
    totals = np.stack([counts.sum(axis=0) for counts in windows])
    if not totals.sum(axis=1).all():
        raise InputError("a window without any query has no mix to compare")
    statistic, freedom = _chi_square(totals)
    within = [_chi_square(counts) for counts in windows]
    days_freedom = sum(degrees for _, degrees in within)
    dispersion = max(1.0, sum(one for one, _ in within) / days_freedom) if days_freedom else 1.0
    smooth = totals + 0.5
    before, after = smooth / smooth.sum(axis=1, keepdims=True)
    return MixChange(
        kinds=tuple(kinds),
        before=tuple((totals[0] / totals[0].sum()).tolist()),
        after=tuple((totals[1] / totals[1].sum()).tolist()),
        stability_index=float(((after - before) * np.log(after / before)).sum()),
        statistic=statistic,
        dispersion=dispersion,
        p_value=_p_value(statistic, freedom, dispersion, days_freedom),
    )


def _p_value(statistic: float, freedom: int, dispersion: float, days_freedom: int) -> float:
    from scipy import stats

    if freedom == 0:
        return 1.0  # one kind alone has no mix
    if days_freedom == 0:
        return float(stats.chi2.sf(statistic, freedom))
    return float(stats.f.sf(statistic / freedom / dispersion, freedom, days_freedom))


def _counts(kinds: Sequence[str], counts: npt.ArrayLike) -> FloatArray:
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != len(kinds):
        raise InputError(f"counts of shape {table.shape} for {len(kinds)} kinds; give days x kinds")
    if not np.isfinite(table).all() or (table < 0).any():
        raise InputError("counts must be finite and not below 0")
    return table


def _chi_square(table: FloatArray) -> tuple[float, int]:
    """Return Pearson's chi-square of a table, without empty rows and columns, and its freedom."""
    full = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    if full.shape[0] < 2 or full.shape[1] < 2:
        return 0.0, 0
    expected = full.sum(axis=1, keepdims=True) * full.sum(axis=0) / full.sum()
    freedom = (full.shape[0] - 1) * (full.shape[1] - 1)
    return float(((full - expected) ** 2 / expected).sum()), freedom
