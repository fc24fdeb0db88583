"""The simulations behind the statistics: their populations are what they claim, and each runs."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tuner.stats import compare_paired

FOLDER = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("index")


@pytest.fixture
def populations(monkeypatch):
    # What the module sets for itself, set here so that it is undone afterwards.
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(variable, "1")
    module = importlib.import_module("populations")
    yield module
    for name in ("populations", "search_quality"):
        sys.modules.pop(name, None)


def population(module):
    values = np.array([[0.5, 0.2, 1.0], [0.5, 0.8, 1.0], [0.0, 0.2, 0.7], [0.6, 0.1, 1.0]])
    params = tuple({"row": row} for row in range(4))
    return module.Population("made up", params, values, np.ones(4), 100.0 * values)


def run(script, cache, tmp_path, *options):
    found = tmp_path / "found.json"
    environment = {**os.environ, "TUNER_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(FOLDER / script), *options, "--json", str(found)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "| --- |" in done.stdout
    return json.loads(found.read_text(encoding="utf-8"))


def test_equalised_configurations_have_the_baselines_mean(populations):
    made = population(populations)
    drawn = populations.equalised(made)(np.random.default_rng(0), 200_000)
    # Row 0 stays as it is: (.5 + .2 + 1) / 3 = .5667; 200,000 draws with sd < .5 are within .005.
    np.testing.assert_allclose(drawn.mean(axis=1), 1.7 / 3, atol=0.005)
    assert set(np.unique(drawn)) <= set(made.values.ravel())


def test_shuffled_configurations_share_each_querys_mean(populations):
    made = population(populations)
    drawn = populations.shuffled(made)(np.random.default_rng(0), 200_000)
    np.testing.assert_allclose(drawn.mean(axis=1), made.values.mean(), atol=0.005)


def test_alike_configurations_share_each_querys_mean_and_most_values(populations):
    drawn = populations.alike(population(populations))(np.random.default_rng(0), 200_000)
    made = population(populations).values
    np.testing.assert_allclose(drawn.mean(axis=1), made.mean(), atol=0.005)
    # Rows 2 and 3 have the value of row 1 on 90 % of the queries, and by chance on some others.
    assert np.mean(drawn[2] == drawn[1]) > 0.9
    assert np.mean(drawn[0] == drawn[1]) < 0.6


def test_equal_tokens_have_the_same_mean(populations):
    drawn = populations.equal_tokens(population(populations))(np.random.default_rng(0), 200_000)
    # (1.7 + 2.3 + .9 + 1.7) / 12 * 100 = 55
    np.testing.assert_allclose(drawn.mean(axis=1), 55.0, atol=0.5)


@pytest.mark.slow
def test_false_positives_runs(cache, tmp_path):
    rows = run(
        "false_positives.py",
        cache,
        tmp_path,
        *("--repetitions", "40", "--few-repetitions", "3", "--configurations", "20"),
        *("--queries", "100", "--few-queries", "8", "30", "--priced-queries", "60"),
    )
    free = [row for row in rows if "price" not in row]
    assert [row["queries"] for row in free] == [8, 30, 100] * 3
    assert all(row["not enough queries"] == 1.0 for row in free if row["queries"] == 8)
    priced = [row for row in rows if "price" in row]
    assert [row["configurations"] for row in priced] == [
        *("equal", "worse", "rarely worse"),
        *("equal", "worse") * 2,
    ]
    # 40 repetitions: a rate of 5 % would have to be off by four standard errors.
    assert all(row.get("deploy", 0.0) < 0.19 for row in priced)
    for row in free:
        # The best of 20 on the queries that chose it is above the baseline far more often than not.
        assert row["naive higher"] > row.get("deploy", 0.0)
        outcomes = ("deploy", "keep the baseline", "not enough queries")
        if row["is_held_out"]:
            assert sum(row.get(outcome, 0.0) for outcome in outcomes) == pytest.approx(1.0)


@pytest.mark.slow
def test_interval_coverage_runs(cache, tmp_path):
    found = run(
        "interval_coverage.py",
        cache,
        tmp_path,
        *("--repetitions", "400", "--bca-repetitions", "5", "--resamples", "100"),
        *("--configurations", "20", "--pairs", "4", "--queries", "200"),
    )["atlas"]
    assert len(found["one by one"]) == 6
    worst = max(sum(row["t_misses"]) for row in found["one by one"] if row["ties"] < 0.5)
    assert worst < 0.12
    assert np.mean(found["at random"][0]["covered"]) > 0.85


@pytest.mark.slow
def test_interval_candidates_runs(cache, tmp_path):
    found = run(
        "interval_candidates.py",
        cache,
        tmp_path,
        *("--repetitions", "200", "--resamples", "99"),
        *("--configurations", "20", "--pairs", "3", "--queries", "50"),
    )
    (normal,) = found["made up"]["normal"]["50"]
    for name, one in normal.items():
        assert 0.88 < one["coverage"] < 1.0, name
        assert 0.9 < one["width"] < 1.1, name
    for pair in found["atlas"]["rows"]["50"]:
        assert pair["t, kurtosis"]["coverage"] >= pair["t"]["coverage"]
        assert pair["t, kurtosis"]["width"] >= 1.0


@pytest.mark.slow
def test_optimism_runs(cache, tmp_path):
    rows = run(
        "optimism.py",
        cache,
        tmp_path,
        *("--repetitions", "60", "--corrected-repetitions", "10"),
        *("--configurations", "20", "--queries", "60"),
    )
    assert [row["values"] for row in rows] == ["real", "equalised", "shuffled"]
    for row in rows[1:]:
        assert row["bias"]["naive"] > abs(row["bias"]["corrected"])
        assert row["true gain"] == {"naive": 0.0, "holdout": 0.0, "corrected": 0.0}


@pytest.mark.slow
def test_real_runs(cache, tmp_path):
    (row,) = run("real.py", cache, tmp_path, "--seeds", "1")
    (verdict,) = row["verdicts"]
    assert verdict["comparison"]["n"] == 203  # half of atlas' 406 queries
    assert verdict["outcome"] in ("deploy", "keep the baseline", "not enough queries")


def test_opposite_configurations_have_the_baselines_mean(populations):
    crossfit = importlib.import_module("crossfit")
    try:
        drawn = crossfit.opposite(population(populations))(np.random.default_rng(0), 200_000)
        np.testing.assert_allclose(drawn.mean(axis=1), 1.7 / 3, atol=0.005)
        np.testing.assert_allclose(drawn[1] + drawn[2], 2.0 * drawn[0])
    finally:
        for name in ("crossfit", "real", "false_positives"):
            sys.modules.pop(name, None)


@pytest.mark.slow
def test_crossfit_runs(cache, tmp_path):
    rows = run(
        "crossfit.py",
        cache,
        tmp_path,
        *("--repetitions", "30", "--coverage-repetitions", "3", "--search-repetitions", "2"),
        *("--configurations", "20", "--queries", "60", "--priced-queries", "60"),
        *("--power-queries", "60", "--search-queries", "60", "--search-parts", "2"),
        *("--splits", "1"),
    )
    assert Counter(row["table"] for row in rows) == {
        "null": 5,
        "priced": 7,
        "power": 1,
        "coverage": 1,
        "searches": 2,
        "splits": 1,
    }
    for row in rows:
        for name, share in row.items():
            if name.endswith(", widened"):
                assert share <= row[name.replace("widened", "plain")]
    # 30 repetitions: a rate of 5 % would have to be off by four standard errors.
    assert all(row["2 parts, widened"] < 0.21 for row in rows if row["table"] == "null")


@pytest.mark.slow
def test_attempts_runs(cache, tmp_path):
    kept = tmp_path / "kept.jsonl"
    options = ("--repetitions", "60", "--to", str(kept), "--only", "duplicated", "judge")
    rows = run("attempts.py", cache, tmp_path, *options)
    assert [(row["attempt"], row["told"], row["queries"]) for row in rows] == [
        ("duplicated", False, 90),
        ("duplicated", False, 180),
        ("duplicated", True, 90),
        ("duplicated", True, 180),
        ("judge", False, 600),
    ]
    # 60 repetitions: a rate of 2.5 % would have to be off by five standard errors.
    assert all(row["halves"] < 0.13 for row in rows if row["told"] or row["attempt"] == "judge")
    assert all(row["halves"] > 0.2 for row in rows[:2])
    before = kept.read_text()
    assert run("attempts.py", cache, tmp_path, *options) == rows
    assert kept.read_text() == before  # nothing is computed twice


@pytest.mark.usefixtures("populations")
def test_nights_p_values_are_those_of_the_verdict():
    nights = importlib.import_module("nights")
    try:
        random = np.random.default_rng(0)
        rows = random.choice([0.0, 0.0, 0.3, -0.1, 1.0], size=(20, 60))
        rows[0] = 0.0
        found = nights.p_values(rows)
        alone = [compare_paired(row, 0 * row, seed=0, permutations=0, resamples=0) for row in rows]
        np.testing.assert_allclose(found, [one.p_value for one in alone], rtol=1e-9)
    finally:
        sys.modules.pop("nights", None)


@pytest.mark.slow
def test_nights_runs(cache, tmp_path):
    rows = run(
        "nights.py",
        cache,
        tmp_path,
        *("--years", "8", "--power-years", "1", "--configurations", "20"),
        *("--queries", "60", "--power-queries", "60"),
    )
    without, with_one = rows[:6], rows[6:]
    assert [row["values"] for row in without] == [
        *("equalised", "equalised", "shuffled", "shuffled", "best", "best")
    ]
    for row in without:
        # Of 8 years 4 would be a rate far over the 5 % that are allowed.
        assert row["alpha_of_look"] <= row["levels_of_looks"] < 4 / 8
        assert row["levels_of_looks"] <= row["5 % every night"]
        assert row["looks"] <= (20 if row["challengers"] == "again" else 365)
    assert len(with_one) == 24
    assert all(row["5 % every night"] >= row["levels_of_looks"] for row in with_one)


@pytest.mark.slow
def test_judge_runs(cache, tmp_path):
    found = run(
        "judge.py",
        cache,
        tmp_path,
        *("--repetitions", "40", "--configurations", "20", "--pairs", "4"),
        *("--only", "coverage", "nulls", "power", "judges"),
    )["atlas"]
    worth = {row["judge"]: row["worth"] for row in found["coverage"] if row["people"] == 100}
    assert worth["perfect"] > worth["kappa 0.7"] > worth["random"]
    assert np.mean([row["coverage"] for row in found["coverage"]]) > 0.9
    # 40 repetitions: a rate of 2.5 % would have to be off by six standard errors.
    assert all(row.get("deploy", 0.0) < 0.18 for row in found["nulls"])
    deploys = {row["labels"]: row["deploy"] for row in found["power"]}
    assert deploys["perfect"] > deploys["inverted"]
    # People's alone, 16 judges, one whose errors are each query's own, and 4 with another choice.
    assert len(found["judges"]) == 22


@pytest.mark.slow
def test_answers_runs_and_goes_on_where_it_was(cache, tmp_path):
    rows = tmp_path / "rows.jsonl"
    asked = ("--repetitions", "20", "--configurations", "12", "--rows", str(rows))
    found = run("answers.py", cache, tmp_path, *asked)
    assert np.mean([row["within"] for row in found["correlation"]]) > 0.85
    assert np.mean([row["between"] for row in found["correlation"]]) > 0.9
    gains = {(row["case"], row["queries"]): row["gains"] for row in found["composite"]}
    # 20 repetitions: a rate of 2.5 % would have to be off by six standard errors.
    assert all(gain < 0.25 for (case, _), gain in gains.items() if "@" not in case)
    assert np.mean([row["above"] + row["below"] for row in found["discount"]]) < 0.12
    before = rows.read_text()
    assert run("answers.py", cache, tmp_path, *asked) == found
    assert rows.read_text() == before
