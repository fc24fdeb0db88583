"""An experiment's rows against its plan: sample ratio, every metric, and what should be done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tuner.abtest.assignment import SampleRatio, check_sample_ratio
from tuner.abtest.comparison import (
    ArmComparison,
    adjust_cuped,
    compare_arms,
    skewness_of_difference,
)
from tuner.abtest.experiment import (
    CONTROL,
    ExperimentConfig,
    QuantileSection,
)
from tuner.abtest.guardrail import ArmNonInferiority, arm_non_inferiority
from tuner.abtest.quantile import (
    QuantileDraws,
    compare_quantiles,
    draw_quantiles,
    quantile_non_inferiority,
)
from tuner.abtest.table import Table, read_table
from tuner.abtest.units import (
    Units,
    columns_of,
    group_units,
    never_negative,
    unit_rows,
    unit_values,
    values_before,
)
from tuner.core.errors import InputError
from tuner.core.rankings import FloatArray
from tuner.stats.multiple import correct_holm

RESAMPLES = 1_999
# Simulated with a split of 10 to 90: beyond it up to a quarter of looks find what is not there.
_MOST_SKEWED = 0.3


@dataclass(frozen=True)
class MetricResult:
    """One metric of one treatment against the control.

    Attributes:
        metric: its name in the configuration.
        role: ``primary``, ``guardrail`` or ``secondary``.
        is_higher_better: the good direction.
        comparison: how much the arms differ; of the adjusted values where CUPED was used.
        guardrail: the test against the margin, for a guard-rail.
        adjusted_p: by Holm over the secondary metrics of all treatments; None elsewhere, and where
            nothing was tested.
        variance_reduction: what CUPED took from the variance, 0 to 1; None where it was not used.
        remark: a sentence about what was left out, else None.
    """

    metric: str
    role: str
    is_higher_better: bool
    comparison: ArmComparison
    guardrail: ArmNonInferiority | None
    adjusted_p: float | None
    variance_reduction: float | None
    remark: str | None

    @property
    def is_tested(self) -> bool:
        """Say whether there was anything to test."""
        return self.comparison.p_value is not None


@dataclass(frozen=True)
class Analysis:
    """What an experiment says.

    Attributes:
        config: the plan.
        sample_ratio: whether each arm got its share.
        results: treatment -> results, the primary metric first; empty after a mismatch.
        rows: rows read.
        misplaced: units in another arm than ``tuner abtest assign`` gives them.
    """

    config: ExperimentConfig
    sample_ratio: SampleRatio
    results: dict[str, tuple[MetricResult, ...]]
    rows: int
    misplaced: int

    @property
    def counts(self) -> dict[str, int]:
        """Return the units of each arm."""
        return dict(self.sample_ratio.observed)


def read_results(config: ExperimentConfig, path: str) -> Table:
    """Read the columns that an analysis needs.

    Raises:
        InputError: with every problem of the file.
    """
    return read_table(path, (config.unit, config.arm), columns_of(config.metrics))


def analyze(config: ExperimentConfig, table: Table) -> Analysis:
    """Check the sample ratio, and only where it is right compare every treatment with the control.

    Raises:
        InputError: unknown arms, units in two arms, values from before that are not.
    """
    units = group_units(table, config)
    counts = units.counts(list(config.arms))
    ratio = check_sample_ratio(counts, config.shares)
    assignment = config.assignment()
    misplaced = sum(
        assignment.arm(name) != arm for name, arm in zip(units.names, units.arm, strict=True)
    )
    if ratio.is_mismatch:
        return Analysis(config, ratio, {}, len(table.lines), misplaced)
    order = [config.primary.metric, *config.guardrails, *config.secondary]
    befores = {
        name: before
        for name in order
        if (before := values_before(units, config.metrics[name], name)) is not None
    }
    results = {
        treatment: tuple(
            _measure(config, units, treatment, name, befores.get(name)) for name in order
        )
        for treatment in config.treatments
    }
    return Analysis(config, ratio, _with_holm(config, results), len(table.lines), misplaced)


def _measure(
    config: ExperimentConfig,
    units: Units,
    treatment: str,
    name: str,
    before: FloatArray | None,
) -> MetricResult:
    metric = config.metrics[name]
    limit = config.guardrails.get(name)
    margin = None if limit is None else limit.margin
    is_primary = name == config.primary.metric
    role = "primary" if is_primary else "guardrail" if margin is not None else "secondary"
    reduction: float | None = None
    remark: str | None = None
    planned = config.planned_units(treatment)
    how: dict[str, Any] = {
        "planned_units": planned,
        "alpha": _alpha(config, role),
        "is_from_0_up": never_negative(units, metric),
    }
    if metric.quantile is not None:
        draws = _draws(config, units, treatment, metric.quantile)
        comparison = compare_quantiles(draws, **how)
        non_inferior: Callable[..., ArmNonInferiority] = partial(quantile_non_inferiority, draws)
    else:
        left = unit_values(units, metric, treatment)
        right = unit_values(units, metric, CONTROL)
        if before is not None:
            left, right, reduction, remark = _cuped(units, treatment, left, right, before)
        comparison = compare_arms(left, right, **how)
        is_tested = comparison.p_value is not None
        if is_tested and abs(skewness_of_difference(left, right)) > _MOST_SKEWED:
            skewed = "few units carry it in too small an arm: p and interval say too much"
            remark = skewed if remark is None else f"{remark}; {skewed}"
        non_inferior = partial(arm_non_inferiority, left, right)
    guardrail: ArmNonInferiority | None = None
    if margin is not None:
        guardrail = non_inferior(
            margin=margin.value,
            is_relative=margin.is_relative,
            higher_is_better=metric.is_higher_better,
            planned_units=planned,
            alpha=config.alpha_each,
        )
    return MetricResult(
        metric=name,
        role=role,
        is_higher_better=metric.is_higher_better,
        comparison=comparison,
        guardrail=guardrail,
        adjusted_p=None,
        variance_reduction=reduction,
        remark=comparison.remark or remark,
    )


def _alpha(config: ExperimentConfig, role: str) -> float:
    """Return the level of an interval; Holm takes care of several secondary metrics."""
    return float(config.alpha) if role == "secondary" else config.alpha_each


def _cuped(
    units: Units, treatment: str, left: FloatArray, right: FloatArray, before: FloatArray
) -> tuple[FloatArray, FloatArray, float | None, str | None]:
    """Adjust both arms; where the values cannot be from before, return them as they are."""
    has_left, has_right = ~np.isnan(left), ~np.isnan(right)
    left, right = left[has_left], right[has_right]
    left_before = before[units.members(treatment)][has_left]
    right_before = before[units.members(CONTROL)][has_right]
    if min(left.size, right.size) < 2:
        return left, right, None, None
    try:
        adjusted = adjust_cuped(left, right, left_before, right_before)
    except InputError as error:
        return left, right, None, f"CUPED was not used: {error}"
    return adjusted.treatment, adjusted.control, adjusted.variance_reduction, None


def _draws(
    config: ExperimentConfig, units: Units, treatment: str, section: QuantileSection
) -> QuantileDraws:
    return draw_quantiles(
        unit_rows(units, section.of, treatment),
        unit_rows(units, section.of, CONTROL),
        quantile=float(section.at),
        seed=config.seed,
        resamples=RESAMPLES,
    )


def deciding_p(config: ExperimentConfig, comparison: ArmComparison) -> float | None:
    """Return the p-value that the experiment's plan goes by; None: not tested."""
    is_fixed = config.decide == "fixed_horizon"
    return comparison.p_value if is_fixed else comparison.always_valid_p


def _with_holm(
    config: ExperimentConfig, results: dict[str, tuple[MetricResult, ...]]
) -> dict[str, tuple[MetricResult, ...]]:
    secondary = [
        (treatment, one.metric, deciding_p(config, one.comparison))
        for treatment, ones in results.items()
        for one in ones
        if one.role == "secondary"
    ]
    adjusted = correct_holm([p for _, _, p in secondary]).tolist()
    by_place = {
        (treatment, metric): None if p is None else float(value)
        for (treatment, metric, p), value in zip(secondary, adjusted, strict=True)
    }
    return {
        treatment: tuple(
            replace(one, adjusted_p=by_place.get((treatment, one.metric))) for one in ones
        )
        for treatment, ones in results.items()
    }
