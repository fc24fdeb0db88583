"""Every metric of winner and baseline, paired query by query where that is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tuner.core.rankings import FloatArray
from tuner.evaluation.objective import COMPOSITE
from tuner.evaluation.system_metrics import is_better_lower, largest_difference
from tuner.report.parts import MISSING
from tuner.report.review import Review
from tuner.stats import PairedComparison, compare_paired

OBJECTIVE = "objective, with its price"


@dataclass(frozen=True)
class Compared:
    """One metric of both; ``paired`` is None where its values by query are not known."""

    name: str
    winner: float | None
    baseline: float | None
    paired: PairedComparison | None = None

    @property
    def difference(self) -> float | None:
        """Return winner less baseline: paired where that is known, else of the means."""
        if self.paired is not None and self.paired.mean_difference is not None:
            return self.paired.mean_difference
        if self.winner is None or self.baseline is None:
            return None
        return self.winner - self.baseline

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the interval of the difference."""
        return None if self.paired is None else self.paired.interval

    @property
    def reading(self) -> str:
        """Say in a word what the interval tells."""
        if self.paired is None:
            return "not known by query" if self.difference else MISSING
        if self.interval is None:
            return "no interval"
        low, high = self.interval
        if low == high == 0.0:
            return "the same"
        if is_better_lower(self.name):
            low, high = -high, -low
        return "better" if low > 0 else "worse" if high < 0 else "not clear"


def compare(review: Review) -> tuple[Compared, ...]:
    """Return every metric of winner and baseline, composite first.

    By the queries on which they were put side by side; of an older or an unfinished study by the
    tune queries, where their values were kept; else the means alone.
    """
    chosen, baseline = review.chosen, review.baseline
    if chosen is None or baseline is None:
        return ()
    first, second = _values(review)
    confidence, seed = review.confidence, review.header.seed
    found = [
        _paired(name, first[name], second[name], confidence=confidence, seed=seed)
        for name in first
        if name in second
    ]
    on_holdout = bool(review.rows) and chosen.holdout_objective is not None
    means = (
        (chosen.holdout_metrics, baseline.holdout_metrics)
        if on_holdout
        else (chosen.tune_metrics, baseline.tune_metrics)
    )
    names = [name for name in means[0] if name in means[1] and name not in first]
    found += [Compared(name, means[0][name], means[1][name]) for name in names]
    if not first and not any(one.name == "objective" for one in found):
        objective = Compared("objective", chosen.tune_objective, baseline.tune_objective)
        found.insert(0, objective)
    return _as_judged(review, found)


def _values(review: Review) -> tuple[Mapping[str, FloatArray], Mapping[str, FloatArray]]:
    chosen, baseline = review.chosen, review.baseline
    assert chosen is not None
    assert baseline is not None
    if not review.rows:
        first, second = review.tune_values(chosen), review.tune_values(baseline)
        same = {n for n in first if n in second and first[n].shape == second[n].shape}
        return {n: first[n] for n in first if n in same}, second
    sides: list[dict[str, FloatArray]] = []
    for side in ([row.winner for row in review.rows], [row.baseline for row in review.rows]):
        names = dict.fromkeys(name for one in side for name in one.metrics)
        values = {COMPOSITE: _array([one.composite for one in side])}
        sides.append(values | {n: _array([one.metrics.get(n) for one in side]) for n in names})
    return sides[0], sides[1]


def _array(values: Sequence[float | None]) -> FloatArray:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _paired(
    name: str, first: FloatArray, second: FloatArray, *, confidence: float, seed: int
) -> Compared:
    paired = compare_paired(
        first, second, seed=seed, confidence=confidence, permutations=0, resamples=0
    )
    paired = paired.of_a_cost() if is_better_lower(name) else paired
    paired = paired.within(largest_difference([name]))
    return Compared(name, paired.treatment_mean, paired.control_mean, paired)


def _as_judged(review: Review, compared: Sequence[Compared]) -> tuple[Compared, ...]:
    """Show the composite and the objective with the figures that the verdict was given by."""
    judged = {COMPOSITE: review.verdict.get("comparison")}
    rest = [
        replace(one, paired=_from_record(record)) if (record := judged.get(one.name)) else one
        for one in compared
    ]
    price = review.verdict.get("price")
    if not price:
        return tuple(rest)
    paired = _from_record(price["objective"])
    objective = Compared(OBJECTIVE, paired.treatment_mean, paired.control_mean, paired)
    return (*rest[:1], objective, *rest[1:])


def _from_record(record: Mapping[str, Any]) -> PairedComparison:
    known: dict[str, Any] = {n: record.get(n) for n in PairedComparison.__dataclass_fields__}
    for name in ("interval", "bca_interval"):
        known[name] = None if known[name] is None else tuple(known[name])
    return PairedComparison(**known)
