"""The study in MLflow, from the command line: written, rebuilt, and not missed when it is down."""

from __future__ import annotations

import json
import socket

import pytest


@pytest.fixture
def view():
    """Return a function that reads all runs of a sqlite store, by role."""
    mlflow = pytest.importorskip("mlflow")

    def read(folder, name="mlflow.db"):
        client = mlflow.MlflowClient(f"sqlite:///{folder / name}")
        experiment = client.get_experiment_by_name("test")
        runs = client.search_runs([experiment.experiment_id], max_results=1000)
        by_role = {}
        for run in runs:
            by_role.setdefault(run.data.tags["tuner.role"], []).append(run)
        return by_role

    return read


def with_store(tuner, uri="sqlite:///mlflow.db"):
    tuner.edit("tracking: null", f"tracking: {{uri: '{uri}', experiment: test}}")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_run_shows_every_trial_and_sync_adds_nothing(tuner, view):
    with_store(tuner)
    record = json.loads(tuner("run", "config.yaml", "--json").stdout)
    by_role = view(tuner.folder)
    (parent,) = by_role["study"]
    assert parent.info.run_id == record["mlflow_run_id"]
    assert parent.data.metrics["holdout_recall_at_5"] == pytest.approx(
        record["best"]["holdout_metrics"]["recall@5"]
    )
    told = record["finished_trials"] + record["failed_trials"] + record["shared_trials"]
    assert len(by_role["trial"]) == told
    assert "0 added" in tuner("sync", record["run_dir"]).stdout
    assert len(view(tuner.folder)["trial"]) == told


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_a_server_that_is_down_stops_nothing_and_sync_completes_the_view(tuner, view):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with_store(tuner, f"http://127.0.0.1:{port}")
    done = tuner("run", "config.yaml")
    assert "finished after" in done.stdout
    assert "tuner sync" in done.stderr
    (run_dir,) = tuner.runs()
    failed = tuner("sync", str(run_dir), code=1)
    assert "cannot" in failed.stderr
    tuner("sync", str(run_dir), "--uri", "sqlite:///later.db")
    assert len(view(tuner.folder, "later.db")["study"]) == 1
    assert len(view(tuner.folder, "later.db")["trial"]) >= 12
