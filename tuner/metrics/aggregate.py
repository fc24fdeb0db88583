"""From one value a query to a mean that says how many queries it stands on."""

from __future__ import annotations

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
