"""How many units more until an experiment can be decided, at the figures of today."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tuner.abtest.analysis import MetricResult
from tuner.abtest.experiment import CONTROL, ExperimentConfig
from tuner.abtest.size import units_any_look
from tuner.core.errors import InputError


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
