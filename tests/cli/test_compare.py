"""The offline A/B test from the command line."""

from __future__ import annotations

import json

import pytest


def test_the_figures_are_those_of_evaluate(tuner):
    a, b = {"title_weight": 0.0, "top_k": 3}, {"title_weight": 4.0, "top_k": 12}
    done = tuner(
        "compare", "config.yaml", "--a", json.dumps(a), "--b", json.dumps(b), "--json"
    )  # fmt: skip
    record = json.loads(done.stdout)
    for params, side in ((a, "control_mean"), (b, "treatment_mean")):
        evaluated = json.loads(
            tuner(
                "evaluate", "config.yaml", "--params", json.dumps(params),
                "--queries", "holdout", "--json",
            ).stdout
        )  # fmt: skip
        for name in ("recall@5", "mrr@10", "context_tokens"):
            assert record["metrics"][name][side] == pytest.approx(evaluated["metrics"][name])
    assert record["metrics"]["context_tokens"]["mean_difference"] == pytest.approx(8.0 * 9)


def test_a_run_directory_is_compared_with_the_baseline(tuner):
    tuner("run", "config.yaml", "--quiet")
    (run_dir,) = tuner.runs()
    done = tuner("compare", "config.yaml", "--b", str(run_dir))
    assert done.stdout.startswith("A  title_weight=1 top_k=10")
    assert "B less A" in done.stdout
    assert "market" in done.stdout


def test_a_configuration_does_not_differ_from_itself(tuner):
    same = '{"title_weight": 1.0, "top_k": 10}'
    done = tuner("compare", "config.yaml", "--a", same, "--b", same)
    assert "Keep the baseline" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "--b"),
        (("--b", "{"), "--b is not valid JSON"),
        (("--b", "data"), "holds no best.yaml"),
        (("--b", '{"top_n": 3}'), "did you mean 'top_k'"),
        (("--b", "{}", "--a", "nowhere.yaml"), "no such file"),
    ],
)
def test_wrong_input(tuner, arguments, expected):
    assert expected in tuner("compare", "config.yaml", *arguments, code=2).stderr
