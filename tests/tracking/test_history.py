"""What earlier runs logged, read back from a sqlite store."""

from __future__ import annotations

import shutil

import pytest
from mlflow import MlflowClient

from tuner.core.errors import InputError
from tuner.tracking.history import read_history


@pytest.fixture(scope="module")
def uri(tmp_path_factory, fresh_store):
    store = f"sqlite:///{shutil.copy(fresh_store, tmp_path_factory.mktemp('store'))}"
    client = MlflowClient(tracking_uri=store)
    nightly = client.create_experiment("nightly")
    for number, (score, tags) in enumerate(
        [(0.7, {"team": "search's"}), (0.6, {"team": "other"}), (0.5, {"tuner.role": "trial"})]
    ):
        run = client.create_run(
            nightly, start_time=1_700_000_000_000 - number * 86_400_000, tags=tags
        )
        client.log_metric(run.info.run_id, "ndcg_at_10", 0.0, step=0)
        client.log_metric(run.info.run_id, "ndcg_at_10", score, step=1)
        client.set_terminated(run.info.run_id)
    return store


def test_runs_come_oldest_first_with_their_last_values_and_without_trials(uri):
    runs = read_history(uri, "nightly")
    assert [run.metrics["ndcg_at_10"] for run in runs] == [0.6, 0.7]
    assert runs[1].start_ms == 1_700_000_000_000


def test_tags_choose_runs_trials_too(uri):
    (run,) = read_history(uri, "nightly", tags={"team": "search's"})
    assert run.metrics["ndcg_at_10"] == 0.7
    (trial,) = read_history(uri, "nightly", tags={"tuner.role": "trial"})
    assert trial.metrics["ndcg_at_10"] == 0.5
    assert read_history(uri, "nightly", tags={"team": "none"}) == []


def test_what_is_not_there_is_not_made(uri, tmp_path):
    with pytest.raises(InputError, match="no experiment 'nightli'; did you mean 'nightly'"):
        read_history(uri, "nightli")
    with pytest.raises(InputError, match="there is no file"):
        read_history(f"sqlite:///{tmp_path}/none.db", "nightly")
    assert not (tmp_path / "none.db").exists()


def test_figures_of_earlier_versions_have_the_names_of_today(store_uri):
    store = store_uri
    client = MlflowClient(tracking_uri=store)
    experiment = client.create_experiment("nightly")
    before = {"best_objective": 0.6, "holdout_objective": 0.5, "tune_mrr": 0.4, "seconds": 9.0}
    now = {"best_objective": 0.7, "winner_objective": 0.6, "winner_holdout_objective": 0.5}
    for start, role, metrics in ((1, "study", before), (2, "study", now), (3, "arm", before)):
        tags = {"tuner.role": role, "tuner.study_id": "x"}
        run = client.create_run(experiment, start_time=start, tags=tags)
        for name, value in metrics.items():
            client.log_metric(run.info.run_id, name, value)
    first, second = read_history(store, "nightly")
    assert first.metrics == {
        "winner_objective": 0.6,
        "winner_holdout_objective": 0.5,
        "winner_tune_mrr": 0.4,
        "seconds": 9.0,
    }
    assert second.metrics == now
    (arm,) = read_history(store, "nightly", tags={"tuner.role": "arm"})
    assert arm.metrics["best_objective"] == 0.6
    assert arm.metrics["best_holdout_objective"] == 0.5
