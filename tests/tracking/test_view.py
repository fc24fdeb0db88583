"""What a person finds in MLflow after a study, in a sqlite store."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient

from tuner.core.errors import TunerError
from tuner.core.study_record import ArmRecord
from tuner.core.trial import TrialState
from tuner.study.journal import Journal
from tuner.tracking.mlflow.client import Client
from tuner.tracking.mlflow.tracker import Mlflow
from tuner.tracking.mlflow.view import StudyView

PARENT = "graphrag-atlas " + time.strftime("%Y-%m-%d %H:%M", time.localtime(1_790_000_000))
TRIALS = ["tpe #0", "wide #1", "tpe #2", "tpe #3", "wide #4", "tpe #5"]


def in_thread(uri: str, experiment: str, **options: Any) -> Mlflow:
    """Make a tracker whose writer is a thread: a process of its own imports MLflow anew."""
    return Mlflow(uri, experiment, in_thread=True, **options)


def show(tracker: Mlflow, study: Any) -> None:
    tracker.start(study.header, study.run_dir)
    for trial in study.trials:
        tracker.record(trial)
    tracker.finish(study.summary)


@pytest.fixture(scope="module")
def finished(
    tmp_path_factory: pytest.TempPathFactory, fresh_store: Path, make_study: Any
) -> tuple[Any, Mlflow, str, list[str]]:
    """One study that was shown to its end, for the tests that only look at it."""
    folder = tmp_path_factory.mktemp("finished")
    store_uri = f"sqlite:///{shutil.copy(fresh_store, folder / 'mlflow.db')}"
    study = make_study(folder)
    warnings: list[str] = []
    tracker = in_thread(store_uri, "atlas", warn=warnings.append)
    show(tracker, study)
    return study, tracker, store_uri, warnings


@pytest.fixture
def finished_view(finished, read_view):
    study, _, store_uri, _ = finished
    return read_view(store_uri, study.header.study_id)


def test_a_study_becomes_a_parent_its_arms_and_their_trials(finished, finished_view):
    _, tracker, _, warnings = finished
    view = finished_view

    assert warnings == []
    assert sorted(view) == sorted([PARENT, "tpe", "wide", *TRIALS])
    assert view[PARENT].parent is None
    assert {view["tpe"].parent, view["wide"].parent} == {PARENT}
    assert [view[name].parent for name in TRIALS] == [name.split()[0] for name in TRIALS]
    assert tracker.status.is_complete
    assert (tracker.status.written, tracker.status.pending) == (6, 0)


def test_the_parent_holds_the_study(finished_view):
    parent = finished_view[PARENT]

    assert parent.status == "FINISHED"
    assert parent.start_ms == 1_790_000_000_000
    assert parent.tags["tuner.role"] == "study"
    assert parent.tags["tuner.study"] == "graphrag-atlas"
    assert parent.tags["tuner.state"] == "finished"
    assert parent.tags["tuner.fingerprint.space"] == "aa11"
    assert parent.tags["tuner.version.graphrag-tuner"] == "0.1.0"
    assert parent.tags["mlflow.source.git.commit"] == "c0ffee" + "0" * 34
    assert parent.params == {
        "seed": "42",
        "dataset": "atlas",
        "dataset_fingerprint": "0123456789abcdef",
        "budget.tpe": "4",
        "budget.wide": "3",
        # trial 5, 0.7: trial 3 with 0.9 breaks a constraint
        "best.graph_weight": "0.25",
        "best.max_hops": "2",
        "best.mode": "hybrid",
        "best.deep": "True",
        "winner.graph_weight": "0.25",
        "winner.max_hops": "2",
        "winner.mode": "hybrid",
        "winner.deep": "True",
    }
    assert {name: history[-1][1] for name, history in parent.metrics.items()} == {
        "best_objective": 0.7,
        "best_holdout_objective": 0.65,
        "best_tune_mrr_at_10": 0.25,
        "best_holdout_recall_at_10": 0.65,
        "winner_objective": 0.7,
        "winner_holdout_objective": 0.65,
        "winner_tune_mrr_at_10": 0.25,
        "winner_holdout_recall_at_10": 0.65,
        "baseline_objective": 0.4,
        "baseline_holdout_objective": 0.45,
        "baseline_tune_recall_at_10": 0.4,
        "finished_trials": 3.0,
        "failed_trials": 1.0,
        "failed_share": 0.2,
        "shared_trials": 1.0,
        "raced_out_trials": 0.0,
        "seconds": 61.5,
    }
    assert parent.tags["tuner.not_finite"] == "best_tune_ndcg_at_10, winner_tune_ndcg_at_10"
    assert sorted(parent.datasets) == [
        ("atlas (holdout)", "0123456789abcdef", "holdout"),
        ("atlas (tune)", "0123456789abcdef", "tune"),
    ]
    assert parent.artifacts == [
        "best.yaml",
        "config.yaml",
        "environment.json",
        "journal.jsonl",
        "model",
        "study.json",
    ]


def test_an_arm_shows_its_convergence_by_told_trial(finished_view):
    arm = finished_view["tpe"]

    # Told: 0 scored .5, 2 failed, 3 infeasible .9, 5 scored .7
    assert arm.metrics["objective"] == [(0, 0.5), (2, 0.9), (3, 0.7)]
    assert arm.metrics["best_so_far"] == [(0, 0.5), (1, 0.5), (2, 0.5), (3, 0.7)]
    assert arm.tags["tuner.role"] == "arm"
    assert arm.params["best.max_hops"] == "2"
    assert (arm.params["backend"], arm.params["budget"]) == ("tpe", "4")
    assert arm.status == "FINISHED"


def test_a_trial_shows_everything_that_was_observed(finished, finished_view):
    study, view = finished[0], finished_view

    first = view["tpe #0"]
    assert first.params == {
        "graph_weight": "0.25",
        "max_hops": "0",
        "mode": "hybrid",
        "deep": "True",
    }
    assert first.metrics == {
        "recall_at_10": [(0, 0.5)],
        "objective": [(0, 0.5)],
        "violation": [(0, 0.0)],
        "seconds_total": [(0, 1.5)],
        "seconds_graph": [(0, 0.5)],
    }
    assert (first.start_ms, first.end_ms) == (1_790_000_000_000, 1_790_000_001_500)
    assert first.tags == {
        "tuner.study_id": study.header.study_id,
        "tuner.role": "trial",
        "tuner.arm": "tpe",
        "tuner.backend": "tpe",
        "tuner.trial": "0",
        "tuner.state": "finished",
        "tuner.feasible": "true",
    }
    assert view["wide #1"].tags["tuner.backend"] == "random"
    failed = view["tpe #2"]
    assert failed.status == "FAILED"
    assert failed.tags["tuner.error"] == "TimeoutError: no answer in 600 s"
    assert set(failed.metrics) == {"seconds_total", "seconds_graph"}
    assert view["tpe #3"].tags["tuner.feasible"] == "false"
    assert view["wide #4"].tags["tuner.shared_from"] == "0"
    assert view["wide #4"].status == "FINISHED"
    last = view["tpe #5"]
    assert last.tags["tuner.not_finite"] == "ndcg_at_10"
    assert "ndcg_at_10" not in last.metrics
    assert [name for name, run in view.items() if run.tags.get("tuner.is_best") == "true"] == [
        "tpe #5"
    ]


def test_a_filter_on_metric_and_param_finds_the_trials(finished):
    client = MlflowClient(finished[2])
    experiment = client.get_experiment_by_name("atlas")
    found = client.search_runs(
        [experiment.experiment_id], "metrics.objective > 0.55 and params.max_hops = '2'"
    )
    assert [run.info.run_name for run in found] == ["tpe #5"]


def test_a_very_long_param_is_cut_and_kept_as_an_artifact(study, store_uri, read_view):
    long = replace(study.trials[0], params={"prompt": "x" * 7000})
    study = replace(study, trials=[long])
    show(in_thread(store_uri, "atlas"), study)
    shown = read_view(store_uri, study.header.study_id)["tpe #0"]
    assert shown.params["prompt"].startswith("x" * 200 + "… (7000 characters")
    assert shown.artifacts == ["long_params.json"]


def test_sync_from_nothing_shows_what_the_live_study_shows(study, store_uri, read_view):
    show(in_thread(store_uri, "live"), study)
    twin = replace(study.header, study_id="twin")
    status = in_thread(store_uri, "live").sync(twin, study.trials, study.summary, study.run_dir)
    live, later = (comparable(read_view(store_uri, key)) for key in (study.header.study_id, "twin"))
    assert later == live
    assert status.written == 6
    assert status.is_complete


def test_sync_adds_nothing_to_a_complete_view(study, store_uri, read_view):
    tracker = in_thread(store_uri, "atlas")
    show(tracker, study)
    before = read_view(store_uri, study.header.study_id)
    for _ in range(2):
        status = tracker.sync(study.header, study.trials, study.summary, study.run_dir)
        assert (status.added, status.repaired) == (0, 0)
    assert read_view(store_uri, study.header.study_id) == before


@pytest.mark.slow
def test_a_view_that_was_cut_anywhere_is_completed(study, store_uri, read_view):
    tracker = in_thread(store_uri, "atlas")
    whole = replace(study.header, study_id="whole")
    tracker.sync(whole, study.trials, study.summary, study.run_dir)
    expected = comparable(read_view(store_uri, "whole"))

    for calls in range(0, 95, 7):  # a trial is 3 calls: each of them is cut
        header = replace(study.header, study_id=f"cut-{calls}")
        client = CutOff(Client.open(store_uri, "atlas"), calls)
        with suppress(ConnectionError):
            write_whole(StudyView(client, header, study.run_dir), study)
        tracker.sync(header, study.trials, study.summary, study.run_dir)
        assert comparable(read_view(store_uri, header.study_id)) == expected, f"{calls=}"
    assert not client.is_cut, "the loop must reach the view's end"


def test_duplicates_are_removed_and_their_children_kept(study, store_uri, read_view):
    tracker = in_thread(store_uri, "atlas")
    show(tracker, study)
    before = read_view(store_uri, study.header.study_id)
    client = MlflowClient(store_uri)
    experiment_id = client.get_experiment_by_name("atlas").experiment_id
    for run in client.search_runs([experiment_id]):
        if run.info.run_name in {PARENT, "tpe", "tpe #0"}:
            tags = {name: run.data.tags[name] for name in run.data.tags if name != "tuner.is_best"}
            client.create_run(experiment_id, 1, tags, run_name=run.info.run_name)

    status = tracker.sync(study.header, study.trials, study.summary, study.run_dir)
    assert (status.added, status.repaired) == (0, 3)
    assert read_view(store_uri, study.header.study_id) == before


def test_a_deleted_parent_is_made_again_and_gets_its_children_back(study, store_uri, read_view):
    tracker = in_thread(store_uri, "atlas")
    show(tracker, study)
    before = comparable(read_view(store_uri, study.header.study_id))
    MlflowClient(store_uri).delete_run(tracker.run_id)
    tracker.sync(study.header, study.trials, study.summary, study.run_dir)
    assert comparable(read_view(store_uri, study.header.study_id)) == before


def test_a_killed_study_is_ended_by_sync_and_continued_by_resume(study, store_uri, read_view):
    journal = write_journal(study, study.trials[:3])
    with journal.open("a") as stream:
        stream.write('{"event": "told", "trial": 99, "ar')
    first = in_thread(store_uri, "atlas")
    first.sync(study.header, study.trials[:3], None, study.run_dir)
    killed = read_view(store_uri, study.header.study_id)
    assert {killed[name].status for name in (PARENT, "tpe", "wide")} == {"KILLED"}
    assert len(killed) == 6

    resumed = in_thread(store_uri, "atlas")
    resumed.start(study.header, study.run_dir)
    for trial in study.trials[3:]:
        resumed.record(trial)
    resumed.finish(study.summary)
    view = read_view(store_uri, study.header.study_id)
    assert view[PARENT].status == "FINISHED"
    assert len(view) == 9
    assert [step for step, _ in view["tpe"].metrics["best_so_far"]] == [0, 1, 2, 3]


def test_a_study_that_was_given_more_trials_says_so_in_tags(study, store_uri, read_view):
    in_thread(store_uri, "atlas").sync(study.header, study.trials, study.summary, study.run_dir)
    more = tuple(replace(arm, budget=arm.budget + 10) for arm in study.header.arms)
    header = replace(study.header, arms=(*more, ArmRecord("random", "random", 3)))
    in_thread(store_uri, "atlas").sync(header, study.trials, study.summary, study.run_dir)
    view = read_view(store_uri, study.header.study_id)
    parent = next(run for run in view.values() if run.tags["tuner.role"] == "study")
    assert (parent.params["budget.tpe"], parent.tags["tuner.budget.tpe"]) == ("4", "14")
    assert parent.tags["tuner.budget.random"] == "3"
    assert (view["tpe"].params["budget"], view["tpe"].tags["tuner.budget"]) == ("4", "14")
    assert view["random"].tags["tuner.budget"] == "3"


def test_start_completes_the_view_from_the_journal(study, store_uri, read_view):
    write_journal(study, study.trials)
    tracker = in_thread(store_uri, "atlas")
    tracker.start(study.header, study.run_dir)
    tracker.record(study.trials[0])
    tracker.finish(study.summary)
    assert sorted(read_view(store_uri, study.header.study_id)) == sorted(
        [PARENT, "tpe", "wide", *TRIALS]
    )


@pytest.mark.slow
def test_a_failed_trial_that_was_evaluated_again_is_shown_with_its_new_result(
    study, store_uri, read_view, make_study, tmp_path
):
    """Live, by a later run of the study, and by sync from nothing, the same is shown."""
    show(in_thread(store_uri, "atlas"), study)
    failed = study.trials[2]
    again = replace(
        failed,
        state=TrialState.FINISHED,
        error=None,
        objective=0.95,
        metrics={"recall@10": 0.95},
        told_at=study.trials[-1].told_at + 5.0,
    )
    journal = write_journal(study, study.trials)
    with journal.open("a") as stream:
        stream.write(json.dumps({"event": "note", "kind": "retried", "trials": [2]}) + "\n")

    later = in_thread(store_uri, "atlas")
    later.start(study.header, study.run_dir)
    later.record(again)
    trials = [again if trial.number == 2 else trial for trial in study.trials]
    later.finish(study.summary)
    live = read_view(store_uri, study.header.study_id)
    run = live["tpe #2"]
    assert run.status == "FINISHED"
    assert "tuner.error" not in run.tags
    assert run.tags["tuner.state"] == "finished"
    assert run.metrics["objective"] == [(0, 0.95)]
    # Steps are the order of telling, and the failure keeps its own.
    assert live["tpe"].metrics["objective"] == [(0, 0.5), (2, 0.9), (3, 0.7), (4, 0.95)]

    with journal.open("a") as stream:
        stream.write(json.dumps({"event": "told", **again.to_record()}) + "\n")
    fresh = f"sqlite:///{tmp_path / 'fresh.db'}"
    in_thread(fresh, "atlas").sync(study.header, trials, study.summary, study.run_dir)
    synced = read_view(fresh, study.header.study_id)
    assert synced["tpe #2"] == live["tpe #2"]
    assert synced["tpe"].metrics["objective"] == live["tpe"].metrics["objective"]
    status = in_thread(store_uri, "atlas").sync(study.header, trials, study.summary, study.run_dir)
    assert (status.added, status.repaired) == (0, 0)


@pytest.mark.slow
def test_an_interrupted_study_keeps_its_params_open(study, store_uri, read_view, summarize):
    tracker = in_thread(store_uri, "atlas")
    show(
        tracker,
        replace(study, trials=study.trials[:2], summary=summarize(study.trials[:2], "interrupted")),
    )
    parent = read_view(store_uri, study.header.study_id)[PARENT]
    assert parent.status == "KILLED"
    assert parent.tags["tuner.best.max_hops"] == "1"
    assert "best.max_hops" not in parent.params

    assert "winner_objective" not in parent.metrics  # none was chosen yet

    show(tracker, study)
    view = read_view(store_uri, study.header.study_id)
    for side in ("best", "winner"):
        assert view[PARENT].params[f"{side}.max_hops"] == "2"
        assert view[PARENT].tags[f"tuner.{side}.max_hops"] == "2"
    assert view["wide #1"].tags["tuner.is_best"] == "false"
    assert view["tpe #5"].tags["tuner.is_best"] == "true"


def test_best_has_the_highest_objective_and_the_winner_is_what_is_used(study, store_uri, read_view):
    cheaper = study.trials[1]  # .6 where the best has .7
    winner = replace(
        study.summary.best, arm="wide", trial=1, params=cheaper.params, tune_objective=0.6
    )
    study = replace(study, summary=replace(study.summary, winner=winner))
    show(in_thread(store_uri, "atlas"), study)
    view = read_view(store_uri, study.header.study_id)

    def last(name, metric):
        return view[name].metrics[metric][-1][1]

    assert last(PARENT, "best_objective") == 0.7
    assert last(PARENT, "best_objective") == max(
        last(arm, "best_objective") for arm in ("tpe", "wide")
    )
    assert last(PARENT, "winner_objective") == 0.6
    parent = view[PARENT]
    assert (parent.params["best.max_hops"], parent.params["winner.max_hops"]) == ("2", "1")
    assert (parent.tags["tuner.best_trial"], parent.tags["tuner.winner_trial"]) == ("5", "1")
    for tag, name in (("tuner.is_best", "tpe #5"), ("tuner.is_winner", "wide #1")):
        assert [run.name for run in view.values() if run.tags.get(tag) == "true"] == [name]


def test_arms_that_do_not_search_have_a_best_too(study, store_uri, read_view):
    first = replace(study.trials[0], arm="earlier", objective=0.8)
    best = replace(study.summary.best, arm="earlier", trial=0, tune_objective=0.8)
    summary = replace(study.summary, best=best)
    show(
        in_thread(store_uri, "atlas"),
        replace(study, trials=[first, *study.trials[1:]], summary=summary),
    )
    view = read_view(store_uri, study.header.study_id)
    assert view["earlier"].metrics["best_objective"] == [(0, 0.8)]
    assert view["earlier"].metrics["best_objective"] == view[PARENT].metrics["best_objective"]


def test_a_deleted_experiment_is_restored_and_said(study, store_uri, read_view):
    warnings: list[str] = []
    tracker = in_thread(store_uri, "atlas", warn=warnings.append)
    show(tracker, study)
    client = MlflowClient(store_uri)
    client.delete_experiment(client.get_experiment_by_name("atlas").experiment_id)
    tracker.sync(study.header, study.trials, study.summary, study.run_dir)
    assert len(read_view(store_uri, study.header.study_id)) == 9
    assert [("restored" in warning) for warning in warnings] == [True]


@pytest.mark.slow
def test_a_trial_that_mlflow_refuses_does_not_keep_the_others_away(study, store_uri, read_view):
    warnings: list[str] = []
    refused = replace(study.trials[1], asked_at=-1e30)  # more milliseconds than an integer holds
    study = replace(study, trials=[study.trials[0], refused, study.trials[2]])
    tracker = in_thread(store_uri, "atlas", warn=warnings.append)
    show(tracker, study)
    view = read_view(store_uri, study.header.study_id)
    assert {"tpe #0", "tpe #2"} < set(view)
    assert tracker.status.pending == 1
    assert sum("does not take trial 1" in warning for warning in warnings) == 1


def test_an_arm_deleted_under_way_is_made_again(study, store_uri, read_view, wait_until):
    tracker = in_thread(store_uri, "atlas", warn=lambda _: None)
    tracker.start(study.header, study.run_dir)
    for trial in study.trials[:4]:
        tracker.record(trial)
    wait_until(lambda: tracker.status.written == 4)
    client = MlflowClient(store_uri)
    experiment_id = client.get_experiment_by_name("atlas").experiment_id
    [arm] = client.search_runs([experiment_id], "attributes.run_name = 'tpe'")
    client.delete_run(arm.info.run_id)
    for trial in study.trials[4:]:
        tracker.record(trial)
    tracker.finish(study.summary)

    view = read_view(store_uri, study.header.study_id)
    assert sorted(view) == sorted([PARENT, "tpe", "wide", *TRIALS])
    assert [step for step, _ in view["tpe"].metrics["best_so_far"]] == [0, 1, 2, 3]
    assert view["tpe #0"].parent == "tpe"


def test_artifacts_that_cannot_be_stored_stop_no_trial(study, store_uri, read_view, tmp_path):
    (tmp_path / "mlruns").write_text("a file where the artifacts' folder should be")
    warnings: list[str] = []
    tracker = in_thread(store_uri, "atlas", warn=warnings.append)
    show(tracker, study)
    client = MlflowClient(store_uri)
    runs = client.search_runs([client.get_experiment_by_name("atlas").experiment_id])
    assert len(runs) == 9
    assert {run.info.status for run in runs} == {"FINISHED", "FAILED"}
    assert len(warnings) == 1
    assert warnings[0].startswith("MLflow lacks files (artifacts: ")


@pytest.mark.slow
def test_several_processes_may_open_one_fresh_store(tmp_path):
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    script = (
        "import sys; from tuner.tracking.mlflow.client import Client\n"
        "from tuner.tracking.mlflow.quiet import quiet\n"
        "with quiet():\n"
        "    import mlflow; print(flush=True); sys.stdin.readline()\n"
        "    print(Client.open(*sys.argv[1:]).experiment_id)"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", script, uri, "shared"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert other.stdin is not None
    assert other.stdout is not None
    other.stdout.readline()  # both have imported MLflow: they open the store at once
    other.stdin.write("\n")
    other.stdin.flush()
    experiment_id = Client.open(uri, "shared").experiment_id
    assert other.communicate(timeout=900) == (f"{experiment_id}\n", "")
    assert other.returncode == 0


def test_the_users_environment_and_loggers_are_left_as_they_were(study, store_uri, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "7")
    before = dict(os.environ)
    show(in_thread(store_uri, "atlas"), study)
    assert {**os.environ, "PYTEST_CURRENT_TEST": ""} == {**before, "PYTEST_CURRENT_TEST": ""}
    assert not [thread for thread in threading.enumerate() if thread.name == "tuner-mlflow"]


def test_sync_says_what_is_wrong_with_the_store(study, tmp_path):
    broken = tmp_path / "mlflow.db"
    broken.write_text("not a database, but long enough to be read as the header of one" * 20)
    with pytest.raises(TunerError, match="cannot complete the study in MLflow at sqlite"):
        in_thread(f"sqlite:///{broken}", "atlas").sync(
            study.header, study.trials, study.summary, study.run_dir
        )


def write_whole(view: StudyView, study: Any) -> None:
    for trial in study.trials:
        view.write_trial(trial)
        view.add_to_curve(trial)
    view.write_curves()
    view.close(study.summary, end_ms=1_790_000_051_500)


class CutOff:
    """Passes calls on to a client until some were made, and then loses the connection."""

    def __init__(self, client: Client, calls: int) -> None:
        self._client = client
        self._calls = calls
        self.is_cut = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if not callable(found):
            return found

        def call(*arguments: Any, **options: Any) -> Any:
            if self._calls == 0:
                self.is_cut = True
                raise ConnectionError(f"lost before {name}")
            self._calls -= 1
            return found(*arguments, **options)

        return call


def comparable(view: dict[str, Any]) -> dict[str, Any]:
    """Leave out the study's id, the time when runs other than trials were ended, and the model,
    of which a second study with the same winner makes no version.
    """
    return {
        name: replace(
            run,
            tags={
                key: value.replace(run.tags["tuner.study_id"], "ID")
                for key, value in run.tags.items()
                if key not in {"tuner.study_id", "tuner.note"}
            },
            end_ms=run.end_ms if run.tags["tuner.role"] == "trial" else None,
            datasets=sorted(run.datasets),
            artifacts=[name for name in run.artifacts if name != "model"],
        )
        for name, run in view.items()
    }


def write_journal(study: Any, trials: list[Any]) -> Path:
    path: Path = study.run_dir / "journal.jsonl"
    path.unlink()
    with Journal.create(path, study.header) as journal:
        for trial in study.trials:
            journal.asked(trial)
        for trial in trials:
            journal.told(trial, {})
    return path
