"""Quantiles such as a p95 of two arms, by a bootstrap that draws whole units.

A mean of users' p95s is another quantity, and rows of one user are alike, so users are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tuner.abtest.comparison import ArmComparison, ArmMeans, tested, untested
from tuner.abtest.guardrail import (
    ArmNonInferiority,
    guarded,
    untested_guardrail,
)
from tuner.abtest.sequential import Look
from tuner.core.errors import InputError
from tuner.core.rankings import FloatArray, IntArray
from tuner.stats.guardrail import check_margin, check_unit
from tuner.stats.pairs import check_share
from tuner.stats.resampling import Interval

# The tail of fewer rows than this is a guess: a p95 would rest on the single slowest.
FEWEST_IN_TAIL = 5


@dataclass(frozen=True, eq=False)
class Measured:
    """Rows of an arm.

    Attributes:
        values: shape (rows,).
        units: shape (rows,), whole numbers from 0: which unit each row is of.
    """

    values: FloatArray
    units: IntArray

    @property
    def unit_count(self) -> int:
        """Return the number of units that have a row."""
        return int(np.unique(self.units).size)


@dataclass(frozen=True, eq=False)
class QuantileDraws:
    """A quantile of each arm, and the same on each bootstrap sample, shape (resamples,)."""

    n_treatment: int
    n_control: int
    treatment: float | None
    control: float | None
    treatment_draws: FloatArray
    control_draws: FloatArray
    remark: str | None


def draw_quantiles(
    treatment: Measured,
    control: Measured,
    *,
    quantile: float,
    seed: int,
    resamples: int = 1_999,
) -> QuantileDraws:
    """Draw both arms' units with replacement, and take the quantile of their rows each time.

    numpy's ``linear`` quantile (type 7). Nothing is drawn, with a remark, where an arm has under
    two units or under 5 rows on either side of the quantile.

    Raises:
        InputError: ``quantile`` is not between 0 and 1, or under 100 resamples.
    """
    check_share("quantile", quantile)
    if resamples < 100:
        raise InputError(f"resamples={resamples}: at least 100 are needed")
    counts = (treatment.unit_count, control.unit_count)
    points = [
        float(np.quantile(arm.values, quantile)) if arm.values.size else None
        for arm in (treatment, control)
    ]
    remark = None
    for name, arm in (("treatment", treatment), ("control", control)):
        tail = min(quantile, 1.0 - quantile) * arm.values.size
        if arm.unit_count < 2:
            remark = f"fewer than two units of the {name} have a value"
        # 0.05 * 100 is a little over 5 in float64, and a little under elsewhere.
        elif tail < FEWEST_IN_TAIL - 1e-9:
            remark = (
                f"the {name} has {arm.values.size} values, so that {tail:.1f} lie beyond the "
                f"quantile: at least {FEWEST_IN_TAIL} are needed"
            )
    empty = np.empty(0)
    if remark is not None:
        return QuantileDraws(*counts, points[0], points[1], empty, empty, remark)
    random = np.random.default_rng(seed)
    draws = [_draws(arm, quantile, random, resamples) for arm in (treatment, control)]
    return QuantileDraws(*counts, points[0], points[1], draws[0], draws[1], None)


def compare_quantiles(
    draws: QuantileDraws,
    *,
    planned_units: float,
    alpha: float = 0.05,
    is_from_0_up: bool = False,
) -> ArmComparison:
    """Compare two quantiles: percentile interval, and p by how many draws lie beyond 0.

    p = 2 (1 + draws on the rarer side of 0) / (draws + 1), at most 1 (Davison and Hinkley 1997);
    the always-valid side takes the standard deviation of the draws for the standard error.
    """
    n = (draws.n_treatment, draws.n_control)
    if draws.remark is not None or draws.treatment is None or draws.control is None:
        return untested(*n, draws.treatment, draws.control, alpha=alpha, remark=draws.remark or "")
    difference = draws.treatment_draws - draws.control_draws
    error = float(difference.std(ddof=1))
    if error == 0.0:
        remark = "every draw gives the same quantiles: there is no spread to test against"
        return untested(*n, draws.treatment, draws.control, alpha=alpha, remark=remark)
    rarer = min(np.count_nonzero(difference <= 0.0), np.count_nonzero(difference >= 0.0))
    low, high = np.quantile(difference, [alpha / 2, 1.0 - alpha / 2])
    return tested(
        *n,
        ArmMeans(
            draws.treatment,
            draws.control,
            float(draws.treatment_draws.var(ddof=1)),
            float(draws.control_draws.var(ddof=1)),
        ),
        error,
        Look(sum(n) / planned_units, alpha),
        interval=(float(low), float(high)),
        p_value=min(1.0, 2.0 * (1.0 + int(rarer)) / (difference.size + 1.0)),
        relative_interval=_of_shares(draws, alpha),
        is_from_0_up=is_from_0_up,
    )


def _of_shares(draws: QuantileDraws, alpha: float) -> Interval | None:
    """Return the percentile interval of the draws' relative differences; None where one is 0."""
    control = draws.control_draws
    if not ((control > 0).all() or (control < 0).all()):
        return None
    shares = (draws.treatment_draws - control) / np.abs(control)
    low, high = np.quantile(shares, [alpha / 2, 1.0 - alpha / 2])
    return float(low), float(high)


def quantile_non_inferiority(
    draws: QuantileDraws,
    *,
    margin: float,
    higher_is_better: bool,
    planned_units: float,
    is_relative: bool = False,
    alpha: float = 0.05,
) -> ArmNonInferiority:
    """Test that a quantile is worse by less than ``margin``, by how many draws are not.

    Raises:
        InputError: the margin is negative, or a share of a control that is not above 0.
    """
    check_margin(margin, alpha)
    if draws.remark is not None or draws.treatment is None or draws.control is None:
        return untested_guardrail(margin, is_relative, alpha, draws.remark)
    if is_relative:
        check_unit(draws.control)
    sign = -1.0 if higher_is_better else 1.0
    unit = draws.control if is_relative else 1.0
    unit_draws = draws.control_draws if is_relative else np.ones(draws.control_draws.size)
    worse = sign * (draws.treatment_draws - draws.control_draws)
    excess = worse - margin * unit_draws
    error = float(excess.std(ddof=1))
    if error == 0.0:
        remark = "every draw gives the same quantiles: there is no spread to test against"
        return untested_guardrail(margin, is_relative, alpha, remark)
    loss = sign * (draws.treatment - draws.control)
    bound = float(np.quantile(worse / unit_draws, 1.0 - alpha)) if unit_draws.all() else None
    return guarded(
        loss / unit,
        margin,
        loss - margin * unit,
        error,
        is_relative=is_relative,
        loss_bound=bound,
        p_value=(1.0 + int(np.count_nonzero(excess >= 0.0))) / (excess.size + 1.0),
        look=Look((draws.n_treatment + draws.n_control) / planned_units, alpha),
    )


def _draws(
    arm: Measured, quantile: float, random: np.random.Generator, resamples: int
) -> FloatArray:
    order = np.argsort(arm.values, kind="stable")
    values = arm.values[order]
    _, units = np.unique(arm.units[order], return_inverse=True)
    count = int(units.max()) + 1
    drawn = np.empty(resamples)
    for number in range(resamples):
        times = np.bincount(random.integers(0, count, size=count), minlength=count)
        drawn[number] = _weighted_quantile(values, times[units], quantile)
    return drawn


def _weighted_quantile(values: FloatArray, times: IntArray, quantile: float) -> float:
    """Return numpy's linear quantile of sorted ``values``, each repeated so many ``times``."""
    up_to = np.cumsum(times)
    place = quantile * (int(up_to[-1]) - 1)
    below = int(place)
    first, second = np.searchsorted(up_to, [below, min(below + 1, up_to[-1] - 1)], side="right")
    low, high = float(values[first]), float(values[second])
    return low + (place - below) * (high - low)
