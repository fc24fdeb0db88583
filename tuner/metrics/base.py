"""What metrics work on: judged rankings of a batch of queries, and the description of a metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy.typing as npt

from tuner.core.grades import RELEVANT_FROM
from tuner.core.rankings import BoolArray, FloatArray, IntArray

FILES = (
    "tuner.metrics.context",
    "tuner.metrics.efficiency",
    "tuner.metrics.grades",
    "tuner.metrics.graph",
    "tuner.metrics.ranking",
)
"""The files with a table ``METRICS``, or with a function ``family_of``: see ``names``."""

Kind = Literal["ranking", "graph", "text"]
"""What a metric reads: ``Judged``, ``tuner.metrics.graph.JudgedGraph``, or
``tuner.metrics.efficiency.JudgedContexts``."""


@dataclass(frozen=True, eq=False)
class Judged:
    """The rankings of a batch of queries with the grade of every document filled in.

    Attributes:
        gains: shape (queries, depth), the grade of the document at each rank; 0 for documents
            that are unjudged or have a grade <= 0, and after the end of a short ranking.
        relevant_count: shape (queries,), the number of relevant documents in **all** judgements
            of the query, retrieved or not.
        ideal: shape (queries, most judged), the positive grades of **all** judgements of the query
            in descending order, filled with 0.
        cut: the rank after which rankings were not looked at, or None if they are complete.
            A metric that looks deeper refuses the record.
        relevant_from: the lowest grade of a relevant document.
        highest: the highest grade, by which some metrics divide; None for the highest that each
            query's judgements hold.
    """

    gains: FloatArray
    relevant_count: IntArray
    ideal: FloatArray
    cut: int | None = None
    relevant_from: float = RELEVANT_FROM
    highest: float | None = None

    @cached_property
    def hits(self) -> BoolArray:
        """Shape (queries, depth): whether the document at each rank is relevant."""
        return self.gains >= self.relevant_from

    @cached_property
    def is_defined(self) -> BoolArray:
        """Shape (queries,): whether the query has a relevant document at all."""
        return self.relevant_count > 0


@dataclass(frozen=True)
class MetricOptions:
    """What users may say of how some metrics are computed; None: the metric's own way.

    Attributes:
        discount: the weights of the ranks for ``discounted_precision_fitted``, see ``Discount``.
        efficiency: the weights of the parts of ``context_efficiency``, by their names.
    """

    discount: str | Sequence[float] | Callable[[FloatArray], npt.ArrayLike] | None = None
    efficiency: Mapping[str, float] | None = None


NO_OPTIONS = MetricOptions()


@dataclass(frozen=True)
class MetricFamily:
    """One line of a module's ``METRICS`` table: a metric before its cut-off is chosen.

    Attributes:
        function: ``function(judged, cutoff)`` with the cut-off None for the whole ranking; returns
            shape (queries,), NaN where undefined. ``kind`` says what ``judged`` is.
        cutoff: whether a name must, may or must not carry ``@k``.
        description: what it measures, in one line.
        kind: what the function reads.
        highest: the largest value; a composite of metrics on different scales would be one of the
            largest scale alone.
        takes: the field of ``MetricOptions`` that the function is given where it is set.
        check: called with that field, or None, and the cut-off; raises a MetricError where the
            metric cannot be computed so.
        lower_is_better: whether it measures waste; an objective must not maximise it, and a query
            without a relevant document is never counted as 0, which would be the best.
    """

    function: Callable[..., FloatArray]
    cutoff: Literal["required", "optional", "none"]
    description: str
    kind: Kind = "ranking"
    highest: float = 1.0
    takes: Literal["", "discount", "efficiency"] = ""
    check: Callable[[Any, int | None], None] | None = None
    lower_is_better: bool = False
