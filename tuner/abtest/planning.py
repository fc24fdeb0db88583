"""How many units and days an experiment needs, from what users did before it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np

from tuner.abtest.experiment import CONTROL, Amount, ExperimentConfig
from tuner.abtest.quantile import Measured, draw_quantiles
from tuner.abtest.size import unit_spread, units_any_look, units_one_look
from tuner.abtest.table import Table, note_row, read_table
from tuner.abtest.units import (
    Units,
    columns_of,
    group_baseline,
    unit_rows,
    unit_values,
    values_before,
)
from tuner.core.checks import parse_day
from tuner.core.errors import InputError
from tuner.datasets.lines import ProblemLog

LONGEST_DAYS = 3650
RESAMPLES = 999


@dataclass(frozen=True)
class MetricPlan:
    """What one metric asks for.

    Attributes:
        metric: its name.
        role: ``primary`` or ``guardrail``.
        baseline: its value in the baseline file.
        effect: the gain to find, or the margin to keep, in the metric's unit.
        one_look: units of the smallest arm for one planned look.
        any_look: the same for always-valid inference, which may end sooner.
        variance_reduction: CUPED's, squared correlation with the values from before; None without.
    """

    metric: str
    role: str
    baseline: float
    effect: float
    one_look: int
    any_look: int
    variance_reduction: float | None


@dataclass(frozen=True)
class Plan:
    """What an experiment needs.

    Attributes:
        metrics: the primary metric and each guard-rail.
        units: in the baseline file.
        first_day, last_day: of the baseline file.
        sample_size: units of the smallest arm, for the kind of test that the plan decides by.
        total_units: of all arms together, and those that the split leaves out.
        days: until so many have come, at the rate of the baseline; None: over ten years.
        has_days_beyond: whether that is longer than the baseline, so that it is extrapolated.
        remarks: sentences about what the plan rests on.
    """

    metrics: tuple[MetricPlan, ...]
    units: int
    first_day: date
    last_day: date
    sample_size: int
    total_units: int
    days: int | None
    has_days_beyond: bool
    remarks: tuple[str, ...]

    @property
    def weeks(self) -> int | None:
        """Return the days rounded up to whole weeks: weekdays and weekends differ."""
        return None if self.days is None else math.ceil(self.days / 7)

    def to_record(self) -> dict[str, Any]:
        """Return the plan as a JSON-ready mapping."""
        return {
            "baseline": {
                "units": self.units,
                "first_day": self.first_day.isoformat(),
                "last_day": self.last_day.isoformat(),
            },
            "metrics": [vars(one) for one in self.metrics],
            "sample_size_per_arm": self.sample_size,
            "total_units": self.total_units,
            "days": self.days,
            "weeks": self.weeks,
            "is_extrapolated": self.has_days_beyond,
            "remarks": list(self.remarks),
        }


def plan_experiment(config: ExperimentConfig, path: str) -> Plan:
    """Plan by a file with rows of units, dates and the columns of the metrics.

    Raises:
        InputError: with every problem of the file; or a metric has no spread or value there.
    """
    needed_metrics = {
        name: config.metrics[name] for name in (config.primary.metric, *config.guardrails)
    }
    before = {column for one in needed_metrics.values() for column in one.before_columns}
    table = read_table(
        path, (config.unit, config.date), columns_of(needed_metrics), optional=before
    )
    days = _days(table, config.date)
    units = group_baseline(table, config.unit)
    plans = [_primary(config, units)]
    plans += [_guardrail(config, units, name) for name in config.guardrails]
    is_fixed = config.decide == "fixed_horizon"
    sample_size = max(one.one_look if is_fixed else one.any_look for one in plans)
    if not is_fixed:  # whose one look is taken at the sample size that is written after planning
        sample_size = max(sample_size, config.minimum_sample_size)
    total = math.ceil(sample_size / min(config.shares.values()))
    part = 1.0 if config.layer is None else float(config.layer.end) - float(config.layer.start)
    first, last = min(days), max(days)
    arrivals = _arrivals(units, days, first, (last - first).days + 1)
    needed, is_beyond = _days_until(arrivals, math.ceil(total / part))
    return Plan(
        metrics=tuple(plans),
        units=len(units.names),
        first_day=first,
        last_day=last,
        sample_size=sample_size,
        total_units=total,
        days=needed,
        has_days_beyond=is_beyond,
        remarks=(
            *_remarks(config, sample_size, len(arrivals)),
            *(
                f"the baseline has no values in {column!r}: planned without CUPED"
                for column in sorted(before)
                if np.isnan(table.numbers[column]).all()
            ),
        ),
    )


def _remarks(config: ExperimentConfig, sample_size: int, days: int) -> list[str]:
    remarks = []
    if config.decide == "fixed_horizon" and config.minimum_sample_size != sample_size:
        remarks.append(
            f"write minimum_sample_size: {sample_size}, now {config.minimum_sample_size}: the one "
            "look is taken there"
        )
    if days < 14:
        remarks.append(
            f"the baseline covers {days} days; two weeks or more show what weekdays change"
        )
    if len(config.treatments) > 1:
        remarks.append(
            f"each of the {len(config.treatments)} treatments is tested at alpha "
            f"{config.alpha_each:.4g}"
        )
    return remarks


def _primary(config: ExperimentConfig, units: Units) -> MetricPlan:
    name = config.primary.metric
    return _planned(config, units, name, "primary", config.primary.min_effect)


def _guardrail(config: ExperimentConfig, units: Units, name: str) -> MetricPlan:
    return _planned(config, units, name, "guardrail", config.guardrails[name].margin)


def _planned(
    config: ExperimentConfig, units: Units, name: str, role: str, amount: Amount
) -> MetricPlan:
    baseline, deviation, reduction = _baseline(config, units, name)
    effect = amount.of(baseline)
    if effect <= 0.0:
        raise InputError(
            f"{name} is {baseline:g} in the baseline, so that {amount} of it is nothing; write a "
            "number in the metric's unit"
        )
    if role == "primary" and deviation <= 1e-12 * abs(baseline):
        raise InputError(
            f"{name} is {baseline:g} for every unit in the baseline, or CUPED explains all of it: "
            "without a spread there is no sample size"
        )
    smallest = min(config.shares, key=lambda arm: config.shares[arm])
    treatment = config.treatments[0] if smallest == CONTROL else smallest
    shares = (config.shares[treatment], config.shares[CONTROL])
    spread = unit_spread(deviation, *shares)
    sides = 2 if role == "primary" else 1
    alpha, power = config.alpha_each, float(config.power)
    one = units_one_look(effect, spread, alpha=alpha, power=power, sides=sides)
    planned = config.planned_units(treatment)
    many = units_any_look(
        effect, spread, planned_units=planned, alpha=alpha, power=power, sides=sides
    )
    part = min(shares) / sum(shares)
    return MetricPlan(
        metric=name,
        role=role,
        baseline=baseline,
        effect=effect,
        one_look=math.ceil(one * part),
        any_look=math.ceil(many * part),
        variance_reduction=reduction,
    )


def _baseline(
    config: ExperimentConfig, units: Units, name: str
) -> tuple[float, float, float | None]:
    """Return a metric's value, its standard deviation a unit, and what CUPED takes from it."""
    metric = config.metrics[name]
    if metric.quantile is not None:
        rows = unit_rows(units, metric.quantile.of, CONTROL)
        draws = draw_quantiles(
            rows,
            Measured(rows.values, rows.units),
            quantile=float(metric.quantile.at),
            seed=config.seed,
            resamples=RESAMPLES,
        )
        if draws.remark is not None or draws.control is None:
            raise InputError(f"{name}: {draws.remark}")
        error = float(draws.control_draws.std(ddof=1))
        return draws.control, error * math.sqrt(rows.unit_count), None
    values = unit_values(units, metric, CONTROL)
    before = values_before(units, metric, name)
    has = ~np.isnan(values)
    values = values[has]
    if values.size < 2:
        raise InputError(f"{name}: fewer than two units have a value in the baseline")
    deviation = float(values.std(ddof=1))
    if before is None or np.isnan(before).all():
        return float(values.mean()), deviation, None
    x = before[has]
    known = ~np.isnan(x)
    reduction = 0.0
    if np.count_nonzero(known) > 2 and np.ptp(x[known]) > 0.0 and deviation > 0.0:
        centred = np.where(known, x - x[known].mean(), 0.0)
        reduction = float(np.corrcoef(centred, values)[0, 1] ** 2)
    return float(values.mean()), deviation * math.sqrt(1.0 - reduction), reduction


def _days(table: Table, column: str) -> list[date]:
    """Read ISO dates, with or without a time of day; one with an offset counts in UTC."""
    log = ProblemLog()
    days = []
    for text, line in zip(table.texts[column], table.lines, strict=True):
        try:
            days.append(parse_day(text))
        except ValueError as error:
            note_row(log, table.path, line, "date", f"{column}: {error}", is_text=table.is_text)
    log.refuse()
    return days


def _arrivals(units: Units, days: list[date], first: date, count: int) -> list[int]:
    """Return how many units were seen for the first time on each calendar day."""
    earliest: dict[int, date] = {}
    for unit, day in zip(units.of_row.tolist(), days, strict=True):
        earliest[unit] = min(day, earliest.get(unit, day))
    arrivals = [0] * count
    for day in earliest.values():
        arrivals[(day - first) // timedelta(days=1)] += 1
    return arrivals


def _days_until(arrivals: list[int], needed: int) -> tuple[int | None, bool]:
    """Return after how many days so many units have come, and whether that is extrapolated.

    Beyond the baseline, as many new units a day as in its last week: returning users are not new,
    so that the average of the whole would promise too many.
    """
    so_far = 0
    for day, new in enumerate(arrivals, 1):
        so_far += new
        if so_far >= needed:
            return day, False
    last = arrivals[-7:]
    rate = sum(last) / len(last)
    if rate <= 0.0:
        return None, True
    days = len(arrivals) + math.ceil((needed - so_far) / rate)
    return (days if days <= LONGEST_DAYS else None), True
