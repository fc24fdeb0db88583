"""What one configuration was measured to be on the queries that a verdict is on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tuner.core.rankings import FloatArray
from tuner.core.trial import Params
from tuner.verdict.by_judge import ByJudge


@dataclass(frozen=True, eq=False)
class Measured:
    """One configuration on the held-out queries: values by metric, each of shape (queries,).

    ``objective`` is the composite less the price, shape (queries,); None without a price, or where
    one is for something that is not known by query. ``costs`` are the means of what is paid for.
    ``judge``: the same by a judge's grades, where people graded a part of the queries only.
    """

    params: Params
    composite: FloatArray
    metrics: Mapping[str, FloatArray] = field(default_factory=dict)
    objective: FloatArray | None = None
    costs: Mapping[str, float] = field(default_factory=dict)
    judge: ByJudge | None = None
