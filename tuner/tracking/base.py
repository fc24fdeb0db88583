"""What a tracker is: a view of a study that can be rebuilt from its journal at any time."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from tuner.core.study_record import StudyHeader, StudySummary
from tuner.core.trial import Trial

EXPERIMENT = "graphrag-tuning"
"""Where studies are shown unless somebody says otherwise."""


class Tracker(Protocol):
    """Receives what the journal already holds. No call blocks on the outside world or raises."""

    def start(self, header: StudyHeader, run_dir: Path) -> None:
        """Open the view of a study, or continue the one that exists for its ``study_id``."""
        ...

    def record(self, trial: Trial) -> None:
        """Add one told trial."""
        ...

    def finish(self, summary: StudySummary) -> None:
        """Add the end of the study, and wait until everything is written or given up."""
        ...
