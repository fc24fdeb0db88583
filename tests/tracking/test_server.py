"""The view through a real server: there, away from the start, killed under way, hanging, back."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from mlflow import MlflowClient

from tuner.core.errors import TunerError
from tuner.tracking.mlflow.quiet import Timeouts
from tuner.tracking.mlflow.tracker import Mlflow


@pytest.fixture
def hanging_uri() -> Iterator[str]:
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_study_through_a_server(study, server, read_view):
    warnings: list[str] = []
    tracker = Mlflow(server.uri, "served", warn=warnings.append, in_thread=True)
    tracker.start(study.header, study.run_dir)
    for trial in study.trials:
        tracker.record(trial)
    comparison = {"mean_difference": 0.25, "interval": [0.1, 0.4]}
    verdict = {"outcome": "deploy", "sentence": "Deploy: it is better.", "comparison": comparison}
    study = replace(study, summary=replace(study.summary, verdict=verdict))
    tracker.finish(study.summary)

    view = read_view(server.uri, study.header.study_id)
    assert [name for name in view if name.startswith("deploy +0.250 · graphrag-atlas")]
    described = MlflowClient(server.uri).get_experiment_by_name("served").tags
    assert "**Deploy: it is better.**" in described["mlflow.note.content"]
    assert warnings == []
    assert len(view) == 9
    parent = next(run for run in view.values() if run.parent is None)
    assert {"best.yaml", "config.yaml", "journal.jsonl"} <= set(parent.artifacts)
    assert view["tpe"].metrics["best_so_far"] == [(0, 0.5), (1, 0.5), (2, 0.5), (3, 0.7)]
    assert tracker.run_url is not None
    assert tracker.run_url.startswith(f"{server.uri}/#/experiments/")
    assert f"/runs/{tracker.run_id}?" in tracker.run_url

    status = tracker.sync(study.header, study.trials, study.summary, study.run_dir)
    assert (status.added, status.repaired) == (0, 0)
    assert read_view(server.uri, study.header.study_id) == view


@pytest.mark.slow
def test_a_server_that_dies_and_comes_back_gets_everything(
    study, server, link, read_view, wait_until
):
    warnings: list[str] = []
    tracker = Mlflow(link.uri, "restarted", warn=warnings.append, in_thread=True)
    tracker.start(study.header, study.run_dir)
    for trial in study.trials[:2]:
        tracker.record(trial)
    wait_until(lambda: tracker.status.written == 2)
    link.cut()
    try:
        for trial in study.trials[2:4]:
            tracker.record(trial)
        wait_until(lambda: len(warnings) == 1)
    finally:
        link.restore()
    wait_until(lambda: tracker.status.written == 4 and len(warnings) == 2)
    link.cut()  # once more: that is told at the end only
    try:
        tracker.record(study.trials[4])
        wait_until(lambda: tracker.status.error is not None)
    finally:
        link.restore()
    for trial in study.trials[5:]:
        tracker.record(trial)
    tracker.finish(study.summary)

    assert warnings[0].startswith("MLflow is out of reach (")
    assert warnings[1] == "MLflow is back, and has all 4 trials so far"
    assert len(warnings) <= 3
    assert all(line == "MLflow was away 2 times; it has all 6 trials" for line in warnings[2:])
    view = read_view(server.uri, study.header.study_id)
    assert len(view) == 9
    assert {run.status for run in view.values()} == {"FINISHED", "FAILED"}
    assert [step for step, _ in view["tpe"].metrics["best_so_far"]] == [0, 1, 2, 3]


@pytest.mark.slow
def test_a_server_that_is_away_stops_nothing_and_sync_adds_the_rest(
    study, server, read_view, unused_port
):
    warnings: list[str] = []
    tracker = Mlflow(
        f"http://127.0.0.1:{unused_port}",
        "away",
        warn=warnings.append,
        timeouts=Timeouts(retry_s=1.0),
        in_thread=True,
    )
    tracker.start(study.header, study.run_dir)
    for trial in study.trials:
        tracker.record(trial)
    tracker.finish(study.summary)

    assert (tracker.run_id, tracker.run_url) == (None, None)
    assert (tracker.status.written, tracker.status.pending) == (0, 6)
    assert len(warnings) == 2
    assert "out of reach (Connection refused)" in warnings[0]
    assert warnings[1].startswith("MLflow lacks 6 of 6 trials and the study's end (")
    assert warnings[1].endswith(f"add them with: tuner sync {study.run_dir}")
    with pytest.raises(TunerError, match="cannot complete the study in MLflow at http"):
        tracker.sync(study.header, study.trials, study.summary, study.run_dir)

    back = Mlflow(server.uri, "away")
    status = back.sync(study.header, study.trials, study.summary, study.run_dir)
    assert status.is_complete
    assert len(read_view(server.uri, study.header.study_id)) == 9


def test_finish_does_not_wait_for_ever_on_a_server_that_hangs(study, hanging_uri):
    warnings: list[str] = []
    tracker = Mlflow(
        hanging_uri,
        "hanging",
        warn=warnings.append,
        timeouts=Timeouts(finish_s=0.5, request_s=1),
        in_thread=True,
    )
    tracker.start(study.header, study.run_dir)
    for trial in study.trials:
        tracker.record(trial)
    tracker.finish(study.summary)
    assert tracker.status.pending == 6
    assert warnings[-1].startswith("MLflow lacks 6 of 6 trials")
    for thread in threading.enumerate():
        if thread.name == "tuner-mlflow":
            thread.join(60.0)
            assert not thread.is_alive(), "the writer must end once it is given up"


def test_a_password_is_never_shown(study, unused_port):
    warnings: list[str] = []
    tracker = Mlflow(
        f"http://me:s3cret@127.0.0.1:{unused_port}",
        "away",
        warn=warnings.append,
        timeouts=Timeouts(retry_s=0.1),
        in_thread=True,
    )
    tracker.start(study.header, study.run_dir)
    tracker.finish(study.summary)
    with pytest.raises(TunerError) as raised:
        tracker.sync(study.header, study.trials, study.summary, study.run_dir)
    assert "s3cret" not in " ".join([*warnings, str(raised.value)])
    assert "me:***@127.0.0.1" in str(raised.value)
