"""The study in MLflow, from the command line: written, rebuilt, and not missed when it is down."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import urllib.request

import pytest
import yaml

CITIES = ["Lima", "Oslo", "Cairo", "Quito", "Paris", "Rome", "Delhi", "Hanoi", "Accra", "Dakar"]


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


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_a_password_stays_in_a_file_for_its_owner_only(tuner):
    with_store(tuner, "http://bob:sEcr3t@127.0.0.1:9")
    done = tuner("run", "config.yaml")
    assert "sEcr3t" not in done.stdout + done.stderr
    (run_dir,) = tuner.runs()
    holders = [p for p in run_dir.rglob("*") if p.is_file() and b"sEcr3t" in p.read_bytes()]
    assert holders == [run_dir / "config.yaml"]
    assert (run_dir / "config.yaml").stat().st_mode & 0o077 == 0


def with_store(tuner, uri="sqlite:///mlflow.db"):
    tuner.edit("tracking: null", f"tracking: {{uri: '{uri}', experiment: test}}")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.usefixtures("written_by_a_thread")
def test_run_shows_every_trial_and_sync_adds_nothing(tuner_here, view, fresh_store):
    tuner = tuner_here
    with_store(tuner, f"sqlite:///{shutil.copy(fresh_store, tuner.folder / 'mlflow.db')}")
    # Half of the queries want a second document: every top_k from 2 up is as good, the least wins.
    tuner.edit("context_tokens_per_1000: 0.1", "context_tokens_per_1000: 0.0")
    tuner.edit("top_k: 10}", "top_k: 1}")
    with (tuner.folder / "data" / "qrels" / "test.tsv").open("a") as judgements:
        judgements.writelines(f"q{n}-river\t{city}-market\t1\n" for n, city in enumerate(CITIES))
    record = json.loads(tuner("run", "config.yaml", "--json").stdout)
    by_role = view(tuner.folder)
    (parent,) = by_role["study"]
    assert parent.info.run_id == record["mlflow_run_id"]
    shown = parent.data.metrics
    assert {"seconds", "seconds_reading", "seconds_search", "seconds_report"} < set(shown)
    assert shown["winner_holdout_recall_at_5"] == pytest.approx(
        record["winner"]["holdout_metrics"]["recall@5"]
    )
    # best is the highest of all arms; the winner is what best.yaml holds, and another one here
    assert record["winner"]["trial"] != record["best"]["trial"]
    of_arms = [run.data.metrics["best_objective"] for run in by_role["arm"]]
    assert shown["best_objective"] == max(of_arms) == record["best"]["tune_objective"]
    written = yaml.safe_load((tuner.folder / record["run_dir"] / "best.yaml").read_text())
    assert shown["winner_objective"] == written["tune"]["objective"]
    assert parent.data.tags["tuner.winner_trial"] == str(written["trial"])
    for name in ("title_weight", "top_k"):
        assert float(parent.data.params[f"winner.{name}"]) == written["params"][name]
    for tag, which in (("tuner.is_best", "best"), ("tuner.is_winner", "winner")):
        (marked,) = [run for run in by_role["trial"] if run.data.tags.get(tag) == "true"]
        assert marked.data.tags["tuner.trial"] == str(record[which]["trial"])
    told = record["finished_trials"] + record["failed_trials"] + record["shared_trials"]
    assert len(by_role["trial"]) == told
    said = tuner("sync", record["run_dir"]).stdout
    assert f"holds the study's {told} trials: 0 missing runs and curve points added" in said
    assert "0 half-written or duplicate runs repaired" in said
    assert len(view(tuner.folder)["trial"]) == told


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_a_server_that_is_down_stops_nothing_and_sync_completes_the_view(tuner, view, fresh_store):
    shutil.copy(fresh_store, tuner.folder / "later.db")
    with_store(tuner, f"http://127.0.0.1:{free_port()}")
    done = tuner("run", "config.yaml")
    assert "finished after" in done.stdout
    assert "tuner sync" in done.stderr
    (run_dir,) = tuner.runs()
    failed = tuner("sync", str(run_dir), code=1)
    assert "cannot" in failed.stderr
    tuner("sync", str(run_dir), "--uri", "sqlite:///later.db")
    assert len(view(tuner.folder, "later.db")["study"]) == 1
    assert len(view(tuner.folder, "later.db")["trial"]) >= 12


@pytest.mark.slow
def test_ui_says_its_address_once_it_answers_and_ends_quietly(tuner, fresh_store):
    shutil.copy(fresh_store, tuner.folder / "mlflow.db")
    port = free_port()
    started = subprocess.Popen(
        tuner.command("ui", "--uri", "sqlite:///mlflow.db", "--port", str(port)),
        cwd=tuner.folder,
        env=tuner.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert "starting MLflow on sqlite:///mlflow.db" in started.stdout.readline()
    assert f"http://127.0.0.1:{port}  (Ctrl-C ends it)" in started.stdout.readline()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/health") as answer:
        assert answer.status == 200
    taken = tuner("ui", "--uri", "sqlite:///mlflow.db", "--port", str(port), code=1)
    assert f"port {port}: Address already in use; choose another: --port" in taken.stderr

    started.send_signal(signal.SIGINT)
    assert started.communicate() == ("", "")
    assert started.returncode == 0
    with socket.socket() as freed:
        assert freed.connect_ex(("127.0.0.1", port)) != 0, "the server must end too"


@pytest.mark.slow
def test_ui_leads_to_the_study_and_not_only_to_the_first_page(tuner):
    tuner.edit("tracking: null", 'tracking: {uri: "sqlite:///mlflow.db", experiment: small}')
    run_id = json.loads(tuner("run", "config.yaml", "--json").stdout)["mlflow_run_id"]
    (run_dir,) = tuner.runs()
    port = free_port()
    started = subprocess.Popen(
        tuner.command("ui", str(run_dir), "--port", str(port)),
        cwd=tuner.folder,
        env=tuner.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    said = [started.stdout.readline() for _ in range(4)]
    started.send_signal(signal.SIGINT)
    assert started.communicate() == ("", "")
    runs = rf"http://127\.0\.0\.1:{port}/#/experiments/\d+/runs"
    assert re.fullmatch(rf"the study +{runs}/{run_id}\?workflowType=machine_learning\n", said[2])
    assert re.match(rf"all studies +{runs}\?viewStateShareKey=tuner-studies&", said[3])


def test_ui_names_the_store_without_its_password(tuner):
    named = tuner("ui", "--uri", "http://me:s3cret@host:5000")
    assert "open http://me:***@host:5000" in named.stdout
    refused = tuner("ui", "--uri", "ftp://me:s3cret@host", code=2)
    assert "s3cret" not in named.stdout + refused.stderr + refused.stdout
    assert "tracking is off, so there is no store" in tuner("ui", "config.yaml", code=2).stderr
