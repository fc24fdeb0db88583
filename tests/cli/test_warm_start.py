"""A study that starts from earlier ones: what it learns, what it does not pay, what it refuses."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml


@pytest.fixture
def tuner(tuner_here):
    return tuner_here


def told(run_dir: Path) -> list[dict]:
    lines = (run_dir / "journal.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == "told"]


def warm(tuner, *sources: str) -> None:
    tuner.edit("tracking:", f"start_from: {json.dumps(list(sources))}\ntracking:")


def test_earlier_trials_are_history_and_cost_nothing(tuner):
    tuner.edit("  - {kind: random, trials: 6}", "  - {kind: tpe, trials: 12}")
    tuner.edit("{kind: grid, trials: 6}", "{kind: grid, trials: 6, coarse: 6}")
    tuner("run", "config.yaml")
    (first,) = tuner.runs()
    warm(tuner, str(first))
    done = tuner("run", "config.yaml")
    assert f"start_from: 19 trials of small ({first}) to learn from" in done.stderr
    _, second = tuner.runs()
    earlier = [json.loads(line) for line in (second / "earlier.jsonl").read_text().splitlines()]
    assert [trial["trial"] for trial in earlier] == list(range(-len(earlier), 0))
    arms = [event["arm"] for event in told(second)]
    assert {arm: arms.count(arm) for arm in set(arms)} == {
        "baseline": 1,
        "earlier": 1,
        "tpe": 12,
    }  # the grid's points have all been tried
    # The best of the earlier trials competes again; nothing else is evaluated a second time.
    best = max(told(first), key=lambda event: event["objective"])
    again = {event["arm"]: event["params"] for event in told(second)}
    assert again["earlier"] == best["params"]
    known = [event["params"] for event in told(first)]
    assert not any(e["params"] in known for e in told(second) if e["arm"] in ("grid", "tpe"))
    # With a history, TPE needs no random start: the study is not the first one over again.
    (tuner.folder / str(first)).rename(tuner.folder / "moved")
    lines = (second / "journal.jsonl").read_text().splitlines(keepends=True)
    (second / "journal.jsonl").write_text("".join(lines[:17]))
    tuner("resume", str(second))
    assert [event["params"] for event in told(second)] == [
        json.loads(line)["params"] for line in lines if '"event":"told"' in line
    ]


@pytest.mark.slow
def test_an_mlflow_run_is_a_source_too(tuner, fresh_store, written_by_a_thread):
    uri = f"sqlite:///{shutil.copy(fresh_store, tuner.folder / 'mlflow.db')}"
    tuner.edit("tracking: null", f"tracking: {{uri: '{uri}', experiment: warm}}")
    record = json.loads(tuner("run", "config.yaml", "--json").stdout)
    warm(tuner, "0" * 32)
    assert "cannot get journal.jsonl of run 000" in tuner("run", "config.yaml", code=2).stderr
    tuner.edit("0" * 32, record["mlflow_run_id"])
    done = tuner("run", "config.yaml", "--json")
    assert "start_from: 13 trials of small" in done.stderr
    assert json.loads(done.stdout)["state"] == "finished"


def test_a_study_of_something_else_is_refused(tuner):
    tuner("run", "config.yaml")
    (first,) = tuner.runs()
    warm(tuner, str(first))
    config = (tuner.folder / "config.yaml").read_text(encoding="utf-8")
    for old, new, reason in (
        ("seed: 3", "seed: 4", "the split (seed or share of the holdout)"),
        ("high: 4.0", "high: 3.0", "the search space"),
        ('WordOverlap"}', 'WordOverlap", flavour: sour}', "the retriever or its index"),
        ("  price:", "  budget_tokens: 30\n  price:", "the budget of tokens"),
    ):
        (tuner.folder / "config.yaml").write_text(config, encoding="utf-8")
        tuner.edit(old, new)
        done = tuner("run", "config.yaml", code=2)
        assert reason in done.stderr
        assert "start_from.0: " in done.stderr
        assert tuner.runs() == [first]  # nothing was begun


def test_of_a_study_on_other_documents_the_best_are_asked_again(tuner):
    tuner("run", "config.yaml")
    (first,) = tuner.runs()
    (corpus,) = tuner.folder.rglob("corpus.jsonl")
    with corpus.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"_id": "new", "title": "News", "text": "nothing of note"}) + "\n")
    warm(tuner, str(first))
    done = tuner("run", "config.yaml")
    said = f"start_from: the data are others now: the best 5 of small ({first}) are asked again"
    assert said in done.stderr
    _, second = tuner.runs()
    trials = told(second)
    best = sorted(
        (e for e in told(first) if e["state"] == "finished" and e["arm"] != "baseline"),
        key=lambda event: (-event["objective"], event["trial"]),
    )
    again = [event["params"] for event in trials if event["arm"] == "earlier"]
    assert again == [event["params"] for event in best[:5]]
    # Resumed without what they came from, they are asked all the same.
    lines = (second / "journal.jsonl").read_text().splitlines(keepends=True)
    (second / "journal.jsonl").write_text("".join(lines[:6]))
    (tuner.folder / str(first)).rename(tuner.folder / "moved")
    tuner("resume", str(second))
    assert {str(e["params"]) for e in told(second)} == {str(e["params"]) for e in trials}


@pytest.mark.parametrize("source", ["runs/none", "0" * 32])
def test_what_is_no_study_is_refused(tuner, source):
    warm(tuner, source)
    for command in ("check", "run"):
        done = tuner(command, "config.yaml", code=2)
        assert f"'{source}' is neither a run directory" in done.stderr
        assert "there is no `tracking:` to look a run up in" in done.stderr


def test_known_points_are_asked_first_each_once_and_beside_the_trials(tuner):
    (tuner.folder / "known.yaml").write_text("params: {title_weight: 0.5, top_k: 4}\n")
    tuner.edit("  - {kind: grid, trials: 6}\n", "")
    known = "[{title_weight: 2.5, top_k: 7}, known.yaml, {top_k: 3}, {top_k: 7, title_weight: 2.5}]"
    tuner.edit("tracking:", f"start_from: {known}\ntracking:")
    checked = json.loads(tuner("check", "config.yaml", "--json").stdout)
    assert checked["trials"] == {"earlier": 3, "random": 6}
    asked = "10 trials (3 of them by start_from) of 10 queries, "
    assert checked["queries_to_ask"].startswith(asked)
    done = tuner("run", "config.yaml")
    assert "study small: earlier 3, random 6 trials on" in done.stderr
    assert re.search(r" s  earlier    3/3  best 0\.", done.stderr)
    assert "start_from: 3 known points are asked before the search" in done.stderr
    (run_dir,) = tuner.runs()
    events = told(run_dir)
    assert [event["arm"] for event in events] == ["baseline", *["earlier"] * 3, *["random"] * 6]
    # What a set leaves out is as in the baseline.
    assert [event["params"] for event in events[1:4]] == [
        {"title_weight": 2.5, "top_k": 7},
        {"title_weight": 0.5, "top_k": 4},
        {"title_weight": 1.0, "top_k": 3},
    ]


def test_best_yaml_and_a_run_directory_beside_each_other(tuner):
    tuner("run", "config.yaml")
    (first,) = tuner.runs()
    # Another space: its trials mean nothing here, but its winner can be asked.
    tuner.edit("high: 4.0", "high: 3.9")
    warm(tuner, str(first))
    refused = tuner("run", "config.yaml", code=2).stderr
    assert f"start_from: [{first / 'best.yaml'}]" in refused
    tuner.edit(str(first), str(first / "best.yaml"))
    tuner("run", "config.yaml")
    _, second = tuner.runs()
    winner = yaml.safe_load((first / "best.yaml").read_text())["params"]
    given = [event["params"] for event in told(second) if event["arm"] == "earlier"]
    assert given == [{name: winner[name] for name in ("title_weight", "top_k")}]
    tuner.edit(str(first / "best.yaml"), str(second))
    done = tuner("run", "config.yaml", "--set", f"start_from=[{second}, {{top_k: 2}}]")
    assert "start_from: 1 known point is asked before the search" in done.stderr
    assert f"trials of small ({second})" in done.stderr
    third = tuner.runs()[-1]
    given = [event["params"] for event in told(third) if event["arm"] == "earlier"]
    assert {"title_weight": 1.0, "top_k": 2} in given
    assert len(given) == 2  # and the best of the run


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (
            "{title_weight: 4.5}",
            "start_from.0.title_weight: 4.5 is outside what 'title_weight' can be",
        ),
        ("{top_k: 13}", "start_from.0.top_k: 13 is outside 1 .. 12"),
        ("{top_q: 3}", "start_from.0.top_q: the retriever has no parameter 'top_q'; did you mean"),
        (
            "{mode: slow}",
            "start_from.0.mode: it is 'slow' and not searched; in this study it is 'pl",
        ),
        ("other.yaml", "start_from.0: other.yaml: top_k: 40 is outside 1 .. 12"),
        ("none.yaml", "start_from.0: none.yaml: no such file"),
        ("{types: {}}", "start_from.0: a policy has parameters by query type"),
        ("3", "start_from.0: should be"),
    ],
)
def test_what_is_no_point_of_the_space_is_refused_by_its_key(tuner, known, message):
    (tuner.folder / "other.yaml").write_text("{title_weight: 1.0, top_k: 40, mode: plain}\n")
    tuner.edit("tracking:", f"start_from: [{known}]\ntracking:")
    for command in ("check", "run"):
        assert message in tuner(command, "config.yaml", code=2).stderr
    assert tuner.runs() == []  # nothing was begun


def test_the_old_name_is_read_still(tuner):
    tuner.edit("tracking:", "warm_start: [runs/none]\ntracking:")
    assert "start_from.0: 'runs/none' is neither" in tuner("run", "config.yaml", code=2).stderr
    tuner.edit("tracking:", "start_from: [{top_k: 3}]\ntracking:")
    refused = tuner("run", "config.yaml", code=2).stderr
    assert "warm_start: the old name of start_from, which is there too" in refused
    tuner.edit("warm_start: [runs/none]\n", "warm_start: []\n")
    tuner("run", "config.yaml", code=2)
