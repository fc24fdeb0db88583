"""Retrieval metrics: pure functions on arrays."""

from tuner.metrics.aggregate import Aggregate, aggregate, aggregate_by, mean_defined
from tuner.metrics.base import Judged, MetricFamily
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
