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


def seek(tuner_here, goals="[composite, context_tokens]"):
    tuner_here.edit("  price: {context_tokens_per_1000: 0.1}", f"  pareto: {goals}")


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
