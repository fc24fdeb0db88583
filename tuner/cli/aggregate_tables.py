"""The tables of `tuner evaluate`: every figure, how the queries spread, and each group's means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tuner.cli.console import console, new_table
from tuner.core.rankings import FloatArray
from tuner.core.shown import figure
from tuner.metrics.base import aggregate, aggregate_by

SPREAD_COLUMNS = ("queries", "mean", "std", "min", "25 %", "median", "75 %", "max")


def print_figures(figures: Mapping[str, float], defined: Mapping[str, int]) -> None:
    """Print a row a figure: its value, and for how many queries it is defined."""
    table = new_table("metric", "value", "queries", words=("metric",))
    for name, value in figures.items():
        table.add_row(name, figure(value), str(defined.get(name, "")))
    console().print(table)


def spread_cells(values: FloatArray) -> list[str]:
    """Return for how many queries a metric is defined, and how it is spread over them."""
    found = aggregate(values)
    ends = (found.mean, found.standard_deviation, found.minimum)
    return [str(found.count), *map(figure, (*ends, *found.quantiles.values(), found.maximum))]


def print_spread(per_query: Mapping[str, FloatArray]) -> None:
    """Print a row a metric: its mean over the queries, its deviation, and its quantiles."""
    table = new_table("metric", *SPREAD_COLUMNS, words=("metric",))
    for name, values in per_query.items():
        table.add_row(name, *spread_cells(values))
    console().print(table)


def print_groups(per_query: Mapping[str, FloatArray], labels: Sequence[str], by: str) -> None:
    """Print a row a group: its queries, and the mean of each metric."""
    table = new_table(by, "queries", *per_query, words=(by,))
    figures = {name: aggregate_by(values, labels) for name, values in per_query.items()}
    for label in sorted(set(labels)):
        means = (figure(figures[name][label].mean) for name in per_query)
        table.add_row(label, str(labels.count(label)), *means)
    console().print(table)
