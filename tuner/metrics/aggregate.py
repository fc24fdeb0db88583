"""From one value a query to figures that say how many queries they stand on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tuner.core.errors import MetricError
from tuner.core.rankings import FloatArray

Undefined = Literal["skip", "zero", "error"]


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
