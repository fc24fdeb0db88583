"""Figures of one evaluation beyond the mean: how queries spread, and each group's own figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tuner.core.corpus import Query
from tuner.core.errors import InputError
from tuner.core.rankings import FloatArray
from tuner.metrics.aggregate import Aggregate, aggregate, aggregate_by

UNNAMED = "(none)"


def groups(queries: Sequence[Query], by: str) -> list[str]:
    """Return each query's group.

    Raises:
        InputError: no query has one.
    """
    labels = [str(getattr(query, by)) for query in queries]
    if not any(labels):
        raise InputError(f"--by {by}: no query of this data set has a {by}")
    return [label or UNNAMED for label in labels]


def spread_record(per_query: Mapping[str, FloatArray]) -> dict[str, Any]:
    """Return the figures of each metric for JSON."""
    return {name: _record(aggregate(values)) for name, values in per_query.items()}


def group_record(per_query: Mapping[str, FloatArray], labels: Sequence[str]) -> dict[str, Any]:
    """Return the figures of each metric, by group, for JSON."""
    figures = {name: aggregate_by(values, labels) for name, values in per_query.items()}
    return {
        label: {name: _record(figures[name][label]) for name in per_query}
        for label in sorted(set(labels))
    }


def _record(figures: Aggregate) -> dict[str, Any]:
    return {
        "queries": figures.count,
        "undefined": figures.undefined,
        "mean": _number(figures.mean),
        "std": _number(figures.standard_deviation),
        "min": _number(figures.minimum),
        "max": _number(figures.maximum),
        "quantiles": {str(share): _number(value) for share, value in figures.quantiles.items()},
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value  # JSON has no NaN
