"""tuner evaluate: further metrics, several cut-offs, the spread of queries, and groups."""

from __future__ import annotations

import json

import pytest


def test_further_metrics_with_their_spread_and_by_query_type(tuner):
    done = tuner(
        "evaluate", "config.yaml", "--metric", "recall@1,3", "--metric", "coverage",
        "--by", "query_type", "--aggregates", "--json",
    )  # fmt: skip
    record = json.loads(done.stdout)
    assert {"recall@1", "recall@3", "recall@5", "coverage"} <= record["metrics"].keys()
    groups = record["by"]["query_type"]
    assert list(groups) == ["market", "river"]
    for name in ("recall@1", "coverage"):
        whole = record["aggregates"][name]
        assert whole["mean"] == pytest.approx(record["metrics"][name])
        assert whole["queries"] == 20
        assert sum(group[name]["queries"] for group in groups.values()) == 20
        means = [group[name]["mean"] for group in groups.values()]
        assert sum(means) / 2 == pytest.approx(whole["mean"])
        assert whole["min"] <= whole["quantiles"]["0.5"] <= whole["max"]


def test_the_same_as_tables(tuner):
    done = tuner("evaluate", "config.yaml", "--by", "query_type", "--aggregates")
    assert "median" in done.stdout
    lines = done.stdout.splitlines()
    assert sum(line.startswith(("market ", "river ")) for line in lines) == 2


def test_what_cannot_be_shown_is_said(tuner):
    done = tuner("evaluate", "config.yaml", "--by", "difficulty", code=2)
    assert "--by difficulty: no query of this data set has a difficulty" in done.stderr
    done = tuner("evaluate", "config.yaml", "--metric", "recall@1,0", "--metric", "ndgc@5", code=2)
    assert "recall@0" in done.stderr
    assert "did you mean 'ndcg@5'" in done.stderr
    done = tuner("evaluate", "config.yaml", "--metric", "path_recall", code=2)
    assert "'path_recall' needs evidences" in done.stderr
