"""tuner plan: how many queries show which difference, by an earlier run or by a guess."""

from __future__ import annotations

import json

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower

from tuner.core.journal import read_journal, read_per_query
from tuner.evaluation.objective import composite_values
from tuner.run.query_plan import Spread, plan_queries
from tuner.run.side_by_side import read_side_by_side
from tuner.stats import minimum_detectable_difference, queries_needed


def planned(tuner_here, *arguments):
    return json.loads(tuner_here("plan", *arguments, "--json").stdout)


def test_without_any_spread_effects_are_in_standard_deviations(tuner_here):
    record = planned(tuner_here)
    by_effect = {one["effect_size"]: one["queries"] for one in record["needed"]}
    assert (by_effect[0.2], by_effect[0.5], by_effect[0.8]) == (199, 34, 15)
    shown = {one["queries"]: one["effect_size"] for one in record["detectable"]}
    # The published figures for 50, 100, 200 and 500 pairs.
    assert [round(shown[n], 3) for n in (50, 100, 200, 500)] == [0.404, 0.283, 0.199, 0.126]
    assert record["spread"] is None
    assert {one["difference"] for one in (*record["needed"], *record["detectable"])} == {None}


def test_a_guess_with_a_share_held_out_an_alpha_and_a_power(tuner_here):
    record = planned(
        tuner_here, "--sd", "0.12", "--holdout", "0.4", "--effect", "0.03", "--queries", "80",
        "--power", "0.9", "--alpha", "0.01",
    )  # fmt: skip
    (needed,), (shown,) = record["needed"], record["detectable"]
    test = TTestPower()
    expected = test.solve_power(effect_size=0.25, alpha=0.01, power=0.9)
    assert needed["queries"] == np.ceil(expected)
    assert needed["to_label"] == np.ceil(needed["queries"] / 0.4)
    found = test.solve_power(nobs=80, alpha=0.01, power=0.9)
    assert shown["effect_size"] == pytest.approx(found, rel=1e-4)
    assert shown["difference"] == pytest.approx(0.12 * found, rel=1e-4)


@pytest.fixture
def run_dir(tuner_here):
    """Run a study in which the weight of titles decides for some of the cities, by how much."""
    corpus = tuner_here.folder / "data" / "corpus.jsonl"
    text = corpus.read_text()
    for city in ("Oslo", "Paris", "Quito", "Accra", "Rome"):
        text = text.replace(f"of {city} is old", "here is old")
    corpus.write_text(text)
    tuner_here.edit("{title_weight: 1.0, top_k: 10}", "{title_weight: 0.0, top_k: 10}")
    tuner_here("run", "config.yaml", "--quiet")
    (found,) = tuner_here.runs()
    return found


def test_the_spread_of_an_earlier_run_is_that_of_its_winner_against_its_baseline(
    tuner_here, run_dir
):
    changes = [row.change for row in read_side_by_side(run_dir)]
    deviation = np.std(changes, ddof=1)
    assert deviation > 0.0
    record = planned(tuner_here, str(run_dir))
    spread = record["spread"]
    assert spread["standard_deviation"] == pytest.approx(deviation)
    assert spread["source"] == "winner against baseline on 10 held-out queries of small"
    assert (spread["queries"], spread["held_out_share"]) == (10, 0.5)
    for one in record["needed"]:
        expected = queries_needed(one["difference"], deviation)
        assert (one["queries"], one["to_label"]) == (expected, 2 * expected)
    shown = {one["queries"]: one["difference"] for one in record["detectable"]}
    assert shown[10] == pytest.approx(minimum_detectable_difference(10, deviation))
    words = tuner_here("plan", str(run_dir)).stdout
    assert f"a standard deviation of {deviation:.4g} (winner against baseline on 10" in words
    assert "to label, 50 % held out" in words


def test_where_the_baseline_won_its_trials_tell_the_spread(tuner_here, run_dir):
    (run_dir / "per_query.jsonl").unlink()
    spread = planned(tuner_here, str(run_dir))["spread"]
    assert "trials against the baseline on 10 tune queries, the median" in spread["source"]
    found = []
    content = read_journal(run_dir / "journal.jsonl")
    values = utilities_of(run_dir, content)
    base = next(trial.number for trial in content.trials.values() if trial.arm == "baseline")
    for number, composite in values.items():
        if number != base and np.ptp(composite - values[base]) > 0.0:
            found.append(np.std(composite - values[base], ddof=1))
    assert spread["standard_deviation"] == pytest.approx(np.median(found))


def utilities_of(run_dir, content):
    weights = content.header.objective["maximize"]
    return {
        number: composite_values(per_query, weights)
        for number in content.trials
        if (per_query := read_per_query(run_dir / "journal.jsonl", number))
    }


def test_what_a_system_moves_by_is_not_planned_away():
    still = Spread(0.1, "a guess")
    moving = Spread(0.1, "a run", run_shift=0.01)
    level = {"alpha": 0.05, "power": 0.8}
    plans = [plan_queries(one, effects=[0.02, 0.1], **level) for one in (still, moving)]
    assert [one.needed[0].queries for one in plans] == [199, None]  # 2.8 * .01 > .02
    assert plans[1].needed[1].queries > plans[0].needed[1].queries
    # sqrt(.0198^2 + (2.8 * .01)^2), with .0198 the least without the movement
    shown = [one.detectable[3].difference for one in plans]
    assert shown[1] == pytest.approx(np.hypot(shown[0], 2.8016 * 0.01), rel=1e-3)


def test_the_effect_size_stands_wherever_two_are_compared(tuner_here, run_dir):
    verdict = json.loads(tuner_here("resume", str(run_dir), "--json").stdout)["verdict"]
    changes = np.array([row.change for row in read_side_by_side(run_dir)])
    expected = changes.mean() / changes.std(ddof=1)
    assert verdict["effect_size"] == pytest.approx(expected)
    done = tuner_here("compare", "config.yaml", "--b", str(run_dir))
    table = done.stdout.splitlines()
    assert "d_z" in next(line for line in table if "B less A" in line).split()
    assert any(line.startswith("d_z: Cohen's d of paired values") for line in table)
    page = (run_dir / "report.html").read_text(encoding="utf-8")
    assert f"<td>{expected:+.2f}</td>" in page or f">{expected:+.2f}<" in page


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("nowhere",), "nowhere"),
        (("data",), "data"),
        (("--sd", "0"), "--sd"),
        (("--sd", "nan"), "--sd"),
        (("--sd", "0.1", "--power", "0.04"), "power=0.04 must be above alpha=0.05"),
        (("--power", "1"), "--power"),
        (("--sd", "0.1", "--effect", "0.00001"), "a d_z of 0.0001 is under 0.001"),
        (
            (
                "--effect",
                "0.0001",
            ),
            "a d_z of 0.0001 is under 0.001",
        ),
        (("--holdout", "0.5"), "--holdout needs a spread"),
        (("--queries", "1"), "--queries"),
    ],
)
def test_what_cannot_be_planned_is_said(tuner_here, arguments, expected):
    assert expected in tuner_here("plan", *arguments, code=2).stderr


def test_a_run_and_a_guess_are_not_given_together(tuner_here, tmp_path):
    done = tuner_here("plan", str(tmp_path), "--sd", "0.1", code=2)
    assert "give RUN_DIR or --sd, not both" in done.stderr


def test_a_run_without_values_by_query_asks_for_a_guess(tuner_here):
    tuner_here.edit("baseline: {title_weight: 1.0, top_k: 10}\n", "")
    tuner_here("run", "config.yaml", "--quiet")
    (found,) = tuner_here.runs()
    assert (
        "give their standard deviation with --sd" in tuner_here("plan", str(found), code=2).stderr
    )
