"""From rows to units: each unit's one arm, and each metric's value of each unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tuner.abtest.experiment import CONTROL, ExperimentConfig, MetricSection, RatioSection
from tuner.abtest.quantile import Measured
from tuner.abtest.table import Table, note_row
from tuner.core.errors import InputError, did_you_mean
from tuner.core.rankings import FloatArray, IntArray
from tuner.datasets.lines import ProblemLog


@dataclass(frozen=True, eq=False)
class Units:
    """Units and the rows they have.

    Attributes:
        table: the rows.
        names: the units' ids, in the order of their first row.
        of_row: shape (rows,): the unit of each row.
        arm: the arm of each unit.
    """

    table: Table
    names: tuple[str, ...]
    of_row: IntArray
    arm: tuple[str, ...]
    _members: dict[str, IntArray] = field(default_factory=dict)

    def members(self, arm: str) -> IntArray:
        """Return the units of an arm, as positions in ``names``."""
        if arm not in self._members:
            self._members[arm] = np.flatnonzero(np.asarray(self.arm) == arm).astype(np.int64)
        return self._members[arm]

    def counts(self, arms: Sequence[str]) -> dict[str, int]:
        """Return how many units each arm has."""
        return {arm: int(self.members(arm).size) for arm in arms}


def group_units(table: Table, config: ExperimentConfig) -> Units:
    """Group the rows of a results file by unit.

    Raises:
        InputError: with every row whose arm is unknown or not the arm of the unit's earlier rows.
    """
    log = ProblemLog()
    position: dict[str, int] = {}
    arms: list[str] = []
    first_line: list[int] = []
    of_row = np.empty(len(table.lines), dtype=np.int64)
    rows = zip(table.texts[config.unit], table.texts[config.arm], table.lines, strict=True)
    for row, (unit, arm, line) in enumerate(rows):
        number = position.setdefault(unit, len(position))
        of_row[row] = number
        if arm not in config.arms:
            message = f"unknown arm {arm!r}{did_you_mean(arm, config.arms)}"
            note_row(log, table.path, line, "arm", message, is_text=table.is_text)
        if number == len(arms):
            arms.append(arm)
            first_line.append(line)
        elif arms[number] != arm:
            where = "line" if table.is_text else "record"
            message = (
                f"{config.unit} {unit!r} is in arm {arm!r} here and in {arms[number]!r} on {where} "
                f"{first_line[number]}: leave out units that saw both"
            )
            note_row(log, table.path, line, "two arms", message, is_text=table.is_text)
    log.refuse()
    return Units(table, tuple(position), of_row, tuple(arms))


def group_baseline(table: Table, unit: str) -> Units:
    """Group the rows of a file from before any experiment: everybody is the control."""
    names, first, of_row = np.unique(
        np.asarray(table.texts[unit], dtype=object), return_index=True, return_inverse=True
    )
    order = np.argsort(first, kind="stable")
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    return Units(
        table, tuple(names[order]), rank[of_row], tuple(CONTROL for _ in range(order.size))
    )


def unit_values(units: Units, metric: MetricSection, arm: str) -> FloatArray:
    """Return the metric's value of each unit of an arm, shape (members,); NaN where it has none.

    Of a ratio these are the values of ``linearised``, whose mean is the arm's ratio.

    Raises:
        InputError: a ratio has a negative denominator.
    """
    members = units.members(arm)
    if isinstance(metric.ratio, RatioSection):
        top, bottom, rows = _sums(units, metric.ratio)
        values = np.full(members.size, np.nan)
        has = rows[members] > 0
        chosen = members[has]
        if bottom[chosen].any():
            values[has] = linearised(top[chosen], bottom[chosen])
        return values
    sums, rows = _summed(units, units.table.numbers[metric.columns[0]])
    values = sums / np.maximum(rows, 1) if metric.mean is not None else sums
    return np.where(rows > 0, values, np.nan)[members]


def unit_rows(units: Units, column: str, arm: str) -> Measured:
    """Return the defined values of a column in an arm's rows, with the unit of each."""
    values = units.table.numbers[column]
    is_member = np.zeros(len(units.names), dtype=bool)
    is_member[units.members(arm)] = True
    chosen = is_member[units.of_row] & ~np.isnan(values)
    return Measured(values[chosen], units.of_row[chosen])


def never_negative(units: Units, metric: MetricSection) -> bool:
    """Say whether no row holds a negative number of what a metric is made of."""
    names = (metric.quantile.of,) if metric.quantile is not None else metric.columns
    return not any(np.nanmin(units.table.numbers[name], initial=0.0) < 0 for name in names)


def values_before(units: Units, metric: MetricSection, name: str) -> FloatArray | None:
    """Return each unit's value from before the experiment, shape (units,); None without a column.

    A unit has one value from before, on all its rows: a sum over rows would bring in how many rows
    the unit has now, which the treatment may have changed.

    Raises:
        InputError: with every row that disagrees with its unit's earlier rows.
    """
    if not metric.before_columns:
        return None
    columns = [_one_each(units, column, name) for column in metric.before_columns]
    if len(columns) == 1:
        return columns[0]
    known = ~(np.isnan(columns[0]) | np.isnan(columns[1]))
    values = np.full(len(units.names), np.nan)
    if columns[1][known].any():
        values[known] = linearised(columns[0][known], columns[1][known])
    return values


def _one_each(units: Units, column: str, metric: str) -> FloatArray:
    table = units.table
    values = table.numbers[column]
    known = np.flatnonzero(~np.isnan(values))
    found = np.full(len(units.names), np.nan)
    # Backwards, so that the unit's first row is the one that stays.
    found[units.of_row[known[::-1]]] = values[known[::-1]]
    wrong = known[values[known] != found[units.of_row[known]]]
    log = ProblemLog()
    for row in wrong.tolist():
        unit = units.of_row[row]
        message = (
            f"{column!r} is {values[row]:g} here and {found[unit]:g} on an earlier row of "
            f"{units.names[unit]!r}: {metric} needs one value a unit from before the experiment"
        )
        line = table.lines[row]
        note_row(log, table.path, line, "before", message, is_text=table.is_text)
    if wrong.size:
        raise InputError(problems=log.problems())
    return found


def _sums(units: Units, ratio: RatioSection) -> tuple[FloatArray, FloatArray, FloatArray]:
    top = units.table.numbers[ratio.of]
    bottom = np.ones(top.size) if ratio.per is None else units.table.numbers[ratio.per]
    known = ~(np.isnan(top) | np.isnan(bottom))
    above, rows = _summed(units, np.where(known, top, np.nan))
    below, _ = _summed(units, np.where(known, bottom, np.nan))
    return above, below, rows


def _summed(units: Units, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    known = ~np.isnan(values)
    count = len(units.names)
    where = units.of_row[known]
    sums = np.bincount(where, weights=values[known], minlength=count).astype(np.float64)
    return sums, np.bincount(where, minlength=count).astype(np.float64)


def columns_of(metrics: Mapping[str, MetricSection]) -> list[str]:
    """Return every column of numbers that the metrics read, each once."""
    names = [
        column
        for metric in metrics.values()
        for column in (*metric.columns, *metric.before_columns)
    ]
    return list(dict.fromkeys(names))


def linearised(numerators: npt.ArrayLike, denominators: npt.ArrayLike) -> FloatArray:
    """Return a value for each unit whose mean is sum(numerators) / sum(denominators).

    The delta method (Deng, Knoblich and Lu 2018): with R the ratio of the sums, unit i counts
    R + (y_i - R x_i) / mean(x), and the variance of these / n is the ratio's. Taking each row for a
    unit instead makes intervals too narrow, as the rows of one user are alike.

    y = 1, 3, 0 and x = 2, 4, 2: R = .5, mean(x) = 8/3, so .5, .5 + 1 / (8/3), .5 - 1 / (8/3).

    >>> linearised([1, 3, 0], [2, 4, 2]).tolist()
    [0.5, 0.875, 0.125]

    Raises:
        InputError: shapes differ, or a denominator is negative, or all are 0.
    """
    top = np.asarray(numerators, dtype=np.float64)
    bottom = np.asarray(denominators, dtype=np.float64)
    if top.shape != bottom.shape or top.ndim != 1:
        raise InputError(
            f"numerators of shape {top.shape} and denominators of shape {bottom.shape}; give one "
            "of each for every unit"
        )
    if (bottom < 0.0).any():
        raise InputError("a denominator is negative: it must count or measure something")
    if not bottom.any():
        raise InputError("all denominators are 0: the ratio is undefined")
    ratio = float(top.sum() / bottom.sum())
    return np.asarray(ratio + (top - ratio * bottom) / bottom.mean(), dtype=np.float64)
