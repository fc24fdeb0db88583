"""The one objective of a study: a weighted mean of metrics, less a price, within constraints."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tuner.core.errors import InputError, Problem, did_you_mean
from tuner.core.rankings import FloatArray
from tuner.evaluation.system_metrics import is_better_lower

PER_1000 = "_per_1000"
COMPOSITE = "composite"
# Weights and prices beyond this are slips of the keyboard, and their sums would overflow.
LARGEST = 1e9
# Violations are relative to the bound, down to this size of it.
SMALLEST_BOUND = 1e-9
NO_MEANS: Mapping[str, float] = {}
DEFAULT_WEIGHTS: Mapping[str, float] = {"recall": 0.5, "mrr": 0.3, "ndcg": 0.2}


@dataclass(frozen=True)
class Score:
    """What an outcome is worth. ``violation`` is 0 where every constraint holds."""

    objective: float
    composite: float
    violation: float


@dataclass(frozen=True)
class Bounds:
    """The range that a metric must stay in; None leaves a side open."""

    min: float | None = None
    max: float | None = None

    def violation(self, value: float) -> float:
        """Return by how much ``value`` leaves the range, relative to the bound (0: it does not)."""
        below = 0.0 if self.min is None else (self.min - value) / _scale(self.min)
        above = 0.0 if self.max is None else (value - self.max) / _scale(self.max)
        return max(below, above, 0.0)


@dataclass(frozen=True)
class Objective:
    """Adds metrics up to one number, higher is better.

    ``objective = sum(weight * metric) / sum(weight) - sum(price * metric)``. A price named
    ``context_tokens_per_1000`` is paid for each thousand of ``context_tokens``.

    ``pareto`` names goals that are sought side by side; the objective still ranks the trials.

    >>> paid = Objective({"ndcg@10": 1.0}, price={"context_tokens_per_1000": 0.02})
    >>> paid.score({"ndcg@10": 0.7, "context_tokens": 500.0}).objective
    0.69

    Raises:
        InputError: no weight, a negative or infinite one, weights that sum to 0, or bounds whose
            minimum is above their maximum.
    """

    weights: Mapping[str, float]
    price: Mapping[str, float] = field(default_factory=dict)
    constraints: Mapping[str, Bounds] = field(default_factory=dict)
    pareto: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        problems = [*self._weight_problems(), *self._bound_problems(), *self._goal_problems()]
        if problems:
            raise InputError(problems=problems)

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Return every metric that a score needs, each once."""
        paid = (paid_metric(name)[0] for name in self.price)
        goals = (name for name in self.pareto if name != COMPOSITE)
        return tuple(dict.fromkeys((*self.weights, *paid, *self.constraints, *goals)))

    def score(self, metrics: Mapping[str, float]) -> Score:
        """Add up one outcome's metrics.

        Raises:
            InputError: a metric is missing or not a finite number; never counted as 0.
        """
        total = math.fsum(self.weights.values())
        values = {name: self._value(metrics, name) for name in self.metric_names}
        composite = math.fsum(w * values[name] for name, w in self.weights.items()) / total
        cost = 0.0
        for name, price in self.price.items():
            metric, units = paid_metric(name)
            cost += price * values[metric] / units
        violation = math.fsum(
            bounds.violation(values[name]) for name, bounds in self.constraints.items()
        )
        return Score(composite - cost, composite, violation)

    def goals(self, metrics: Mapping[str, float]) -> tuple[float, ...]:
        """Return the values of ``pareto``, each so that higher is better: costs are negative.

        ``composite`` is the weighted mean without any price.

        Raises:
            InputError: a metric is missing or not a finite number.
        """
        composite = self.score(metrics).composite
        return tuple(
            composite
            if name == COMPOSITE
            else self._value(metrics, name) * (-1.0 if is_better_lower(name) else 1.0)
            for name in self.pareto
        )

    def by_query(
        self, per_query: Mapping[str, FloatArray], means: Mapping[str, float] = NO_MEANS
    ) -> FloatArray:
        """Return the objective of each query, shape (queries,); NaN where a metric is undefined.

        Prices of what is known by query (tokens) are paid by query; those of other metrics are the
        same for all queries, and paid from ``means`` where they are there.

        >>> paid = Objective({"ndcg@10": 1.0}, price={"context_tokens_per_1000": 0.02})
        >>> paid.by_query({"ndcg@10": np.array([0.7, 1.0])}, {"context_tokens": 500.0})
        array([0.69, 0.99])
        """
        values = composite_values(per_query, self.weights)
        for name, price in self.price.items():
            metric, units = paid_metric(name)
            amount = per_query.get(metric, means.get(metric, 0.0))
            values = values - price * np.asarray(amount) / units
        return values

    def to_mapping(self) -> dict[str, Any]:
        """Return the objective as the configuration writes it."""
        return {
            "maximize": dict(self.weights),
            "price": dict(self.price),
            "constraints": {
                name: {"min": bounds.min, "max": bounds.max}
                for name, bounds in self.constraints.items()
            },
            **({"pareto": list(self.pareto)} if self.pareto else {}),
        }

    def _value(self, metrics: Mapping[str, float], name: str) -> float:
        if name not in metrics:
            raise InputError(f"metric {name!r} is missing{did_you_mean(name, metrics)}")
        value = metrics[name]
        if isinstance(value, float) and math.isnan(value):
            raise InputError(
                f"metric {name!r} is undefined for every query (nan is not a finite number)"
            )
        if isinstance(value, bool) or not _is_number(value):
            raise InputError(f"metric {name!r} is {value!r}, not a finite number")
        return float(value)

    def _weight_problems(self) -> list[Problem]:
        if not self.weights:
            message = "names no metric; write for example {recall@10: 0.5, mrr@10: 0.3}"
            return [Problem(message, key=("objective", "maximize"))]
        problems = [
            Problem(
                f"the weight is {weight!r}; it must be a number from 0 to {LARGEST:g} "
                "(every metric is better when it is higher)",
                key=("objective", "maximize", name),
            )
            for name, weight in self.weights.items()
            if not _is_number(weight) or not 0 <= weight <= LARGEST
        ]
        if not problems and math.fsum(self.weights.values()) <= 0:
            message = "the weights sum to 0; at least one must be above 0"
            problems.append(Problem(message, key=("objective", "maximize")))
        problems += [
            Problem(
                f"the price is {price!r}; it must be a number from 0 to {LARGEST:g}",
                key=("objective", "price", name),
            )
            for name, price in self.price.items()
            if not _is_number(price) or not 0 <= price <= LARGEST
        ]
        return problems

    def _goal_problems(self) -> list[Problem]:
        key = ("objective", "pareto")
        if len(self.pareto) == 1:
            message = "a front needs two goals or more, such as [composite, context_tokens]"
            return [Problem(message, key=key)]
        if len(set(self.pareto)) < len(self.pareto):
            return [Problem("names a goal twice", key=key)]
        return []

    def _bound_problems(self) -> list[Problem]:
        problems = []
        for name, bounds in self.constraints.items():
            key = ("objective", "constraints", name)
            if bounds.min is None and bounds.max is None:
                problems.append(Problem("names no bound; write {min: …} or {max: …}", key=key))
            elif bounds.min is not None and bounds.max is not None and bounds.min > bounds.max:
                message = f"min {bounds.min} is above max {bounds.max}"
                problems.append(Problem(message, key=key))
        return problems


def composite_values(
    per_query: Mapping[str, FloatArray], weights: Mapping[str, float]
) -> FloatArray:
    """Return each query's weighted mean of metrics, shape (queries,); NaN where one is undefined.

    Its mean over queries is the composite of the objective, before any price.
    """
    parts = [weight * np.asarray(per_query[name]) for name, weight in weights.items() if weight]
    result: FloatArray = np.sum(parts, axis=0) / math.fsum(weights.values())
    return result


def _scale(bound: float) -> float:
    return abs(bound) if abs(bound) >= SMALLEST_BOUND else 1.0


def paid_metric(name: str) -> tuple[str, float]:
    """Return the metric that a price is paid for, and for how many units of it.

    >>> paid_metric("context_tokens_per_1000")
    ('context_tokens', 1000.0)
    """
    if name.endswith(PER_1000):
        return name.removesuffix(PER_1000), 1000.0
    return name, 1.0


def _is_number(value: object) -> bool:
    try:
        return math.isfinite(value)  # type: ignore[arg-type]  # the point is to find out
    except (TypeError, ValueError, OverflowError):
        return False
