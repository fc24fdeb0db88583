"""What the machine and the study's processes use, as points of MLflow's system metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tuner.tracking.mlflow.records import Point


@dataclass(frozen=True)
class SystemSample:
    """Figures under MLflow's names (``system/…``), at ``at`` seconds since the epoch."""

    at: float
    values: Mapping[str, float]

    def points(self, study_began_at: float) -> list[Point]:
        """Return a point for each finite figure; steps are seconds since the study began.

        So a study that is resumed goes on to the right of where it stopped.
        """
        step = max(0, round(self.at - study_began_at))
        return [
            Point(name, value, step, round(self.at * 1000))
            for name, value in self.values.items()
            if math.isfinite(value)
        ]
