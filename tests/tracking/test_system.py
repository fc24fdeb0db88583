"""System metrics: on the study's run, next to everything else, and never in its way."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tuner.tracking.mlflow.client import Client, Refused
from tuner.tracking.mlflow.records import SystemSample
from tuner.tracking.mlflow.tracker import Mlflow


def test_steps_are_seconds_since_the_study_began():
    sample = SystemSample(1_000_012.4, {"system/cpu_utilization_percentage": 25.0})
    (point,) = sample.points(1_000_000.0)
    assert (point.name, point.value) == ("system/cpu_utilization_percentage", 25.0)
    assert (point.step, point.time_ms) == (12, 1_000_012_400)


def test_what_is_no_number_is_left_out():
    sample = SystemSample(1.0, {"system/a": math.nan, "system/b": math.inf, "system/c": 1.0})
    assert [point.name for point in sample.points(0.0)] == ["system/c"]


@pytest.mark.parametrize("in_thread", [True, False])
def test_the_study_has_them_and_its_trials_have_not(study, store_uri, read_view, in_thread):
    tracker = Mlflow(store_uri, "atlas", in_thread=in_thread)
    tracker.start(study.header, study.run_dir)
    began_at = study.header.created_at
    tracker.record_system(began_at + 10.0, {"system/cpu_utilization_percentage": 40.0})
    for trial in study.trials:
        tracker.record(trial)
    tracker.record_system(began_at + 20.0, {"system/cpu_utilization_percentage": 60.0})
    tracker.finish(study.summary)

    assert tracker.status.is_complete
    with_them = {
        run.name: run.metrics["system/cpu_utilization_percentage"]
        for run in read_view(store_uri, study.header.study_id).values()
        if "system/cpu_utilization_percentage" in run.metrics
    }
    assert list(with_them.values()) == [[(10, 40.0), (20, 60.0)]]
    assert not any("#" in name for name in with_them)


def test_a_store_that_refuses_them_keeps_every_trial(study, store_uri, read_view, monkeypatch):
    log = Client.log

    def refusing(self, run_id, params, points):
        if any(point.name.startswith("system/") for point in points):
            raise Refused("no such metrics here")
        log(self, run_id, params, points)

    monkeypatch.setattr(Client, "log", refusing)
    warnings: list[str] = []
    tracker = Mlflow(store_uri, "atlas", warn=warnings.append, in_thread=True)
    tracker.start(study.header, study.run_dir)
    tracker.record_system(study.header.created_at, {"system/cpu_utilization_percentage": 40.0})
    for trial in study.trials:
        tracker.record(trial)
    tracker.finish(study.summary)
    assert warnings == []
    assert replace(tracker.status, error=None).is_complete
    assert len(read_view(store_uri, study.header.study_id)) == 9
