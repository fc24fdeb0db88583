"""What a study leaves in MLflow at its end, as its UI and its client read it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from mlflow import MlflowClient

from tuner.tracking.mlflow.quiet import Timeouts
from tuner.tracking.mlflow.results import query_table
from tuner.tracking.mlflow.tracker import Mlflow
from tuner.tracking.mlflow.trial_table import trial_table

NOTE = "mlflow.note.content"
VERDICT = {"outcome": "deploy", "sentence": "Deploy: it is better."}


def side(composite, *ids):
    retrieved = [{"id": id_, "title": "", "relevant": False} for id_ in ids]
    return {"composite": composite, "metrics": {"recall@10": composite}, "retrieved": retrieved}


def row(query_id, winner, baseline):
    return {
        "query_id": query_id,
        "query": f"Where is {query_id}?",
        "query_type": "direct",
        "part": "holdout",
        "relevant": ["d1"],
        "winner": side(winner, "d1", "d2"),
        "baseline": side(baseline, "d3"),
    }


ROWS = [row("won", 0.8, 0.1), row("undefined", None, 0.5), row("lost", 0.25, 0.75)]


@pytest.fixture
def ended(study, store_uri):
    """Show a study that has ended; call it again to sync once more. Returns its run's id."""
    (study.run_dir / "per_query.jsonl").write_text("".join(json.dumps(one) + "\n" for one in ROWS))
    (study.run_dir / "report.html").write_text("<p>The report.</p>")
    for folder, name in (("plots", "convergence.png"), ("figures", "convergence.csv")):
        (study.run_dir / folder).mkdir()
        (study.run_dir / folder / name).write_text("1,2")

    def show(**changes):
        summary = replace(study.summary, **{"verdict": VERDICT, **changes})
        tracker = Mlflow(store_uri, "atlas", in_thread=True)
        tracker.sync(study.header, study.trials, summary, study.run_dir)
        (found,) = MlflowClient(store_uri).search_runs(
            [tracker_experiment(store_uri)], "tags.`tuner.role` = 'study'"
        )
        return found.info.run_id

    return show


def tracker_experiment(uri):
    return MlflowClient(uri).get_experiment_by_name("atlas").experiment_id


def test_a_table_has_the_worst_losses_first_and_what_is_undefined_last():
    table = query_table(ROWS)
    assert table["columns"] == [
        *("query_id", "query", "query_type", "change"),
        *("winner composite", "baseline composite", "winner recall@10", "baseline recall@10"),
        *("winner retrieved", "baseline retrieved", "relevant", "part"),
    ]
    assert [cells[0] for cells in table["data"]] == ["lost", "won", "undefined"]
    lost, _, undefined = table["data"]
    assert lost[3:] == [-0.5, 0.25, 0.75, 0.25, 0.75, ["d1", "d2"], ["d3"], ["d1"], "holdout"]
    assert undefined[3:6] == [None, None, 0.5]


@pytest.mark.slow
def test_mlflow_reads_the_queries_as_a_table_and_a_second_sync_does_not_double_it(
    ended, store_uri, monkeypatch
):
    run_id = ended()
    assert ended() == run_id
    client = MlflowClient(store_uri)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store_uri)  # which it asks, whatever its own
    experiment_id = tracker_experiment(store_uri)
    found = client.load_table(experiment_id, "per_query.json", run_ids=[run_id])
    assert list(found["query_id"]) == ["lost", "won", "undefined"]
    assert list(found["winner retrieved"]) == [["d1", "d2"]] * 3
    tag = client.get_run(run_id).data.tags["mlflow.loggedArtifacts"]
    assert json.loads(tag) == [{"path": "per_query.json", "type": "table"}]


def test_tables_of_others_stay_known(ended, store_uri):
    run_id = ended()
    client = MlflowClient(store_uri)
    client.log_table(run_id, {"mine": [1]}, "mine.json")
    ended()
    tables = json.loads(client.get_run(run_id).data.tags["mlflow.loggedArtifacts"])
    assert [table["path"] for table in tables] == ["per_query.json", "mine.json"]


def test_report_plots_and_figures_are_artifacts(ended, store_uri):
    client, run_id = MlflowClient(store_uri), ended()
    assert {file.path for file in client.list_artifacts(run_id)} >= {"report.html", "model"}
    for place in ("plots/convergence.png", "figures/convergence.csv"):
        folder = place.partition("/")[0]
        assert [file.path for file in client.list_artifacts(run_id, folder)] == [place]
    note = client.get_run(run_id).data.tags[NOTE]
    assert note.startswith("**Deploy: it is better.**")
    for name in ("report.html", "per_query.json", "plots", "figures", "best.yaml"):
        assert f"`{name}` (artifact)" in note


def test_one_file_that_cannot_be_read_keeps_no_other_away(ended, study, store_uri):
    (study.run_dir / "per_query.jsonl").write_text("{torn")
    (study.run_dir / "report.html").unlink()
    tracker = Mlflow(store_uri, "atlas", in_thread=True)
    status = tracker.sync(study.header, study.trials, study.summary, study.run_dir)
    assert status.error is not None
    assert status.error.startswith("artifacts: ")
    files = {file.path for file in MlflowClient(store_uri).list_artifacts(ended())}
    assert files >= {"best.yaml", "journal.jsonl", "plots", "figures", "model"}
    assert not {"report.html", "per_query.json"} & files


def test_what_a_person_wrote_as_description_stays(ended, store_uri):
    client, run_id = MlflowClient(store_uri), ended()
    ended(remarks=("max_hops changes nothing",))
    assert "max\\_hops changes nothing" in client.get_run(run_id).data.tags[NOTE]
    client.set_tag(run_id, NOTE, "Our first try; see the wiki.")
    ended(remarks=("another remark",))
    assert client.get_run(run_id).data.tags[NOTE] == "Our first try; see the wiki."


def test_the_runs_name_begins_with_the_verdict(ended, store_uri):
    comparison = {"mean_difference": 0.0257, "interval": [0.01, 0.04]}
    run_id = ended(verdict={**VERDICT, "comparison": comparison})
    client = MlflowClient(store_uri)
    run = client.get_run(run_id)
    assert run.info.run_name.startswith("deploy +0.026 · graphrag-atlas 20")
    assert run.data.tags["tuner.outcome"] == "deploy"
    figures = ("difference", "difference_low", "difference_high")
    assert [run.data.metrics[name] for name in figures] == [0.0257, 0.01, 0.04]
    corrected = {"estimate": -0.002, "interval": [-0.01, 0.01]}
    ended(verdict={"outcome": "keep the baseline", "sentence": "No.", "corrected": corrected})
    name = client.get_run(run_id).info.run_name
    assert name.startswith("keep the baseline -0.002 · graphrag-atlas 20")
    ended(verdict=None, state="failed")
    assert client.get_run(run_id).info.run_name.startswith("failed · graphrag-atlas 20")
    client.update_run(run_id, name="ours")
    ended()
    assert client.get_run(run_id).info.run_name == "ours"


def test_the_experiment_says_how_the_latest_study_came_out(study, store_uri):
    client = MlflowClient(store_uri)

    def shown(study_id, sentence, created_at, state="finished"):
        header = replace(study.header, study_id=study_id, created_at=created_at)
        verdict = None if state == "interrupted" else {**VERDICT, "sentence": sentence}
        summary = replace(study.summary, verdict=verdict, state=state)
        tracker = Mlflow(store_uri, "atlas", in_thread=True)
        tracker.sync(header, [], summary, study.run_dir)
        return client.get_experiment(tracker_experiment(store_uri)).tags.get(NOTE, "")

    assert shown("a", "", 1_790_000_000.0, "interrupted") == ""
    first = shown("b", "Deploy: first.", 1_790_000_100.0)
    assert "**Deploy: first.**" in first
    experiment_id = tracker_experiment(store_uri)
    runs = f"#/experiments/{experiment_id}/runs"
    assert f"{runs}?viewStateShareKey=tuner-studies" in first
    parents = client.search_runs([experiment_id], "tags.`tuner.role` = 'study'")
    (of_b,) = [one for one in parents if one.data.tags["tuner.study_id"] == "b"]
    assert f"({runs}/{of_b.info.run_id}?" in first
    assert "Deploy: later." in shown("c", "Deploy: later.", 1_790_000_200.0)
    assert "Deploy: later." in shown("b", "Deploy: first.", 1_790_000_100.0)
    client.set_experiment_tag(experiment_id, NOTE, "Ours; see the wiki.")
    assert shown("d", "Deploy: last.", 1_790_000_300.0) == "Ours; see the wiki."


def test_arms_say_what_they_found(ended, store_uri):
    ended()
    found = MlflowClient(store_uri).search_runs(
        [tracker_experiment(store_uri)], "tags.`tuner.role` = 'arm'"
    )
    notes = {run.info.run_name: run.data.tags[NOTE] for run in found}
    assert notes["tpe"].startswith("Best of **tpe** in graphrag-atlas: trial #5, 0.7000")
    assert notes["wide"].startswith("Best of **wide** in graphrag-atlas: trial #1, 0.6000")


def test_finish_waits_no_longer_than_the_writing_takes(study, store_uri):
    # Longer than a test may take: what waits for the end of its time does not pass.
    tracker = Mlflow(store_uri, "atlas", in_thread=True, timeouts=Timeouts(finish_s=3_600.0))
    tracker.start(study.header, study.run_dir)
    tracker.finish(study.summary)
    assert tracker.status.is_complete


def test_a_report_with_the_stores_password_is_masked(study, store_uri):
    uri = "postgresql://me:secret&word@host/mlflow"
    study = replace(study, header=replace(study.header, config={"tracking": {"uri": uri}}))
    (study.run_dir / "report.html").write_text(
        f"<p>{uri.replace('&', '&amp;')} and {json.dumps(uri)}</p>"
    )
    tracker = Mlflow(store_uri, "atlas", in_thread=True)
    tracker.start(study.header, study.run_dir)
    tracker.finish(study.summary)
    client = MlflowClient(store_uri)
    text = Path(client.download_artifacts(tracker.run_id, "report.html")).read_text()
    assert text.count("me:***@host") == 2
    assert "word" not in text


def test_the_trials_are_a_table_best_first(study):
    table = trial_table(study.header, study.trials)
    assert table["columns"] == [
        *("trial", "arm", "state", "objective", "max_hops", "graph_weight", "mode", "deep"),
        *("recall@10", "ndcg@10", "mrr@10", "seconds", "error"),
    ]
    # What breaks a constraint comes after all that does not, and what failed at the end.
    assert [cells[0] for cells in table["data"]] == [5, 1, 0, 4, 3, 2]
    assert table["data"][-1][-1] == "TimeoutError: no answer in 600 s"
