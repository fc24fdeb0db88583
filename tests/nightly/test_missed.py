"""Nights without MLflow are shown there by the next night that has it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tuner.tracking.history import read_history
from tuner.tracking.registry import Registry

pytestmark = pytest.mark.slow


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_what_mlflow_missed_is_shown_by_the_next_night_that_has_it(
    nights: Any, fresh_store: Path, unused_port: int
) -> None:
    path = nights.folder / "mlflow.db"
    shutil.copy(fresh_store, path)
    uri = f"sqlite:///{path}"
    tracked = ("nightly.promote=never", f"tracking={{uri: '{uri}', experiment: nights}}")
    without = nights("2026-03-01", "nightly.promote=never")
    assert (without["is_in_mlflow"], without["mlflow_run_id"]) == (None, None)
    down = nights("2026-03-02", *tracked, f"tracking.uri=http://127.0.0.1:{unused_port}")
    assert down["is_in_mlflow"] is False

    third = nights("2026-03-03", *tracked)
    assert third["is_in_mlflow"] is True
    said = "shown in MLflow, which had missed it: 2026-03-01, 2026-03-02"
    assert said in third["notes"]
    summaries = [without, down, third]
    runs = {run.tags["tuner.study_id"]: run for run in read_history(uri, "nights")}
    assert len(runs) == 3
    for night, summary in zip(nights.records.nights, summaries, strict=True):
        tags = runs[night.study_id].tags
        assert tags["tuner.night"] == night.night.isoformat()
        assert tags["tuner.night_outcome"] == summary["outcome"]
        trials = read_history(
            uri, "nights", tags={"tuner.role": "trial", "tuner.study_id": night.study_id}
        )
        assert len(trials) == summary["trials"]["evaluated"] + summary["trials"]["shared"]
    # What is new in them has a version; the challenger is that of the latest night.
    registry = Registry(uri, "small")
    found = {str(one["challenger"]["params"]) for one in summaries}
    assert {str(version.params) for version in registry.versions()} == found
    challenger = registry.get("challenger")
    assert challenger is not None
    assert challenger.params == third["challenger"]["params"]

    fourth = nights("2026-03-04", *tracked, "budget.trials=0")
    assert not any("missed" in note for note in fourth["notes"])
    assert len(nights.events("synced")) == 2
