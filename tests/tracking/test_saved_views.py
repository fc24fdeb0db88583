"""The views that MLflow's menu offers: which runs and columns, and whose study."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from urllib.parse import parse_qs

from mlflow import MlflowClient

from tuner.tracking.history import show_night
from tuner.tracking.mlflow.saved_views import links, saved_views
from tuner.tracking.mlflow.tracker import Mlflow


def view(tags, name):
    """Read a view as MLflow's page does."""
    tag = json.loads(tags[f"mlflow.sharedViewState.tuner-{name}"])
    assert isinstance(tag["createdAt"], int)
    return tag["name"], json.loads(tag["state"])


def test_the_views_show_what_matters(study):
    header = replace(study.header, objective={"maximize": {"recall@10": 1.0}, "constraints": {}})
    tags = saved_views(header)
    name, trials = view(tags, "trials")
    assert name == "Latest study: trials, best first"
    assert trials["selectedColumns"] == [
        *("metrics.`objective`", "metrics.`recall_at_10`", "tags.`tuner.arm`"),
        "params.`max_hops`",
    ]
    assert trials["orderByKey"] == "metrics.`objective`"
    _, studies = view(tags, "studies")
    assert studies["searchFilter"] == "tags.`tuner.role` = 'study'"
    assert {
        "metrics.`winner_objective`",
        "metrics.`best_objective`",
        "params.`winner.max_hops`",
    } < (set(studies["selectedColumns"]))
    assert "params.`best.max_hops`" in view(tags, "arms")[1]["selectedColumns"]
    bounded = saved_views(replace(header, objective={"constraints": {"latency_p95": {"max": 9}}}))
    assert "metrics.`violation`" in view(bounded, "trials")[1]["selectedColumns"]


def test_filters_and_orders_are_what_mlflow_understands(study, store_uri):
    Mlflow(store_uri, "atlas", in_thread=True).sync(
        study.header, study.trials, study.summary, study.run_dir
    )
    client = MlflowClient(store_uri)
    experiment = client.get_experiment_by_name("atlas")
    assert experiment.tags["mlflow.experimentKind"] == "custom_model_development"

    def shown(where, order):
        found = client.search_runs([experiment.experiment_id], where, order_by=[f"{order} DESC"])
        return [run.info.run_name for run in found]

    _, trials = view(experiment.tags, "trials")
    best_first = shown(trials["searchFilter"], trials["orderByKey"])
    assert best_first[:3] == ["tpe #3", "tpe #5", "wide #1"]
    assert len(best_first) == 6
    _, studies = view(experiment.tags, "studies")
    assert len(shown(studies["searchFilter"], studies["orderByKey"])) == 1
    for what, role in (("their charts", "tpe #3"), ("the arms step by step", "tpe")):
        place = links(study.header, experiment.experiment_id)[what]
        assert place.startswith(f"#/experiments/{experiment.experiment_id}/runs?")
        query = parse_qs(place.partition("?")[2])
        assert query["compareRunsMode"] == ["CHART"]
        assert shown(query["searchFilter"][0], query["orderByKey"][0])[0] == role


def test_the_view_of_studies_has_the_parameters_of_all_their_spaces(study, store_uri):
    client = MlflowClient(store_uri)

    def shown(study_id, created_at, *names):
        space = {name: {"type": "integer", "low": 1, "high": 5} for name in names}
        header = replace(study.header, study_id=study_id, created_at=created_at, space=space)
        tracker = Mlflow(store_uri, "atlas", in_thread=True)
        tracker.sync(header, [], study.summary, study.run_dir)
        tags = client.get_experiment_by_name("atlas").tags
        columns = view(tags, "studies")[1]["selectedColumns"]
        return [name for name in columns if name.startswith("params.")]

    def columns(*names):
        return [f"params.`winner.{name}`" for name in names]

    assert shown("first", 1_790_000_000.0, "depth", "top_k") == columns("depth", "top_k")
    assert shown("second", 1_790_000_100.0, "top_k", "mode") == columns("top_k", "mode", "depth")
    early = shown("synced late", 1_780_000_000.0, "old")
    assert early == columns("top_k", "mode", "depth", "old")
    many = shown("many", 1_790_000_200.0, *(f"parameter_number_{n}" for n in range(300)))
    assert set(columns("parameter_number_0")) < set(many)
    (tag,) = [t for k, t in client.get_experiment_by_name("atlas").tags.items() if "studies" in k]
    assert len(tag) <= 5000


def test_a_night_is_in_the_columns_of_studies(study, store_uri):
    tracker = Mlflow(store_uri, "atlas", in_thread=True)
    tracker.sync(study.header, study.trials, study.summary, study.run_dir)
    client = MlflowClient(store_uri)
    experiment = client.get_experiment_by_name("atlas")
    (run,) = client.search_runs([experiment.experiment_id], "tags.`tuner.role` = 'study'")
    tags = {"tuner.night": "2026-03-01", "tuner.night_outcome": "promoted"}
    for outcome in ("promotable", "promoted"):
        show_night(
            store_uri,
            "atlas",
            name="atlas",
            tags={study.header.study_id: {**tags, "tuner.night_outcome": outcome}},
            figures={date(2026, 3, 1): {"champion_score": 0.5}},
        )
    shown = client.get_run(run.info.run_id).data
    assert shown.params["night"] == "2026-03-01"
    assert shown.tags["tuner.night_outcome"] == "promoted"
    experiment = client.get_experiment_by_name("atlas")
    assert {"tags.`tuner.night`", "tags.`tuner.night_outcome`"} < set(
        view(experiment.tags, "studies")[1]["selectedColumns"]
    )


def test_the_latest_study_is_shown_and_what_others_set_stays(study, store_uri):
    client = MlflowClient(store_uri)
    experiment_id = client.create_experiment("atlas", tags={"mlflow.experimentKind": "theirs"})
    client.set_experiment_tag(experiment_id, "mlflow.sharedViewState.mine", "kept")

    def show(study_id, created_at):
        header = replace(study.header, study_id=study_id, created_at=created_at)
        tracker = Mlflow(store_uri, "atlas", in_thread=True)
        tracker.sync(header, [], study.summary, study.run_dir)
        return client.get_experiment(experiment_id).tags

    show("earlier", 1_790_000_000.0)
    show("later", 1_790_000_100.0)
    tags = show("synced long after", 1_790_000_050.0)
    assert "'later'" in view(tags, "trials")[1]["searchFilter"]
    assert tags["mlflow.experimentKind"] == "theirs"
    assert tags["mlflow.sharedViewState.mine"] == "kept"
