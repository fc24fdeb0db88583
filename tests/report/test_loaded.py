"""``tuner.load_study`` reads a study in any state, and says what it cannot read."""

from __future__ import annotations

import json
import warnings
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import tuner
from tuner.core.profile import Curve, Profile
from tuner.core.spent import Cost
from tuner.core.trial import IndexUse, Race, Trial, TrialState
from tuner.report.frames import curves_frame, trials_frame

# As tests/report/conftest.py weighs them.
RECALL, NDCG = 0.6, 0.4


def name_queries(run_dir, count):
    rows = ({"query_id": f"t{n}", "query": f"what is {n}?", "query_type": ""} for n in range(count))
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    (run_dir / "trials" / "queries.jsonl").write_text(text, encoding="utf-8")


def add_line(run_dir, **line):
    with (run_dir / "journal.jsonl").open("a", encoding="utf-8") as journal:
        journal.write(f"{json.dumps(line)}\n")


def test_a_finished_study_has_its_verdict_winner_best_and_baseline(study):
    run_dir = study()
    found = tuner.load_study(run_dir)
    assert found.state == "finished"
    assert found.verdict["outcome"] == "deploy"
    assert found.headline == found.verdict["sentence"]
    assert found.baseline.params["mode"] == "plain"
    assert found.winner.params == found.best.params == found.best_params
    assert found.winner.tune_objective == max(t.objective for t in found.trials)
    assert "33 trials" in repr(found)
    assert str(run_dir) in repr(found)


def test_what_was_loaded_cannot_be_changed(study):
    found = tuner.load_study(study())
    with pytest.raises(FrozenInstanceError):
        found.trials = ()
    found.verdict["outcome"] = "keep the baseline"
    assert found.verdict["outcome"] == "deploy"


def test_trials_are_rows_by_number_with_types_that_fit(study):
    found = tuner.load_study(study(failing=2, stopped=3))
    table = found.frame()
    assert table.index.name == "trial"
    assert list(table.index) == list(range(33))
    assert table["arm"].value_counts().to_dict() == {"tpe": 20, "grid": 12, "baseline": 1}
    assert table["params.max_hops"].dtype == np.int64
    assert table["params.graph_weight"].dtype == np.float64
    assert set(table["params.mode"]) == {"plain", "graph"}
    assert table["objective"].dtype == np.float64
    assert str(table["asked_at"].dtype).startswith("datetime64")
    failed = table[table["state"] == "failed"]
    assert list(failed.index) == [1, 2]
    assert failed["error"].tolist() == ["the index is on fire"] * 2
    assert failed[["objective", "metrics.recall@10", "seconds", "queries"]].isna().all(axis=None)
    stopped = table[table["state"] == "raced_out"]
    assert stopped["objective"].isna().all()
    assert stopped["estimate"].notna().all()
    assert set(stopped["queries"]) == {8.0}
    assert set(table.loc[table["state"] == "finished", "queries"]) == {40.0}


def test_a_parameter_that_a_trial_does_not_set_is_nan():
    trials = [
        Trial(0, "tpe", {"mode": "graph", "hops": 2, "deep": True}),
        Trial(1, "tpe", {"mode": "plain", "deep": False}),
        Trial(2, "tpe", {"mode": "plain", "deep": True}, asked_at=1.0),
    ]
    table = trials_frame(trials)
    assert table["params.hops"].dtype == np.float64
    assert table["params.hops"].isna().tolist() == [False, True, True]
    assert table["params.deep"].dtype == bool
    assert table["state"].tolist() == ["running"] * 3
    assert table["told_at"].isna().all()


def test_a_trial_says_what_its_evaluation_cost():
    done = {"state": TrialState.FINISHED, "objective": 0.5, "metrics": {"context_tokens": 500.0}}
    use = IndexUse("a", seconds=3.0, megabytes=1.0, documents=9, is_new=True)
    trials = [
        Trial(0, "tpe", {}, **done, index=use),
        Trial(1, "tpe", {}, **done),
        Trial(2, "tpe", {}, **{**done, "state": TrialState.SHARED}, shared_from=1),
        Trial(3, "tpe", {}, state=TrialState.FAILED, error="away"),
        Trial(
            4,
            "tpe",
            {},
            state=TrialState.RACED_OUT,
            metrics={"context_tokens": 1000.0},
            race=Race(queries=4, estimate=0.1, low=0.0, high=0.2),
        ),
    ]
    cost = Cost(per_query=0.01, per_1000_tokens=0.1, per_index=2.0)
    table = trials_frame(trials, queries=10, cost=cost)
    # 10 · 0.01 + 10 · 500 / 1000 · 0.1 = 0.6, with an index 2.6; 4 · 0.01 + 4 · 0.1 = 0.44
    assert table["cost"].tolist() == pytest.approx([2.6, 0.6, 0.0, np.nan, 0.44], nan_ok=True)
    assert table["queries"].tolist() == pytest.approx([10, 10, 0, np.nan, 4], nan_ok=True)


def test_values_by_query_are_queries_by_trials(study):
    run_dir = study(failing=1, queries=12)
    name_queries(run_dir, 12)
    found = tuner.load_study(run_dir)
    table = found.per_query("ndcg@10")
    assert table.shape == (12, 32)  # of the one that failed there are none
    assert table.index.tolist() == [f"t{n}" for n in range(12)]
    assert table.index.name == "query_id"
    assert table.columns.name == "trial"
    with np.load(run_dir / "trials" / "5.npz") as kept:
        assert table[5].to_numpy().tolist() == kept["ndcg@10"].tolist()
        both = RECALL * kept["recall@10"] + NDCG * kept["ndcg@10"]
    composite = found.per_query()
    assert composite[5].to_numpy() == pytest.approx(both)
    means = composite.mean().dropna()
    assert means.to_dict() == pytest.approx(found.frame()["objective"].dropna().to_dict())


def test_queries_of_a_study_that_did_not_name_them_are_numbered(study):
    run_dir = study(queries=6)
    assert tuner.load_study(run_dir).per_query().index.tolist() == [0, 1, 2, 3, 4, 5]
    name_queries(run_dir, 5)  # of another set: they are not said to be these
    assert tuner.load_study(run_dir).per_query().index.tolist() == [0, 1, 2, 3, 4, 5]


def test_an_unknown_metric_is_refused_with_the_nearest(study):
    with pytest.raises(tuner.InputError, match="did you mean 'ndcg@10'"):
        tuner.load_study(study()).per_query("ndgc@10")


def test_without_values_by_query_it_says_so(study):
    with pytest.raises(tuner.InputError, match="no values by query were kept of run directory"):
        tuner.load_study(study(keeps_values=False)).per_query()


def test_a_damaged_file_of_values_is_named_and_costs_its_trial_only(study):
    run_dir = study()
    (run_dir / "trials" / "4.npz").write_bytes(b"PK noise")
    (run_dir / "trials" / "queries.jsonl").write_text("{torn\n")
    with pytest.warns() as heard:
        table = tuner.load_study(run_dir).per_query()
    assert sorted(set(range(33)) - set(table.columns)) == [4]
    said = " ".join(str(one.message) for one in heard)
    assert "trials/4.npz" in said
    assert "trials/queries.jsonl:1" in said
    assert table.index.tolist() == list(range(40))


def test_damaged_answers_do_not_keep_the_rest_from_being_read(study):
    run_dir = study()
    (run_dir / "per_query.jsonl").write_text('{"query_id": "q1"}\n')
    found = tuner.load_study(run_dir)
    assert len(found.frame()) == 33
    with pytest.raises(tuner.InputError, match=r"per_query\.jsonl:1"):
        found.compared()


def test_a_damaged_journal_is_named_with_its_line(study):
    run_dir = study()
    journal = run_dir / "journal.jsonl"
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join([*lines[:5], "noise", *lines[5:]]) + "\n")
    with pytest.raises(tuner.InputError, match=r"journal\.jsonl:6"):
        tuner.load_study(run_dir)


def test_winner_and_baseline_stand_side_by_side(study):
    table = tuner.load_study(study()).compared()
    assert len(table) == 40
    assert table.loc["q3", "part"] == "holdout"
    change = table["winner.composite"] - table["baseline.composite"]
    assert table["change"].tolist() == pytest.approx(change.tolist())
    assert table.loc["q3", "winner.retrieved"][1] == "d1"
    assert table.loc["q3", "relevant"] == ["d1"]


def test_a_study_that_is_under_way_is_loaded_with_what_there_is(study):
    run_dir = study(state=None)
    found = tuner.load_study(run_dir)
    assert found.state == "unfinished"
    assert (found.winner, found.verdict) == (None, None)
    assert found.headline.startswith("Not finished")
    assert found.best.tune_objective == found.frame()["objective"].max()
    assert found.frame()["state"].tolist()[-1] == "running"
    assert found.compared().empty
    add_line(run_dir, event="note", kind="started", pid=2, host="here")
    with (run_dir / "journal.jsonl").open("a") as journal:
        journal.write('{"event": "told", "trial": ')  # its last line is being written
    assert len(tuner.load_study(run_dir).trials) == 33


def test_a_study_of_failures_has_no_best_parameters(tmp_path):
    def fails(params):
        raise ValueError("the index is on fire")

    space = {"x": {"type": "integer", "low": 0, "high": 4}}
    tuner.tune(fails, space, trials=3, run_dir=tmp_path / "run", progress=False)
    found = tuner.load_study(tmp_path / "run")
    assert (found.state, found.best, found.baseline) == ("failed", None, None)
    with pytest.raises(tuner.InputError, match=r"no trial succeeded.*the index is on fire"):
        _ = found.best_params
    table = found.frame()
    assert table["objective"].isna().all()
    assert table["error"].tolist() == ["ValueError: the index is on fire"] * 3


def test_curves_of_free_parameters_are_a_table(study):
    curve = Curve("graph_weight", (0.0, 0.5, 1.0), (0.2, 0.6, 0.4), (0.05, 0.0, None))
    profile = Profile({"max_hops": 1}, 1234, 0.6, (curve,))
    table = curves_frame(Trial(0, "tpe", {"max_hops": 1, "graph_weight": 0.5}, profile=profile))
    assert table["parameter"].tolist() == ["graph_weight"] * 3
    assert table["value"].tolist() == [0.0, 0.5, 1.0]
    assert table["objective"].tolist() == [0.2, 0.6, 0.4]
    assert table["error"].tolist() == pytest.approx([0.05, 0.0, np.nan], nan_ok=True)
    found = tuner.load_study(study())  # in which none is free
    assert found.curves().empty
    assert list(found.curves()) == ["parameter", "value", "objective", "error"]
    with pytest.raises(tuner.InputError, match="there is no trial 99"):
        found.curves(99)


def test_what_is_no_study_is_refused(tmp_path):
    with pytest.raises(tuner.InputError, match="is not a run directory"):
        tuner.load_study(tmp_path)
    with pytest.raises(tuner.InputError, match="is not a run directory"):
        tuner.load_study("runs/nowhere")


def test_nothing_is_written_or_said_where_all_is_well(study):
    run_dir = study()
    before = {path: path.stat().st_mtime_ns for path in run_dir.rglob("*")}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = tuner.load_study(run_dir)
        found.frame(), found.per_query(), found.compared(), found.curves()
    assert {path: path.stat().st_mtime_ns for path in run_dir.rglob("*")} == before
