"""Quality and cost side by side: a front instead of one best configuration."""

from __future__ import annotations

import json

import pytest

ATLAS = """\
study: {name: front, seed: 3}
dataset: {path: "builtin:atlas"}
space: {top_k: {type: integer, low: 3, high: 20}, max_hops: {type: integer, low: 1, high: 3}}
objective: {pareto: [composite, context_tokens]}
baseline: {top_k: 10, max_hops: 2}
backends: [{kind: random, trials: 6}, {kind: tpe, trials: 14}]
execution: {kind: inline}
tracking: null
"""


FREE = """\
study: {name: front, seed: 3}
dataset: {path: "builtin:atlas"}
space:
  top_k: {type: integer, low: 3, high: 20}
  graph_weight: {type: real, low: 0, high: 1}
  max_hops: {type: integer, low: 1, high: 4}
objective: {pareto: [composite, context_tokens]}
baseline: {top_k: 10, max_hops: 2, graph_weight: 0.5}
backends: [{kind: random, trials: 2}, {kind: gp, trials: 2}]
execution: {kind: inline}
tracking: null
"""


def told(run_dir):
    lines = (run_dir / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    events = [event for line in lines if (event := json.loads(line))["event"] == "told"]
    return {event["trial"]: (event["params"], event.get("profile")) for event in events}


def summary_of(run_dir):
    lines = (run_dir / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    (found,) = [one for line in lines if (one := json.loads(line)).get("kind") == "summary"]
    return found


def seek(tuner_here, goals="[composite, context_tokens]"):
    tuner_here.edit("  price: {context_tokens_per_1000: 0.1}", f"  pareto: {goals}")


@pytest.mark.slow
def test_the_front_is_printed_with_its_knee_and_written_down(tuner_here):
    (tuner_here.folder / "config.yaml").write_text(ATLAS, encoding="utf-8")
    done = tuner_here("run", "config.yaml")
    assert "Pareto front: " in done.stdout
    assert done.stdout.count("(knee)") == 1
    (run_dir,) = tuner_here.runs()
    events = [json.loads(line) for line in (run_dir / "journal.jsonl").read_text().splitlines()]
    (summary,) = [event for event in events if event.get("kind") == "summary"]
    goals = [tuple(point["goals"].values()) for point in summary["front"]]
    assert goals == sorted(goals, reverse=True)
    assert len(goals) >= 2
    # The same sentences everywhere, from the same record.
    said = [*(one["sentence"] for one in summary["goals"]), *summary["front_notes"]]
    assert [one["goal"] for one in summary["goals"]] == ["composite", "context_tokens"]
    assert len(summary["front_notes"]) == 1
    text = " ".join(done.stdout.split())
    page = (run_dir / "report.html").read_text(encoding="utf-8")
    for sentence in said:
        assert " ".join(sentence.split()) in text
        assert f"<li>{sentence}</li>" in page
    assert sum(point["is_knee"] for point in summary["front"]) == 1
    record = json.loads(tuner_here("run", "config.yaml", "--json").stdout)
    assert record["front"] == summary["front"]


@pytest.mark.parametrize(
    ("goals", "line"),
    [
        ("[composite]", "objective.pareto: a front needs two goals or more"),
        ("[composite, context_token]", "objective.pareto.1: unknown metric 'context_token'"),
    ],
)
def test_goals_that_cannot_be(tuner_here, goals, line):
    seek(tuner_here, goals)
    assert line in tuner_here("run", "config.yaml", code=2).stderr


def test_a_front_and_a_race_exclude_each_other(tuner_here):
    seek(tuner_here)
    tuner_here.edit("tracking: null", "racing: {}\ntracking: null")
    assert (
        "racing: a race is run for the objective" in tuner_here("run", "config.yaml", code=2).stderr
    )


def test_one_asked_setting_gives_many_points_of_the_front(tuner_here):
    (tuner_here.folder / "config.yaml").write_text(FREE, encoding="utf-8")
    done = tuner_here("run", "config.yaml")
    assert "free: top_k, graph_weight: every value is computed" in done.stderr
    (run_dir,) = tuner_here.runs()
    trials, front = told(run_dir), summary_of(run_dir)["front"]
    profiles = [p for _, p in trials.values() if p is not None]
    assert all(len(profile["alternatives"]) >= 3 for profile in profiles)
    numbers = [point["trial"] for point in front]
    assert len(numbers) > len(set(numbers))
    assert f"Pareto front: {len(front)} settings of {len(set(numbers))} of the trials" in (
        " ".join(done.stdout.split())
    )
    for point in front:
        params, profile = trials[point["trial"]]
        others = [] if profile is None else [one["params"] for one in profile["alternatives"]]
        assert point["params"] in [params, *others]
    page = (run_dir / "report.html").read_text(encoding="utf-8")
    assert "computed from their answers" in page
    (file,) = run_dir.rglob("quality-by-tokens.csv")
    rows = file.read_text(encoding="utf-8").splitlines()[1:]
    own = {json.dumps(profile["asked"]): profile for profile in profiles}  # equal ones are shared
    assert len(rows) == 1 + sum(1 + len(profile["alternatives"]) for profile in own.values())


@pytest.mark.slow
def test_a_front_of_free_parameters_is_the_same_wherever_and_however_often_it_runs(tuner_here):
    path = tuner_here.folder / "config.yaml"
    path.write_text(FREE, encoding="utf-8")
    tuner_here("run", "config.yaml")
    (run_dir,) = tuner_here.runs()
    trials, front = told(run_dir), summary_of(run_dir)["front"]
    for kind in ("threads", "processes"):
        tuner_here.edit("execution: {kind: inline}", f"execution: {{kind: {kind}, workers: 2}}")
        tuner_here("run", "config.yaml")
        other = tuner_here.runs()[-1]
        assert told(other) == trials
        assert summary_of(other)["front"] == front
        path.write_text(FREE, encoding="utf-8")
    journal = run_dir / "journal.jsonl"
    lines = journal.read_text(encoding="utf-8").splitlines(keepends=True)
    ends = [place for place, line in enumerate(lines) if '"told"' in line]
    journal.write_text("".join(lines[: ends[2] + 2]), encoding="utf-8")
    tuner_here("resume", str(run_dir))
    assert told(run_dir) == trials
    assert summary_of(run_dir)["front"] == front


def test_with_free_off_a_trial_is_one_point(tuner_here):
    (tuner_here.folder / "config.yaml").write_text(f"{FREE}free: off\n", encoding="utf-8")
    tuner_here("run", "config.yaml")
    (run_dir,) = tuner_here.runs()
    assert all(profile is None for _, profile in told(run_dir).values())
    numbers = [point["trial"] for point in summary_of(run_dir)["front"]]
    assert len(numbers) == len(set(numbers))
