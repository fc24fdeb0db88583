"""Costly evaluations: trials that race, and answers that are asked for once."""

from __future__ import annotations

import json

import pytest

ATLAS = """\
study: {name: race, seed: 3}
dataset: {path: "builtin:atlas"}
space:
  graph_weight: {type: real, low: 0.0, high: 1.0}
  top_k: {type: integer, low: 3, high: 12}
baseline: {graph_weight: 0.6, top_k: 10}
backends: [{kind: random, trials: 12}, {kind: tpe, trials: 12}]
racing: {}
execution: {kind: inline}
tracking: null
free: off
"""


@pytest.fixture
def tuner(tuner_here, index_dir, monkeypatch):
    monkeypatch.setenv("TUNER_CACHE_DIR", str(index_dir))
    return tuner_here


def journal(run_dir):
    return [json.loads(line) for line in (run_dir / "journal.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_trials_that_fall_behind_are_stopped_and_counted(tuner):
    (tuner.folder / "config.yaml").write_text(ATLAS, encoding="utf-8")
    done = tuner("run", "config.yaml")
    (run_dir,) = tuner.runs()
    told = [event for event in journal(run_dir) if event["event"] == "told"]
    stopped = [event for event in told if event["state"] == "raced_out"]
    assert f"{len(stopped)} stopped early, behind the best" in done.stdout
    assert 0 < len(stopped) < len(told)
    for event in stopped:
        assert event["objective"] is None
        race = event["race"]
        # Of 203 tune queries, give or take what strata round.
        assert any(abs(race["queries"] - share * 203) < 2 for share in (0.1, 0.2, 0.3, 0.5, 0.7))
        assert race["low"] < race["estimate"] < race["high"]
    own = [event for event in told if event["shared_from"] is None]
    saved, total = sum(203 - event["race"]["queries"] for event in stopped), 203 * len(own)
    share = f"{saved / total:.0%}".replace("%", " %")
    line = f"{saved:,} of {total:,} query evaluations ({share}) saved by racing"
    assert line in done.stdout
    best = max(event["objective"] or 0 for event in told)
    assert all(event["race"]["estimate"] < best for event in stopped)


def test_racing_over_too_few_queries_says_so(tuner):
    tuner.edit("execution:", "racing: {rungs: [0.2]}\nexecution:")
    record = json.loads(tuner("run", "config.yaml", "--json").stdout)
    racing = record["racing"]
    assert (racing["saved"], racing["of"]) == (0, record["finished_trials"] * 10)
    assert "of 10 queries to tune on, no rung has the 10 that it takes" in racing["note"]
    done = tuner("run", "config.yaml")
    assert f"0 of {racing['of']:,} query evaluations (0 %) saved by racing" in done.stdout
    assert f"note           {racing['note']}" in done.stdout


@pytest.mark.parametrize(
    ("racing", "line"),
    [
        ("{rungs: [0.5, 0.2]}", "racing.rungs: [0.5, 0.2] must rise and lie between 0 and 1"),
        ("{rungs: []}", "racing.rungs: "),
        ("{stop_below: 1}", "racing.stop_below: "),
        ("{rung: [0.5]}", "racing.rung: unknown key; did you mean 'rungs'"),
    ],
)
def test_a_race_that_cannot_be(tuner, racing, line):
    text = ATLAS.replace("racing: {}", f"racing: {racing}")
    (tuner.folder / "config.yaml").write_text(text, encoding="utf-8")
    assert f"config.yaml:8: {line}" in tuner("run", "config.yaml", code=2).stderr


@pytest.mark.slow
def test_a_resumed_study_does_not_ask_again_what_was_answered(tuner):
    # 13 trials of 10 queries at 5 ms each: slow enough to be kept.
    tuner.edit("  top_k: {", "  mode: {type: categorical, choices: [slow]}\n  top_k: {")
    tuner.edit("top_k: 10}", "top_k: 10, mode: slow}")
    tuner("run", "config.yaml")
    (run_dir,) = tuner.runs()
    kept = sorted((run_dir / "answers").rglob("*.jsonl"))
    told = [event for event in journal(run_dir) if event["event"] == "told"]
    evaluated = [event for event in told if event["shared_from"] is None]
    assert len(kept) >= len(evaluated)  # those of the held-out queries are kept as well
    before = {path: path.read_bytes() for path in kept}
    # As if the run had been killed before it wrote the last trial down.
    lines = (run_dir / "journal.jsonl").read_text().splitlines(keepends=True)
    last = max(i for i, line in enumerate(lines) if '"event":"told"' in line)
    (run_dir / "journal.jsonl").write_text("".join(lines[:last]))
    tuner("resume", str(run_dir))
    # Nor the baseline, whose held-out queries were asked twice.
    assert any(path.parent.name == "again" for path in kept)
    after = sorted((run_dir / "answers").rglob("*.jsonl"))
    assert {path: path.read_bytes() for path in after} == before
    again = [event for event in journal(run_dir) if event["event"] == "told"]
    assert again[-1]["objective"] == told[-1]["objective"]
