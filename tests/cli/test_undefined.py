"""What is undefined, infinite or no whole text costs no study: it is shown, or refused at once."""

from __future__ import annotations

import json
import shutil

import pytest
import yaml

MEASURE = """
import math

def measure(params):
    if params["x"] == 3:
        raise OSError("cannot open 'na\\udcefve.txt'")
    return {"quality": params["x"], "odd": math.nan, "cost": math.inf, "sometimes": 1 / params["x"]}
"""

CONFIG = """
study: {name: odd, seed: 2}
retriever: {kind: function, function: "measure:measure"}
space: {x: {type: integer, low: 1, high: 5}}
objective: {maximize: {quality: 1.0}}
baseline: {x: 1}
backends: [{kind: grid, trials: 5}]
execution: {kind: inline}
tracking: null
"""


def no_constants(text: str):
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def odd(tuner_here):
    (tuner_here.folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    (tuner_here.folder / "measure.py").write_text(MEASURE, encoding="utf-8")
    return tuner_here


def test_a_study_whose_metrics_are_undefined_or_infinite_ends_with_its_result(odd):
    record = no_constants(odd("run", "config.yaml", "--json").stdout)
    (run_dir,) = odd.runs()
    assert record["best"]["tune_metrics"] == {
        "quality": 5.0,
        "odd": None,
        "cost": None,
        "sometimes": 0.2,
    }
    best = yaml.safe_load((run_dir / "best.yaml").read_text())
    assert best["params"] == {"x": 5}
    assert best["tune"]["odd"] is None
    for line in (run_dir / "journal.jsonl").read_text().splitlines():
        no_constants(line)
    (run_dir / "best.yaml").unlink()
    odd("resume", str(run_dir))
    assert yaml.safe_load((run_dir / "best.yaml").read_text()) == best
    odd("report", str(run_dir))
    shown = no_constants(odd("evaluate", "config.yaml", "--json", "--params", str(run_dir)).stdout)
    assert shown["metrics"]["odd"] is None


def test_half_a_surrogate_pair_costs_its_own_trial_only(odd):
    odd("run", "config.yaml")
    (run_dir,) = odd.runs()
    page = (run_dir / "report.html").read_text(encoding="utf-8")
    assert r"na\udcefve.txt" in page


def test_a_level_that_nobody_judged_is_refused_before_the_first_trial(tuner_here):
    tuner_here.edit("tracking:", "metrics: [recall_level3@5]\ntracking:")
    for command in ("check", "run"):
        done = tuner_here(command, "config.yaml", code=2)
        assert "metric 'recall_level3@5' is undefined for all 20 queries" in done.stderr
        assert "leave the metric out" in done.stderr
    assert not tuner_here.runs()


@pytest.mark.parametrize("part", ["tune", "holdout"])
def test_a_level_that_one_query_has_is_shown_where_it_is_defined(tuner_here, part):
    # The queries of either part are told apart by the split of the seed, so all are tried in turn.
    tuner_here.edit("tracking:", "metrics: [recall_level3@5]\ntracking:")
    qrels = tuner_here.folder / "data" / "qrels" / "test.tsv"
    lines = qrels.read_text().splitlines()
    for row in range(1, len(lines)):
        qrels.write_text("\n".join([*lines[:row], lines[row][:-1] + "3", *lines[row + 1 :]]) + "\n")
        record = no_constants(tuner_here("run", "config.yaml", "--json", "--quiet").stdout)
        best = record["baseline"]
        values = {"tune": best["tune_metrics"], "holdout": best["holdout_metrics"]}
        if values[part]["recall_level3@5"] is not None:
            other = "holdout" if part == "tune" else "tune"
            assert values[other]["recall_level3@5"] is None
            return
        shutil.rmtree(tuner_here.folder / "runs")
    raise AssertionError(f"no query of the part {part}")
