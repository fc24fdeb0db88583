"""Figures of one evaluation beyond the mean: how queries spread, and each group's own figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from tuner.core.corpus import Query
from tuner.core.errors import InputError
from tuner.core.rankings import FloatArray
from tuner.core.shown import figure
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


def figures_table(figures: Mapping[str, float], defined: Mapping[str, int]) -> Table:
    """Return one row a figure: its value, and for how many queries it is defined."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("metric", overflow="fold")
    for head in ("value", "queries"):
        table.add_column(head, justify="right")
    for name, value in figures.items():
        table.add_row(name, figure(value), str(defined.get(name, "")))
    return table


def spread_table(per_query: Mapping[str, FloatArray]) -> Table:
    """Return one row a metric: its mean over the queries, its deviation, and its quantiles."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("metric", overflow="fold")
    heads = ("queries", "mean", "std", "min", "25 %", "median", "75 %", "max")
    for head in heads:
        table.add_column(head, justify="right")
    for name, values in per_query.items():
        figures = aggregate(values)
        numbers = (
            figures.mean,
            figures.standard_deviation,
            figures.minimum,
            *figures.quantiles.values(),
            figures.maximum,
        )
        table.add_row(name, str(figures.count), *map(figure, numbers))
    return table


def group_table(per_query: Mapping[str, FloatArray], labels: Sequence[str], by: str) -> Table:
    """Return one row a group: its queries, and the mean of each metric."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column(by)
    for head in ("queries", *per_query):
        table.add_column(head, justify="right", overflow="fold")
    figures = {name: aggregate_by(values, labels) for name, values in per_query.items()}
    for label in sorted(set(labels)):
        means = (figure(figures[name][label].mean) for name in per_query)
        table.add_row(label, str(labels.count(label)), *means)
    return table


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
