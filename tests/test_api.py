"""``tuner.tune``: any function from parameters to metrics, from Python."""

from __future__ import annotations

import io
import json
import re
import shutil
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tuner
from tuner.core.errors import InputError
from tuner.core.journal import read_journal
from tuner.core.trial import TrialState

SPACE = {
    "graph_weight": {"type": "real", "low": 0.0, "high": 1.0},
    "max_hops": {"type": "integer", "low": 1, "high": 4},
}

X = {"x": {"type": "real", "low": 0.0, "high": 1.0}}


def quality(params):
    """Best at graph_weight 0.6 and max_hops 2."""
    return 1.0 - abs(params["graph_weight"] - 0.6) - 0.1 * abs(params["max_hops"] - 2)


def test_a_number_is_the_objective():
    study = tuner.tune(quality, SPACE, backends=["tpe"], trials=30, seed=1)
    assert len(study.trials) == 30
    assert study.best.objective == max(trial.objective for trial in study.trials)
    assert study.best_params == study.best.params
    assert study.best.objective > 0.8
    assert study.journal is None


def test_a_mapping_is_weighed_by_the_default_weights():
    study = tuner.tune(
        lambda params: {"recall": 0.8, "mrr": 0.6, "ndcg": 0.5},
        SPACE,
        backends=["random"],
        trials=2,
    )
    # .5 * .8 + .3 * .6 + .2 * .5 = .68
    assert study.best.objective == pytest.approx(0.68)


def test_own_weights():
    study = tuner.tune(
        lambda params: {"recall": 0.8, "speed": 0.2},
        SPACE,
        backends=["random"],
        trials=2,
        maximize={"recall": 3, "speed": 1},
    )
    assert study.best.objective == pytest.approx((3 * 0.8 + 0.2) / 4)


def test_several_backends_with_budgets_of_their_own_run_side_by_side():
    study = tuner.tune(quality, SPACE, backends={"grid": 9, "random": 5, "tpe": 4})
    arms = [trial.arm for trial in study.trials]
    assert arms.count("random") == 5
    assert arms.count("tpe") == 4
    assert 4 <= arms.count("grid") <= 9  # the largest even grid that fits the budget
    assert arms.index("tpe") < 4
    assert {standing.arm for standing in study.summary.arms} == {"grid", "random", "tpe"}


def test_a_failing_evaluation_costs_its_own_trial():
    def sometimes(params):
        if params["max_hops"] == 3:
            raise ValueError("no third hop")
        return quality(params)

    study = tuner.tune(sometimes, SPACE, backends=["random"], trials=20)
    failed = [trial for trial in study.trials if trial.state is TrialState.FAILED]
    assert failed
    assert {trial.error for trial in failed} == {"ValueError: no third hop"}
    assert all(trial.objective is None for trial in failed)
    assert study.best is not None


@pytest.mark.parametrize("answer", [None, "good", [1], {"recall": "high"}, float("nan")])
def test_an_answer_that_is_no_number_fails_the_trial(answer):
    study = tuner.tune(lambda params: answer, SPACE, backends=["random"], trials=2)
    assert study.best is None
    assert all(trial.state is TrialState.FAILED for trial in study.trials)
    with pytest.raises(tuner.InputError, match="no trial succeeded"):
        _ = study.best_params


def test_run_dir_keeps_every_trial_and_a_second_call_goes_on(tmp_path):
    calls = []

    def counted(params):
        calls.append(params)
        return quality(params)

    options = {"backends": ["random"], "trials": 8, "run_dir": tmp_path / "run"}
    first = tuner.tune(counted, SPACE, **options)
    lines = first.journal.read_text().splitlines()
    assert sum(json.loads(line)["event"] == "told" for line in lines) == 8
    again = tuner.tune(counted, SPACE, **options)
    assert len(calls) == 8
    assert [trial.params for trial in again.trials] == [trial.params for trial in first.trials]
    with pytest.raises(tuner.InputError, match="seed"):
        tuner.tune(counted, SPACE, seed=99, **options)


def test_a_call_with_more_trials_goes_on_as_one_long_study(tmp_path):
    options = {"backends": ["tpe"], "run_dir": tmp_path / "run"}
    tuner.tune(quality, SPACE, trials=6, **options)
    longer = tuner.tune(quality, SPACE, trials=14, **options)
    long = tuner.tune(quality, SPACE, trials=14, backends=["tpe"])
    assert [(t.params, t.objective) for t in longer.trials] == [
        (t.params, t.objective) for t in long.trials
    ]
    both = tuner.tune(quality, SPACE, backends={"tpe": 14, "random": 3}, run_dir=tmp_path / "run")
    assert [trial.arm for trial in both.trials[14:]] == ["random"] * 3
    with pytest.raises(tuner.InputError, match="the arm 'tpe' had 14 trials and has 6 now"):
        tuner.tune(quality, SPACE, trials=6, **options)


def test_a_search_that_gains_nothing_more_ends_and_says_why():
    options = {"backends": ["random"], "trials": 90, "progress": False}
    short = tuner.tune(lambda params: params["x"], X, stop={"gain_below": 0.5}, **options)
    whole = tuner.tune(lambda params: params["x"], X, **options)
    assert 61 < len(short.trials) < len(whole.trials) == 90
    assert short.trials[-1].params == whole.trials[len(short.trials) - 1].params
    assert "would hardly gain 0.5 (stop.gain_below)" in short.summary.ended_by
    assert (short.summary.state, whole.summary.ended_by) == ("finished", "")
    with pytest.raises(tuner.InputError, match=r"stop.gain: unknown key"):
        tuner.tune(lambda params: params["x"], X, stop={"gain": 0.5}, **options)


def test_known_points_are_learnt_from():
    known = [{"graph_weight": w / 10, "max_hops": h} for h in (1, 2, 3) for w in (1, 3, 5, 7, 9)]
    options = {"backends": ["tpe"], "trials": 5, "progress": False}
    told = tuner.tune(quality, SPACE, start_from=known, **options).trials[len(known) :]
    untold = tuner.tune(quality, SPACE, **options).trials
    assert [trial.arm for trial in told] == ["tpe"] * 5
    # Five trials are all spread points where nothing is known. Measured: 0.87 and 0.65.
    assert np.mean([t.objective for t in told]) > np.mean([t.objective for t in untold]) + 0.1


def test_known_points_come_first_and_each_once(tmp_path):
    known = [{"graph_weight": 0.25, "max_hops": 2}, {"graph_weight": 0.75, "max_hops": 1}]
    options = {"backends": ["tpe"], "trials": 4, "run_dir": tmp_path / "run"}
    study = tuner.tune(quality, SPACE, start_from=[*known, known[0]], **options)
    assert [trial.params for trial in study.trials[:2]] == known
    assert [trial.arm for trial in study.trials] == ["earlier"] * 2 + ["tpe"] * 4
    again = tuner.tune(quality, SPACE, start_from=known, **options)
    assert len(again.trials) == 6
    with pytest.raises(tuner.InputError, match="start_from: the study in run_dir began with"):
        tuner.tune(quality, SPACE, **options)
    with pytest.raises(tuner.InputError, match=r"start_from.1.graph_weight: 7 is outside"):
        tuner.tune(quality, SPACE, start_from=[known[0], {"graph_weight": 7, "max_hops": 1}])


def test_a_metric_that_the_default_weights_lack_is_answered_by_maximize():
    def measure(params):
        return {"recall": params["graph_weight"], "ndcg": 0.5}

    study = tuner.tune(measure, SPACE, backends=["random"], trials=2)
    assert "metric 'mrr' is missing" in study.summary.reason
    assert "maximize={'recall': 1.0}" in study.summary.reason
    weights = {"recall": 0.6, "ndcg": 0.4}
    best = tuner.tune(measure, SPACE, backends=["random"], trials=2, maximize=weights).best
    assert best.objective == pytest.approx(0.6 * best.params["graph_weight"] + 0.4 * 0.5)


def test_frame_has_a_row_a_trial():
    frame = tuner.tune(quality, SPACE, backends=["random"], trials=3).frame()
    assert len(frame) == 3
    assert {"trial", "arm", "state", "objective", "params.max_hops"} <= set(frame.columns)


def test_a_baseline_is_evaluated_first():
    baseline = {"graph_weight": 0.6, "max_hops": 2}
    study = tuner.tune(quality, SPACE, backends=["random"], trials=3, baseline=baseline)
    assert study.trials[0].arm == "baseline"
    assert study.summary.baseline.tune_objective == pytest.approx(1.0)


def test_parameters_as_objects():
    space = {"graph_weight": tuner.Real(0, 1), "max_hops": tuner.Integer(1, 4)}
    assert tuner.tune(quality, space, backends=["random"], trials=2).best is not None
    with pytest.raises(tuner.InputError, match="write all parameters as mappings"):
        tuner.tune(quality, {**space, "max_hops": SPACE["max_hops"]}, trials=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"backends": ["tp"]}, "unknown backend 'tp'; did you mean 'tpe'"),
        ({"backends": []}, "no backend"),
        ({"backends": {"tpe": 0}}, "trials of 'tpe': must be a whole number of at least 1, got 0"),
        ({"maximize": {"recall": 0}}, "sum to 0"),
        ({"maximize": "recall"}, "maximize: must weigh metrics by their names"),
        ({"maximize": ["recall", "mrr"]}, r"as {'recall': 1.0}; got \['recall', 'mrr'\]"),
        ({"maximize": {3: 1.0}}, "maximize: must weigh metrics by their names"),
        ({"execution": "thread"}, "execution.kind: unknown execution .*; did you mean 'threads'"),
        ({"execution": {"kind": "thread"}}, "execution.kind: unknown execution 'thread'"),
        ({"execution": {"kind": 3}}, "execution.kind: must be a name"),
        ({"execution": {"kind": "threads", "adress": "x"}}, "execution.adress: unknown option"),
        ({"execution": {"kind": "threads", "workers": 0}}, "execution.workers: .* 1 or more"),
        (
            {"execution": {"kind": "threads", "workers": 2}, "workers": 2},
            "execution.workers: stands beside the execution as well",
        ),
        ({"execution": {"kind": "inline", "trial_timeout_s": -1}}, "execution.trial_timeout_s"),
        ({"execution": {"kind": "dask"}}, "execution.address: this option is required"),
        ({"execution": {"kind": "dask", "address": "10.0.0.5"}}, "write tcp://host:8786"),
        ({"workers": 0}, "workers"),
        ({"space": {"x": (0, 1)}}, "write it as"),
    ],
)
def test_options_that_make_no_sense(change, message):
    with pytest.raises(tuner.InputError, match=message):
        tuner.tune(quality, **{"space": SPACE, "trials": 2, **change})


def test_plain_forms_of_options():
    study = tuner.tune(quality, SPACE, backends="random", trials=np.int64(2))
    assert len(study.trials) == 2
    assert len(repr(study)) < 1000


def test_an_execution_is_written_as_in_a_configuration():
    execution = {"kind": "threads", "workers": 2, "trial_timeout_s": 30}
    met = threading.Barrier(2, timeout=900)

    def together(params):
        met.wait()  # for the other worker
        return quality(params)

    study = tuner.tune(together, SPACE, backends=["random"], trials=4, execution=execution)
    assert [trial.error for trial in study.trials] == [None] * 4


@pytest.mark.slow
def test_worker_processes_take_functions_from_a_notebook():
    study = tuner.tune(
        lambda params: 1.0 - abs(params["graph_weight"] - 0.6),
        SPACE,
        backends=["random"],
        trials=4,
        workers=2,
        execution="processes",
    )
    assert study.summary.finished_trials == 4


def test_half_a_surrogate_pair_in_an_error_is_escaped_in_the_frame():
    def fails(params):
        raise ValueError("cannot read caf\udce9.txt")

    frame = tuner.tune(fails, SPACE, backends=["random"], trials=2).frame()
    assert list(frame["error"]) == [r"ValueError: cannot read caf\udce9.txt"] * 2


def test_each_trial_is_told_where_the_caller_is_in_the_order_of_ending():
    told = []
    study = tuner.tune(
        quality,
        SPACE,
        backends=["random"],
        trials=6,
        workers=2,
        execution="threads",
        on_trial=lambda trial: told.append((trial, threading.current_thread())),
    )
    assert {trial.number for trial, _ in told} == {trial.number for trial in study.trials}
    assert all(trial.is_told for trial, _ in told)
    assert {thread for _, thread in told} == {threading.current_thread()}


def test_an_exception_in_on_trial_ends_the_study_which_can_go_on(tmp_path):
    class EnoughError(Exception):
        pass

    def stop_at_three(trial):
        told.append(trial.number)
        if len(told) == 3:
            raise EnoughError

    told = []
    options = {"backends": ["random"], "trials": 8, "run_dir": tmp_path / "run"}
    with pytest.raises(EnoughError):
        tuner.tune(quality, SPACE, on_trial=stop_at_three, **options)
    content = read_journal(tmp_path / "run" / "journal.jsonl")
    assert [trial.number for trial in content.trials.values() if trial.is_told] == told
    assert [note["state"] for note in content.notes if note["kind"] in ("ended", "summary")] == (
        ["interrupted", "interrupted"]
    )
    again = []
    study = tuner.tune(quality, SPACE, on_trial=lambda t: again.append(t.number), **options)
    assert study.summary.state == "finished"
    assert sorted(told + again) == list(range(8))


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("where", "progress"), [(Terminal, True), (Terminal, False), (None, True)])
def test_progress_is_shown_in_a_terminal_only_and_where_wanted(where, progress, monkeypatch, capfd):
    screen = io.StringIO() if where is None else where()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    tuner.tune(quality, SPACE, backends={"random": 4, "grid": 4}, progress=progress)
    shown = screen.getvalue()
    if where is None or not progress:
        assert shown == ""
    else:
        assert re.search(r"random .*4/4 best 0\.\d{4}", shown)
        assert re.search(r"grid .*4/4 best 0\.\d{4}", shown)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("has_folder", [True, False])
def test_a_service_that_goes_away_interrupts_the_study_with_a_warning(
    tmp_path, has_folder: bool
) -> None:
    answered: list[int] = []
    limit = 4

    def ask(params: dict) -> float:
        if len(answered) == limit:
            raise ConnectionRefusedError("nobody listens")
        answered.append(params["x"])
        return float(params["x"])

    space = {"x": {"type": "integer", "low": 1, "high": 12}}
    options = {"backends": ["grid"], "trials": 12, "run_dir": tmp_path if has_folder else None}
    how = "the same call goes on" if has_folder else "nothing is kept"
    with pytest.warns(UserWarning, match=f"nobody listens .5 evaluations in a row.; .*{how}"):
        study = tuner.tune(ask, space, **options)
    assert study.summary.state == "interrupted"
    assert "the system does not answer: " in study.summary.reason
    assert sum(trial.is_told for trial in study.trials) == 4
    if not has_folder:
        return
    limit = 12
    study = tuner.tune(ask, space, **options)
    assert study.summary.state == "finished"
    assert all(trial.is_scored for trial in study.trials)
    assert sorted(answered) == list(range(1, 13))


def test_tracking_shows_the_study_in_mlflow(tmp_path, fresh_store, written_by_a_thread):
    from mlflow import MlflowClient

    uri = f"sqlite:///{shutil.copy(fresh_store, tmp_path / 'mlflow.db')}"
    study = tuner.tune(
        quality, SPACE, backends=["random"], trials=3, run_dir=tmp_path / "run",
        tracking={"uri": uri, "experiment": "mine"}, progress=False,
    )  # fmt: skip
    client = MlflowClient(uri)
    (experiment,) = [one for one in client.search_experiments() if one.name == "mine"]
    runs = client.search_runs([experiment.experiment_id])
    trials = [run for run in runs if run.data.tags.get("tuner.role") == "trial"]
    assert len(trials) == 3
    run = client.get_run(study.mlflow_run_id)
    assert run.data.metrics["best_objective"] == pytest.approx(study.best.objective)


@pytest.mark.parametrize(
    ("tracking", "message"),
    [
        ({"url": "http://mlflow:5000"}, r"tracking\.url: unknown key; did you mean 'uri'"),
        ({"experiment": "mine"}, r"tracking: write it as 'http://mlflow:5000' or"),
        ("mlflow:5000", r"tracking: "),
        ("sqlite:///mlflow.db", r"tracking: needs run_dir as well"),
    ],
)
def test_tracking_that_cannot_be_is_refused_before_anything_is_evaluated(
    tmp_path, tracking, message
):
    folder = None if tracking == "sqlite:///mlflow.db" else tmp_path / "run"
    with pytest.raises(InputError, match=message):
        tuner.tune(pytest.fail, SPACE, trials=1, run_dir=folder, tracking=tracking)
    assert not (tmp_path / "run").exists()


def test_a_budget_shares_out_trials_and_ends_a_study_in_time(tmp_path: Path) -> None:
    space = {"x": {"type": "real", "low": 0.0, "high": 1.0}}
    few = tuner.tune(
        lambda params: params["x"], space, backends=["random", "tpe"], budget={"trials": 5}
    )
    assert sorted(Counter(trial.arm for trial in few.trials).values()) == [2, 3]
    late = tuner.tune(lambda params: params["x"], space, budget={"minutes": 1e-9}, run_dir=tmp_path)
    assert (late.summary.state, len(late.trials)) == ("finished", 1)
    assert late.summary.ended_by == "the budget of 0.0 s is used up"
    again = tuner.tune(
        lambda params: params["x"], space, budget={"minutes": 1e-9}, run_dir=tmp_path
    )
    assert len(again.trials) == 1


def test_more_trials_are_refused_where_the_minutes_are_used_up_and_nothing_is_amended(
    tmp_path: Path,
) -> None:
    space = {"x": {"type": "real", "low": 0.0, "high": 1.0}}

    def tune(**given: Any) -> tuner.TunedStudy:
        return tuner.tune(lambda params: params["x"], space, run_dir=tmp_path, **given)

    tune(trials=3, budget={"minutes": 1e-9})
    before = (tmp_path / "journal.jsonl").read_bytes()
    for budget, said in (
        ({"minutes": 1e-9}, "budget.minutes: used up: with one more trial and its verdict it"),
        ({"trials": 0}, "budget.trials: it is 0, so no trial is asked: leave it out"),
    ):
        with pytest.raises(InputError) as refused:
            tune(trials=6, budget=budget)
        assert said in str(refused.value)
        assert (tmp_path / "journal.jsonl").read_bytes() == before
    assert len(tune(trials=6).trials) == 6


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ({"minuts": 3}, "budget.minuts: unknown key; did you mean 'minutes'?"),
        ({"money": 3}, "budget.money: the function measures itself, so its queries are not known"),
        ({"minutes": -1}, "budget.minutes: should be greater than 0, got -1"),
        ({"minutes": 10**400}, "budget: a number is too large"),
        ({"minutes": 1e308}, "budget.minutes: should be less than or equal to 10000000"),
        ({"minutes": float("nan")}, "budget.minutes: "),
        ({"minutes": True}, "budget.minutes: "),
        ({"trials": -1}, "budget.trials: should be greater than or equal to 0"),
        ({"trials": 2.0}, "budget.trials: "),
        ({3: 4}, "budget.3: unknown key"),
        ("5", "budget='5': write a mapping, such as budget={'minutes': 30}"),
        ([5], "budget=[5]: write a mapping"),
    ],
)
def test_a_budget_that_cannot_be_is_refused(budget: Any, said: str) -> None:
    space = {"x": {"type": "real", "low": 0.0, "high": 1.0}}
    with pytest.raises(InputError) as refused:
        tuner.tune(lambda params: params["x"], space, budget=budget)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"stop": 0.002}, "stop=0.002: write a mapping, such as stop={'gain_below': 0.002}"),
        ({"stop": {3: 4}}, "stop.3: unknown key"),
        ({"stop": {}}, "stop.gain_below: this key is required"),
        ({"stop": {"gain_below": 0}}, "stop.gain_below: should be greater than 0, got 0"),
        ({"stop": {"gain_below": "a"}}, "stop.gain_below: should be a valid "),
        ({"stop": {"gain_below": 1, "within": 0}}, "stop.within: should be greater than or equal"),
        ({"stop": {"gain_below": 0.1, "within": 0}}, "within"),
        ({"start_from": {"x": 0.5}}, "start_from: write a list of sets of parameters"),
        ({"start_from": "best.yaml"}, "start_from: write a list of sets of parameters"),
        ({"start_from": ["best.yaml"]}, "start_from.0: write a set of parameters"),
        ({"start_from": [{"x": float("nan")}]}, "start_from.0.x: "),
        ({"start_from": [{"x": 0.5}, {"x": 2.0}]}, "start_from.1.x: "),
    ],
)
def test_odd_wishes_are_refused_in_words(given: Any, said: str) -> None:
    space = {"x": {"type": "real", "low": 0.0, "high": 1.0}}
    with pytest.raises(InputError) as refused:
        tuner.tune(pytest.fail, space, trials=2, **given)
    assert said in str(refused.value)
