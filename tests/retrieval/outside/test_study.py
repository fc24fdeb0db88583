"""A study over systems that fail in the middle of it: each fault costs its own trials only."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tuner.config import load_config
from tuner.core.trial import TrialState
from tuner.run.assembly import assemble
from tuner.run.folder import read_run
from tuner.run.planning import make_plan
from tuner.run.session import begin, reopen

FUNCTION = """
import os
def search(query, fault):
    if fault == "killed":
        os._exit(9)
    if fault == "raises" and "Rome" in query:
        raise ValueError("the index is on fire")
    return ["d0", "d1"]
"""
COMMAND = """
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["params"]["fault"] == "killed":
        os.kill(os.getpid(), 9)
    if asked["params"]["fault"] == "raises" and "Rome" in asked["query"]:
        raise ValueError("the index is on fire")
    print(json.dumps({"id": asked["id"], "results": ["d0", "d1"]}), flush=True)
"""
RETRIEVERS = {
    "function": {"kind": "function", "function": "failing_search:search"},
    "command": {"kind": "command", "command": [sys.executable, "failing_command.py"]},
}


@pytest.fixture
def folder(tmp_path, monkeypatch, queries, write_data) -> Path:
    (tmp_path / "failing_search.py").write_text(FUNCTION, encoding="utf-8")
    (tmp_path / "failing_command.py").write_text(COMMAND, encoding="utf-8")
    write_data({query.id: "d0" for query in queries})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("kind", RETRIEVERS)
def test_every_fault_costs_its_own_trial(folder, kind):
    config = {
        "dataset": {"path": "data"},
        "retriever": RETRIEVERS[kind],
        "space": {
            "fault": {
                "type": "categorical",
                "choices": ["killed", "none", "raises", "no", "nothing"],
            }
        },
        "objective": {"maximize": {"mrr@10": 1.0}},
        "backends": [{"kind": "grid", "trials": 5}, {"kind": "tpe", "trials": 5}],
        "execution": {"kind": "processes", "workers": 1},
        "tracking": None,
    }
    (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    loaded, source = load_config("config.yaml")
    assembly = assemble(loaded, source, make_plan(loaded, source), say=print)
    tuned = begin(assembly, say=print).run(on_event=lambda event: None, say=print)
    assert tuned.summary.state == "finished"
    content, _ = read_run(tuned.run_dir)
    trials = {trial.params["fault"]: trial for trial in content.trials.values()}
    assert {fault for fault, trial in trials.items() if trial.objective == 1.0} == {
        "none", "no", "nothing",
    }  # fmt: skip
    assert trials["killed"].state is trials["raises"].state is TrialState.FAILED
    reasons = {fault: trials[fault].error for fault in ("killed", "raises")}
    if kind == "function":
        assert "the worker process died" in reasons["killed"]
        assert "exit code 9" in reasons["killed"]
        assert "query 'q2': ValueError: the index is on fire" in reasons["raises"]
    else:
        assert "query 'q0': the command ended by SIGKILL" in reasons["killed"]
        assert "query 'q2': the command ended with exit code 1" in reasons["raises"]
        assert "ValueError: the index is on fire" in reasons["raises"]


LATER = """
from pathlib import Path
def search(query, order):
    if Path("broken").exists():
        raise ValueError("the index is on fire")
    return ["d1", "d0"] if order == "worse" else ["d0", "d1"]
"""


@pytest.mark.parametrize("holdout", [0.0, 0.5])
def test_a_system_that_fails_after_the_search_costs_the_verdict_and_not_the_result(folder, holdout):
    (folder / "later_search.py").write_text(LATER, encoding="utf-8")
    config = {
        "dataset": {"path": "data", "split": {"holdout": holdout}},
        "retriever": {"kind": "function", "function": "later_search:search"},
        "space": {"order": {"type": "categorical", "choices": ["worse", "better"]}},
        "objective": {"maximize": {"mrr@10": 1.0}},
        "baseline": {"order": "worse"},
        "verdict": {"guardrails": {"mrr@10": {"max_decrease": 0.1}}},
        "backends": [{"kind": "grid", "trials": 2}],
        "execution": {"kind": "inline", "workers": 1},
        "tracking": None,
    }
    (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    loaded, source = load_config("config.yaml")
    assembly = assemble(loaded, source, make_plan(loaded, source), say=print)
    session, said = begin(assembly), []

    def on_event(event):
        if session.study.is_done:
            (folder / "broken").touch()

    summary = session.run(on_event=on_event, say=said.append).summary
    assert (summary.state, summary.verdict) == ("finished", None)
    assert summary.winner.params == {"order": "better"}
    told = [line for line in said if line.startswith("no verdict: the ")]
    assert len(told) == 1
    assert "the index is on fire" in told[0]
    assert f"tuner resume {session.run_dir}" in told[0]
    assert (session.run_dir / "best.yaml").is_file()
    (folder / "broken").unlink()
    summary = reopen(session.run_dir, say=said.append).run(on_event=print, say=said.append).summary
    assert summary.verdict["outcome"] == "not enough queries"
