"""How many units an experiment needs, for one planned look or any number, and how many more now."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tuner.abtest.analysis import MetricResult
from tuner.abtest.experiment import CONTROL, ExperimentConfig
from tuner.abtest.sequential import Look
from tuner.core.errors import InputError
from tuner.stats.pairs import check_share
from tuner.stats.power import sample_size_unpaired

# More units than there are people; where even so many do not tell, none do.
MOST_UNITS = 10**11


def unit_spread(standard_deviation: float, treatment_share: float, control_share: float) -> float:
    """Return the standard error of a difference times sqrt(units of both arms together).

    sd * sqrt((t + c) (1/t + 1/c)): 2 sd for equal shares, 3.33 sd for 10 % against 90 %.

    >>> round(unit_spread(1.0, 0.1, 0.9), 2)
    3.33
    """
    check_share("treatment_share", treatment_share)
    check_share("control_share", control_share)
    both = treatment_share + control_share
    return standard_deviation * math.sqrt(both / treatment_share + both / control_share)


def units_one_look(
    effect: float, spread: float, *, alpha: float = 0.05, power: float = 0.8, sides: int = 2
) -> int:
    """Return the units of both arms with which a t-test at one planned look finds ``effect``.

    ``spread`` is that of ``unit_spread`` or standard error * sqrt(units) of an earlier sample. An
    unequal split counts as the equal one with the same standard error.

    Cohen's d = .2, equal shares: spread 2 for sd 1, 394 in each arm.

    >>> units_one_look(0.2, 2.0)
    788

    Raises:
        InputError: the effect is 0 or not finite.
    """
    if spread <= 0.0:
        return 4  # The least with which both arms show a spread.
    each = sample_size_unpaired(2.0 * effect / spread, alpha=alpha * 2 / sides, power=power)
    return 2 * each


def units_any_look(
    effect: float,
    spread: float,
    *,
    planned_units: float,
    alpha: float = 0.05,
    power: float = 0.8,
    sides: int = 2,
) -> int:
    """Return the units with which always-valid inference has found ``effect`` with ``power``.

    The fewest N with effect >= (w + z) * spread / sqrt(N), w the width of the confidence sequence
    in standard errors at N and z the normal quantile of ``power``; an earlier look may end the
    experiment sooner, with the same promise.

    With a power of a half, z is 0: the units with which the interval is narrower than ``effect``.

    Raises:
        InputError: the effect is 0, or even 1e11 units would not tell.
    """
    from scipy import stats

    check_share("power", power)
    further = float(stats.norm.ppf(power))
    effect = abs(effect)
    if not (math.isfinite(effect) and effect > 0.0):
        raise InputError(f"effect={effect!r}: no sample shows it; give an effect other than 0")

    def is_enough(units: int) -> bool:
        look = Look(units / planned_units, alpha)
        width = look.interval(0.0, 1.0)[1] if sides == 2 else look.upper_bound(0.0, 1.0)
        return effect >= (width + further) * spread / math.sqrt(units)

    high = 4
    while not is_enough(high):
        if high > MOST_UNITS:
            raise InputError(f"effect={effect:g}: not even {MOST_UNITS:.0e} units would show it")
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def units_for_minimum(
    config: ExperimentConfig,
    treatment: str,
    assigned: Mapping[str, int],
    with_value: tuple[int, int],
) -> int:
    """Return how many units more, of both arms, bring each arm its minimum of units with a value.

    The arm that lacks most decides: it gets its share of new units only, and of these as many have
    a value as of those that are there.
    """
    arms = (treatment, CONTROL)
    both = sum(config.shares[arm] for arm in arms)
    needed = []
    for arm, valued in zip(arms, with_value, strict=True):
        lacking = max(config.minimum_sample_size - valued, 0)
        with_a_value = valued / assigned[arm] if valued else 1.0
        needed.append(lacking / with_a_value / (config.shares[arm] / both))
    return max(math.ceil(max(needed) - 1e-9), 1)


def units_for_primary(
    config: ExperimentConfig, treatment: str, primary: MetricResult, gain: float | None
) -> int | None:
    """Return with how many units 0 or the smallest gain that matters leaves the interval."""
    comparison = primary.comparison
    if gain is None or comparison.standard_error is None or comparison.control is None:
        return None
    least = config.primary.min_effect.of(comparison.control)
    have = comparison.n_treatment + comparison.n_control
    # At least half the smallest gain that matters, so that this is always finite.
    distance = max(abs(gain), abs(least - gain))
    return _until(
        distance,
        comparison.standard_error * math.sqrt(have),
        config.planned_units(treatment),
        config.alpha_each,
    )


def units_for_guardrail(
    config: ExperimentConfig, treatment: str, guard: MetricResult
) -> int | None:
    """Return with how many units the loss of today would be shown to be within the margin."""
    comparison, test = guard.comparison, guard.guardrail
    if test is None or test.loss is None or test.standard_error is None:
        return None
    if comparison.control is None or test.loss >= test.margin:
        return None
    unit = comparison.control if test.is_relative else 1.0
    have = comparison.n_treatment + comparison.n_control
    return _until(
        (test.margin - test.loss) * unit,
        test.standard_error * math.sqrt(have),
        config.planned_units(treatment),
        config.alpha_each,
        sides=1,
    )


def _until(
    distance: float, spread: float, planned: float, alpha: float, *, sides: int = 2
) -> int | None:
    try:
        return units_any_look(
            distance, spread, planned_units=planned, alpha=alpha, power=0.5, sides=sides
        )
    except InputError:
        return None


def rounded(units: int) -> int:
    """Return a forecast with two digits, rounded up: more would be made up."""
    step = int(10 ** max(len(str(units)) - 2, 0))
    return math.ceil(units / step) * step
