"""The objective against one free parameter, as a profile shows it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from tuner.core.profile import Curve, Scalar
from tuner.core.rankings import FloatArray
from tuner.evaluation.free.choice import Table

# So many values of a weight are shown of its curve.
SHOWN = 101


def table_curve(name: str, values: Sequence[Scalar], table: Table, at: int) -> Curve:
    """Return the curve of settings that were evaluated one by one; ``at``: the chosen one."""
    spread = np.linspace(0, len(values) - 1, min(SHOWN, len(values))).astype(np.int64)
    shown = np.unique([*spread, at])
    some = [values[place] for place in shown]
    return curve_of(name, some, table.objective[shown], table.errors(at)[shown])


def curve_of(
    name: str, values: Iterable[Scalar], objective: FloatArray, errors: FloatArray
) -> Curve:
    """Return a curve; an error that is not known is NaN."""
    return Curve(
        name,
        tuple(float(value) for value in values),  # type: ignore[arg-type]  # numbers
        tuple(objective.tolist()),
        tuple(None if math.isnan(error) else error for error in errors.tolist()),
    )
