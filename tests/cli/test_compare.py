"""The offline A/B test from the command line."""

from __future__ import annotations

import json

import pytest
import yaml

# What a study of another version of the data would say that it was tuned on.
ORIGIN = {
    "study": "old",
    "dataset": "data",
    "fingerprint": "another",
    "seed": 4,
    "holdout": 0.5,
    "stratify_by": ["query_type"],
}


def test_the_figures_are_those_of_evaluate(tuner_here):
    a, b = {"title_weight": 0.0, "top_k": 3}, {"title_weight": 4.0, "top_k": 12}
    done = tuner_here(
        "compare", "config.yaml", "--a", json.dumps(a), "--b", json.dumps(b), "--json"
    )  # fmt: skip
    record = json.loads(done.stdout)
    for params, side in ((a, "control_mean"), (b, "treatment_mean")):
        evaluated = json.loads(
            tuner_here(
                "evaluate", "config.yaml", "--params", json.dumps(params),
                "--queries", "holdout", "--json",
            ).stdout
        )  # fmt: skip
        for name in ("recall@5", "mrr@10", "context_tokens"):
            assert record["metrics"][name][side] == pytest.approx(evaluated["metrics"][name])
    tokens = record["metrics"]["context_tokens"]
    assert tokens["mean_difference"] == pytest.approx(8.0 * 9)
    assert (tokens["wins"], tokens["losses"]) == (0, 10)  # more tokens are worse


def test_a_run_directory_is_compared_with_the_baseline(tuner_here):
    tuner_here("run", "config.yaml", "--quiet")
    (run_dir,) = tuner_here.runs()
    done = tuner_here("compare", "config.yaml", "--b", str(run_dir))
    assert done.stdout.startswith("A  title_weight=1 top_k=10")
    assert "B less A" in done.stdout
    assert "market" in done.stdout


def test_a_configuration_does_not_differ_from_itself(tuner_here):
    same = '{"title_weight": 1.0, "top_k": 10}'
    done = tuner_here("compare", "config.yaml", "--a", same, "--b", same)
    assert "Keep A: A and B are the same." in done.stdout
    assert "paired t-test with degrees of freedom by the kurtosis" in done.stdout
    # Nothing was decided, so the held-out queries are as fresh as before.
    assert not list(tuner_here.folder.glob("runs/holdouts.jsonl"))


def test_queries_that_b_was_tuned_on_are_said_to_flatter_it(tuner_here):
    tuner_here("run", "config.yaml", "--quiet")
    (run_dir,) = tuner_here.runs()
    best = str(run_dir / "best.yaml")
    tuned_on = yaml.safe_load((run_dir / "best.yaml").read_text())["tuned_on"]
    assert tuned_on["study"] == "small"
    assert (tuned_on["seed"], tuned_on["holdout"]) == (3, 0.5)

    def remarks(*options):
        done = tuner_here("compare", "config.yaml", "--b", best, "--json", *options)
        return json.loads(done.stdout)["remarks"]

    assert remarks() == []
    (tuned,) = remarks("--queries", "tune")
    assert tuned.startswith(
        "all these 10 queries were among those that B was tuned on (study small"
    )
    (both,) = remarks("--queries", "all")
    assert both.startswith("10 of these 20 queries")
    (other,) = remarks("--set", "study.seed=4")
    assert "of these 10 queries were among those that B was tuned on" in other
    a, b = remarks("--a", best, "--queries", "tune")
    assert ("that A was tuned on" in a, "that B was tuned on" in b) == (True, True)
    done = tuner_here("compare", "config.yaml", "--b", str(run_dir), "--queries", "tune")
    assert "All these 10 queries were among those that B was tuned on" in done.stdout


def test_a_baseline_that_was_tuned_on_held_out_queries_is_said_to_be_flattered(tuner_here):
    tuner_here("run", "config.yaml", "--quiet")
    (first,) = tuner_here.runs()
    tuner_here.edit("baseline: {title_weight: 1.0, top_k: 10}", f"baseline: {first}")

    def flattered(record):
        return [one for one in record["remarks"] if "that the baseline was tuned on" in one]

    same = tuner_here("run", "config.yaml", "--json", "--name", "same")
    assert flattered(json.loads(same.stdout)) == []  # its tune queries are tuned on again
    other = ("config.yaml", "--set", "study.seed=4")
    b = ("--b", '{"title_weight": 4.0, "top_k": 2}', "--json")
    (compared,) = json.loads(tuner_here("compare", *other, *b).stdout)["remarks"]
    assert "of these 10 queries were among those that A was tuned on" in compared
    expected = compared.replace("these", "the held-out").replace(
        "that A was", "that the baseline was"
    )
    run = json.loads(tuner_here("run", *other, "--name", "moved", "--json").stdout)
    assert flattered(run) == [expected]
    resumed = json.loads(tuner_here("resume", run["run_dir"], "--json").stdout)
    assert flattered(resumed) == [expected]
    shown = tuner_here("resume", run["run_dir"]).stdout
    assert " ".join(expected.split()) in " ".join(shown.split())


def test_a_hand_edited_origin_of_the_baseline_costs_no_run(tuner_here):
    best = {"params": {"title_weight": 1.0, "top_k": 9}}
    for origin in (
        "yesterday",
        {"study": 1},
        {**ORIGIN, "holdout": "half"},
        {**ORIGIN, "seed": []},
    ):
        text = yaml.safe_dump({**best, "tuned_on": origin})
        (tuner_here.folder / "old.yaml").write_text(text, encoding="utf-8")
        again = (
            "config.yaml",
            "--set",
            "baseline=old.yaml",
            "--set",
            "backends=[{kind: random, trials: 1}]",
        )
        record = json.loads(tuner_here("run", *again, "--json").stdout)
        assert record["state"] == "finished"
        assert not any("tuned on" in remark for remark in record["remarks"])


def test_a_new_version_of_the_data_leaves_open_what_b_was_tuned_on(tuner_here):
    tuner_here("run", "config.yaml", "--quiet")
    (run_dir,) = tuner_here.runs()
    corpus = tuner_here.folder / "data" / "corpus.jsonl"
    corpus.write_text(corpus.read_text().replace("is old", "is rather old"))
    done = tuner_here("compare", "config.yaml", "--b", str(run_dir))
    assert "B was tuned on another version of data" in done.stdout


def test_other_held_out_queries_are_no_fresh_ones(tuner_here):
    b = '{"title_weight": 3.0, "top_k": 4}'
    tuner_here("compare", "config.yaml", "--b", b)
    done = tuner_here("compare", "config.yaml", "--b", b, "--set", "study.seed=4", "--json")
    verdict = json.loads(done.stdout)["verdict"]
    assert 0 < verdict["seen_before"] < 10  # the other half of 20, drawn anew
    assert verdict["looks"] == 1
    assert (
        f"({verdict['seen_before']} of the 10 held-out queries were looked at"
        in (verdict["sentence"])
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "--b"),
        (("--b", "{"), "--b is not valid JSON"),
        (("--b", ""), "--b is empty; write for example"),
        (("--b", "[1]"), "--b must be a JSON object of parameters, got a list"),
        (("--b", "data"), "holds no best.yaml"),
        (("--b", '{"top_n": 3}'), "did you mean 'top_k'"),
        (("--b", "{}", "--a", "nowhere.yaml"), "no such file"),
    ],
)
def test_wrong_input(tuner_here, arguments, expected):
    assert expected in tuner_here("compare", "config.yaml", *arguments, code=2).stderr
