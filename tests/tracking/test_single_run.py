"""One run of something that is not a study."""

from __future__ import annotations

import math

import pytest

from tuner.core.errors import InputError, TunerError
from tuner.tracking.history import log_single_run


def written(uri, **changes):
    content = {
        "params": {"treatment.alpha": "0.5"},
        "metrics": {"difference": 0.25, "undefined": math.nan},
        "tags": {"tuner.role": "abtest"},
    }
    return log_single_run(uri, "online", "wider-graph", **{**content, **changes})


def test_a_run_is_complete_and_ended(store_uri, tmp_path):
    from mlflow import MlflowClient

    page = tmp_path / "abtest.html"
    page.write_text("<p>Ship</p>", encoding="utf-8")
    run_id = written(store_uri, files=[page])
    client = MlflowClient(store_uri)
    run = client.get_run(run_id)
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "wider-graph"
    assert run.data.metrics == {"difference": 0.25}  # what is undefined is no figure
    assert run.data.params == {"treatment.alpha": "0.5"}
    assert run.data.tags["tuner.role"] == "abtest"
    assert [file.path for file in client.list_artifacts(run_id)] == ["abtest.html"]


def test_a_store_that_is_none_is_told_in_one_line(tmp_path):
    (tmp_path / "m.db").write_text("not a database, whatever its name says" * 50, encoding="utf-8")
    with pytest.raises(TunerError, match="cannot write a run to MLflow at sqlite:///") as caught:
        written(f"sqlite:///{tmp_path}/m.db")
    assert "\n" not in str(caught.value)


def test_a_name_that_mlflow_refuses_is_bad_input(tmp_path):
    with pytest.raises(InputError, match="name"):
        log_single_run(f"sqlite:///{tmp_path}/m.db", " ", "x", params={}, metrics={}, tags={})


@pytest.mark.parametrize("experiment", ["评" * 90, "long " * 60], ids=["signs", "letters"])
def test_an_experiment_with_a_long_name_keeps_its_files(store_uri, tmp_path, experiment):
    from mlflow import MlflowClient

    page = tmp_path / "abtest.html"
    page.write_text("<p>Ship</p>", encoding="utf-8")
    content = {"params": {}, "metrics": {}, "tags": {}, "files": [page]}
    run_id = log_single_run(store_uri, experiment.strip(), "x", **content)
    client = MlflowClient(store_uri)
    assert [file.path for file in client.list_artifacts(run_id)] == ["abtest.html"]
    assert client.get_experiment_by_name(experiment.strip()) is not None
    (folder,) = (tmp_path / "mlruns").iterdir()
    assert len(folder.name.encode()) <= 120


def test_half_a_surrogate_pair_is_escaped(store_uri):
    from mlflow import MlflowClient

    run_id = written(store_uri, params={"name": "caf\udce9"}, tags={"why": "no caf\udce9"})
    run = MlflowClient(store_uri).get_run(run_id)
    assert run.data.params["name"] == r"caf\udce9"
    assert run.data.tags["why"] == r"no caf\udce9"
