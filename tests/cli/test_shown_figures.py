"""How tables show figures: p-values, shares, and one of anything."""

from __future__ import annotations

import numpy as np
import pytest

from tuner.cli.score_tables import legend
from tuner.cli.tables import print_guardrails, print_types
from tuner.core.shown import shown_p
from tuner.scoring.records import _comparison
from tuner.scoring.scores import RunComparison, sentence
from tuner.stats import compare_paired


@pytest.mark.parametrize(
    ("p_value", "shown"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (0.0, "<0.0001"),
        (0.00009, "<0.0001"),
        (0.0001, "0.0001"),
        (0.04321, "0.0432"),
    ],
)
def test_a_p_value_is_never_shown_as_zero(p_value, shown):
    assert shown_p(p_value) == shown


def test_guardrails_of_shares_are_shown_as_shares(capsys):
    test = {
        "is_non_inferior": False, "loss_bound": 0.209, "treatment": 981.0, "control": 839.0,
        "margin": 0.1,
    }  # fmt: skip
    print_guardrails({"context_tokens": test, "recall@10": {**test, "loss_bound": 0.02}})
    tokens, recall = capsys.readouterr().out.splitlines()
    assert "worse by at most 20.9 % (allowed 10 %)" in tokens
    assert "worse by at most 0.02 (allowed 0.1)" in recall


def test_one_query_of_a_type_is_said_in_the_singular(capsys):
    comparison = {"mean_difference": 0.1, "n": 1, "wins": 1, "losses": 0}
    print_types({"by_type": [{"group": "rare", "comparison": comparison, "adjusted_p": None}]})
    assert "+0.100 on 1 query (1 better, 0 worse)" in capsys.readouterr().out


def test_the_test_behind_a_p_value_is_named():
    for tests in (1, 6):
        assert "paired t-test with degrees of freedom by the kurtosis" in legend(tests)
    values = np.tile([0.5, 0.7, 0.2], 10)
    result = compare_paired(values, values[::-1], seed=0)
    one = RunComparison("b", "a", "recall@10", result, result.p_value)
    record = _comparison(one)
    assert record["degrees_of_freedom"] == result.degrees_of_freedom
    assert 2.0 <= record["degrees_of_freedom"] <= 29.0


def test_one_query_that_is_better_is_said_in_the_singular():
    values = np.linspace(0.2, 0.6, 30)
    better = values + 0.1 * (np.arange(30) == 3)
    result = compare_paired(better, values, seed=0)
    words = sentence([RunComparison("b", "a", "recall@10", result, result.p_value)])
    assert "better on 1 query, equal on 29, worse on 0" in words
    # d_z of a single difference among n is 1 / sqrt(n): (2.8 * sqrt(30))^2 = 237 queries
    assert "d_z +0.18, p = " in words
    assert "would take about 238 queries to show" in words
    little = values + np.tile([0.1, -0.099], 15)
    result = compare_paired(little, values, seed=0)
    words = sentence([RunComparison("b", "a", "recall@10", result, result.p_value)])
    assert "; more queries will hardly show one" in words


def test_check_cuts_what_is_too_long_to_be_read(run_here, tmp_path):
    arms = "".join(f"  - {{kind: random, trials: 1, name: a{i}}}\n" for i in range(2_000))
    (tmp_path / "c.yaml").write_text(
        "dataset: {path: 'builtin:atlas'}\n"
        "space: {graph_weight: {type: real, low: 0, high: 1}}\n"
        f"backends:\n{arms}"
    )
    done = run_here(tmp_path, "check", "c.yaml")
    assert done.returncode == 0, done.stderr
    assert "a0: 1, a1: 1" in done.stdout
    assert len(done.stdout) < 100_000
