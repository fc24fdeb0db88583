"""Retrieval metrics: pure functions on arrays."""

from tuner.metrics.base import (
    Aggregate,
    Judged,
    MetricFamily,
    aggregate,
    aggregate_by,
    mean_defined,
)
from tuner.metrics.grades import at_grades
from tuner.metrics.names import Metric, depth_needed, known_names, listed, parse
from tuner.metrics.qrels import Qrels

__all__ = [
    "Aggregate",
    "Judged",
    "Metric",
    "MetricFamily",
    "Qrels",
    "aggregate",
    "aggregate_by",
    "at_grades",
    "depth_needed",
    "known_names",
    "listed",
    "mean_defined",
    "parse",
]
