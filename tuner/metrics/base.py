"""What metrics work on and give: judged rankings, descriptions, and figures over many queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tuner.core.errors import MetricError
from tuner.core.grades import RELEVANT_FROM
from tuner.core.rankings import BoolArray, FloatArray, IntArray

Undefined = Literal["skip", "zero", "error"]


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


def mean_defined(values: FloatArray, *, undefined: Undefined = "skip") -> tuple[float, int]:
    """Return ``(mean, count)``: the mean of the values, and how many of them are defined.

    ``undefined`` says what a NaN does: ``"skip"`` leaves the query out, ``"zero"`` counts it as 0
    (trec_eval ``-c``), ``"error"`` refuses it. With nothing to average the mean is NaN and never 0.

    >>> mean_defined(np.array([1.0, float("nan"), 0.5]))
    (0.75, 2)
    >>> mean_defined(np.array([1.0, float("nan"), 0.5]), undefined="zero")
    (0.5, 2)

    Raises:
        MetricError: a value is undefined under ``undefined="error"``.
    """
    is_defined = ~np.isnan(values)
    count = int(np.count_nonzero(is_defined))
    if undefined == "error" and count < values.size:
        raise MetricError(
            f"{values.size - count} of {values.size} queries have no relevant document, so the "
            "metric is undefined for them; judge them, remove them, or choose 'skip' or 'zero'"
        )
    counted = np.where(is_defined, values, 0.0) if undefined == "zero" else values[is_defined]
    return (float(counted.mean()) if counted.size else float("nan")), count


@dataclass(frozen=True)
class Aggregate:
    """One metric over several queries, those without a defined value left out.

    Attributes:
        mean, standard_deviation, minimum, maximum: NaN without values; the deviation (divided by
            n - 1) also with a single one.
        quantiles: the asked-for quantiles by share, numpy's default (linear, type 7).
        count: queries with a defined value; ``undefined``: those without.
    """

    mean: float
    standard_deviation: float
    minimum: float
    maximum: float
    quantiles: dict[float, float]
    count: int
    undefined: int


def aggregate(values: FloatArray, *, quantiles: Sequence[float] = (0.25, 0.5, 0.75)) -> Aggregate:
    """Summarise one value a query, shape (queries,), NaN where undefined.

    >>> aggregate(np.array([1.0, 0.0, float("nan"), 0.5]), quantiles=[0.5]).quantiles
    {0.5: 0.5}

    Raises:
        MetricError: a quantile outside [0, 1].
    """
    wrong = [share for share in quantiles if not 0 <= share <= 1]
    if wrong:
        raise MetricError(f"the quantile {wrong[0]} is outside [0, 1]; write 0.95 for 95 %")
    nothing = float("nan")
    defined = values[~np.isnan(values)]
    points = np.quantile(defined, quantiles) if defined.size else np.full(len(quantiles), nothing)
    return Aggregate(
        mean=float(defined.mean()) if defined.size else nothing,
        standard_deviation=float(defined.std(ddof=1)) if defined.size > 1 else nothing,
        minimum=float(defined.min()) if defined.size else nothing,
        maximum=float(defined.max()) if defined.size else nothing,
        quantiles=dict(zip(map(float, quantiles), points.tolist(), strict=True)),
        count=int(defined.size),
        undefined=int(values.size - defined.size),
    )


def aggregate_by(
    values: FloatArray,
    labels: Sequence[str],
    *,
    quantiles: Sequence[float] = (0.25, 0.5, 0.75),
) -> dict[str, Aggregate]:
    """Summarise the values of each label, such as each query's type, in the order of the labels.

    >>> groups = aggregate_by(np.array([1.0, 0.0, 0.5]), ["easy", "hard", "easy"])
    >>> groups["easy"].mean, groups["hard"].count
    (0.75, 1)

    Raises:
        MetricError: unequally many values and labels, or a quantile outside [0, 1].
    """
    if len(values) != len(labels):
        raise MetricError(f"{len(labels)} labels for {len(values)} values")
    of = np.asarray(labels, dtype=object)
    return {
        label: aggregate(values[of == label], quantiles=quantiles) for label in sorted(set(labels))
    }
