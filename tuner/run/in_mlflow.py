"""A configured study in MLflow: opened, shown while it searches, and finished."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from tuner.config import Config
from tuner.core.steps import SEARCH, Advance, Phases, Say
from tuner.core.study_record import StudySummary
from tuner.monitoring.resources import ResourceMonitor, ResourceSample
from tuner.tracking.mlflow.tracker import Mlflow

# About a second's work for MLflow on sqlite.
SLOW_TO_WRITE = 60


def tracker_of(config: Config, say: Say) -> Mlflow | None:
    """Return what shows the study, or None where nothing does."""
    if config.tracking is None:
        return None
    return Mlflow(config.tracking.uri, config.tracking.experiment, warn=say)


@contextmanager
def searching(phases: Phases, tracker: Mlflow | None) -> Iterator[None]:
    """Take the time, and show in MLflow what the machine and the study's processes use."""

    def hand_over(sample: ResourceSample) -> None:
        if tracker is not None:
            tracker.record_system(sample.at, sample.system_metrics())

    monitor = nullcontext() if tracker is None else ResourceMonitor(on_sample=hand_over)
    with phases.phase(SEARCH), monitor:
        yield


def finish(
    tracker: Mlflow, summary: StudySummary, run_dir: Path, say: Say, advance: Advance
) -> None:
    """Wait for the view; the study itself is safe already, so an impatient Ctrl-C may end it."""
    pending = tracker.status.pending
    if pending > SLOW_TO_WRITE:
        say(f"writing the last {pending} trials to MLflow (Ctrl-C: later, by tuner sync)")
    try:
        tracker.finish(summary, advance=advance)
    except KeyboardInterrupt:
        say(f"MLflow's view is not complete; complete it with: tuner sync {run_dir}")
