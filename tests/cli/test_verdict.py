"""The verdict at the end of a run."""

from __future__ import annotations

import json

import pytest
import yaml


def test_the_run_ends_with_a_verdict_that_is_written_everywhere(tuner_here):
    done = tuner_here("run", "config.yaml", "--json")
    record = json.loads(done.stdout)
    verdict = record["verdict"]
    assert verdict["outcome"] in {"deploy", "keep the baseline", "not enough queries"}
    assert verdict["baseline"]["top_k"] == 10
    assert {group["group"] for group in verdict["by_type"]} == {"market", "river"}
    best = yaml.safe_load((tuner_here.folder / record["run_dir"] / "best.yaml").read_text())
    assert best["verdict"] == verdict["sentence"]
    assert best["params"] == {**record["winner"]["params"], "mode": "plain"}


def test_a_second_run_on_the_same_queries_is_reported_as_a_second_look(tuner_here):
    first = json.loads(tuner_here("run", "config.yaml", "--json").stdout)
    again = json.loads(tuner_here("run", "config.yaml", "--json").stdout)
    price = ("--set", "objective.price.context_tokens_per_1000=5")
    second = json.loads(tuner_here("run", "config.yaml", "--json", *price).stdout)
    assert first["verdict"]["looks"] == 0
    assert again["winner"]["params"] == first["winner"]["params"]
    assert again["verdict"]["looks"] == 0  # the same pair: nothing new is asked
    assert second["verdict"]["looks"] == 1
    assert "held-out queries were looked at once before" in second["verdict"]["sentence"]


def test_few_queries_are_not_split_unless_asked(tuner_here):
    tuner_here.edit(", split: {holdout: 0.5, stratify_by: [query_type]}", "")
    done = tuner_here("run", "config.yaml")
    assert "too few to hold some out" in done.stderr
    assert "none was held out; corrected for the search's luck" in done.stdout
    assert "market" in done.stdout.split("none was held out")[1]  # the breakdown by type


def test_copies_of_a_query_stay_on_one_side_and_count_as_one(tuner_here):
    queries = tuner_here.folder / "data" / "queries.jsonl"
    lines = [json.loads(line) for line in queries.read_text().splitlines()]
    assert "same text" not in tuner_here("check", "config.yaml").stderr
    rivers = [line for line in lines if line["query_type"] == "river"]
    for line, copy in zip(rivers[::2], rivers[1::2], strict=True):
        copy["text"] = line["text"].upper()
    queries.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = tuner_here("run", "config.yaml", "--json")
    for stderr in (done.stderr, tuner_here("check", "config.yaml").stderr):
        assert "note: queries with the same text stay on one side of the split" in stderr
        assert "'q0-river', 'q1-river'; " in stderr
        assert "; and 2 more like this" in stderr
    verdict = json.loads(done.stdout)["verdict"]
    (alone,) = (one for one in verdict["caveats"] if one["kind"] == "queries that count as one")
    # Half of 10 rivers are two or three pairs; a market stands alone.
    held, pairs = alone["figures"]["queries"], alone["figures"]["queries"] // 2 - 3
    assert alone["figures"]["count"] == verdict["comparison"]["n"] == held - (held - 5) // 2
    assert pairs in (1, 2)
    assert "count as one" in verdict["sentence"]


def test_one_query_is_refused_before_the_search(tuner_here):
    queries = tuner_here.folder / "data" / "queries.jsonl"
    qrels = tuner_here.folder / "data" / "qrels" / "test.tsv"
    for path, lines in ((queries, 1), (qrels, 2)):
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:lines]))
    for command in ("check", "run"):
        done = tuner_here(command, "config.yaml", "--set", "dataset.split.holdout=0", code=2)
        assert "the data set has 1 query" in done.stderr
    assert tuner_here.runs() == []


def test_a_study_of_few_queries_can_be_resumed_and_turned_into_a_policy(tuner_here):
    tuner_here.edit(", split: {holdout: 0.5, stratify_by: [query_type]}", "")
    tuner_here("run", "config.yaml", "--quiet")
    (run_dir,) = tuner_here.runs()
    tuner_here("resume", str(run_dir), "--quiet")
    done = tuner_here("policy", str(run_dir))
    assert "policy.yaml" in done.stdout
    assert "No verdict: no query was held out" in done.stdout
    assert json.loads(tuner_here("policy", str(run_dir), "--json").stdout)["no_verdict"]


def test_a_comparison_is_a_look_and_says_on_which_queries(tuner_here):
    b, c = '{"title_weight": 3.0, "top_k": 4}', '{"title_weight": 2.0, "top_k": 4}'
    first = tuner_here("compare", "config.yaml", "--b", b, "--json")
    assert "note: remembered as a look at the 10 held-out queries, in runs/" in first.stderr
    again = tuner_here("compare", "config.yaml", "--b", b, "--json")
    assert "note: no further look at the 10 held-out queries" in again.stderr
    turned = ("--a", b, "--b", '{"title_weight": 1.0, "top_k": 10}')
    assert "no further look" in tuner_here("compare", "config.yaml", *turned).stderr
    other = tuner_here("compare", "config.yaml", "--b", c, "--json")
    looks = [json.loads(done.stdout)["verdict"]["looks"] for done in (first, again, other)]
    assert looks == [0, 0, 1]
    assert len((tuner_here.folder / "runs" / "holdouts.jsonl").read_text().splitlines()) == 2
    done = tuner_here("compare", "config.yaml", "--b", b, "--queries", "all")
    assert "held-out" not in done.stdout


def test_to_compare_what_the_run_has_judged_is_no_further_look(tuner_here):
    tuner_here("run", "config.yaml", "--quiet")
    (run_dir,) = tuner_here.runs()
    looks = tuner_here.folder / "runs" / "holdouts.jsonl"
    written = looks.read_text()
    done = tuner_here("compare", "config.yaml", "--b", str(run_dir), "--json")
    assert json.loads(done.stdout)["verdict"]["looks"] == 0
    assert "no further look at the 10 held-out queries" in done.stderr
    best = ("evaluate", "config.yaml", "--params", str(run_dir / "best.yaml"))
    assert "no further look" in tuner_here(*best, "--queries", "all").stderr
    tuner_here("policy", str(run_dir))
    policy = looks.read_text()
    tuner_here("policy", str(run_dir))
    assert looks.read_text() == policy
    # Other data is another measurement, by which chance may decide anew.
    corpus = tuner_here.folder / "data" / "corpus.jsonl"
    corpus.write_text(corpus.read_text().replace("is old", "is rather old"))
    done = tuner_here("compare", "config.yaml", "--b", str(run_dir), "--json")
    assert json.loads(done.stdout)["verdict"]["looks"] > 0
    assert looks.read_text().startswith(written)


@pytest.mark.parametrize("part", ["holdout", "all"])
def test_to_evaluate_held_out_queries_is_a_look(tuner_here, part):
    looks = tuner_here.folder / "runs" / "holdouts.jsonl"
    tune = tuner_here("evaluate", "config.yaml", "--json")
    assert json.loads(tune.stdout)["queries"] == 10
    assert json.loads(tune.stdout)["holdout_looks"] is None
    assert not looks.exists()
    done = tuner_here("evaluate", "config.yaml", "--queries", part, "--json")
    assert "note: remembered as a look at the 10 held-out queries, in runs/" in done.stderr
    assert json.loads(done.stdout)["holdout_looks"]["is_new"] is True
    assert "no further look" in tuner_here("evaluate", "config.yaml", "--queries", part).stderr
    other = ("--params", '{"top_k": 2}', "--queries", part)
    done = tuner_here("evaluate", "config.yaml", *other)
    assert "they had been looked at once before" in done.stderr
    assert len(looks.read_text().splitlines()) == 2
    # What was evaluated on them by itself may have been chosen by them.
    run = json.loads(tuner_here("run", "config.yaml", "--json").stdout)
    assert run["verdict"]["looks"] == 1


def test_a_memory_that_cannot_be_written_costs_no_result(tuner_here):
    (tuner_here.folder / "runs" / "holdouts.jsonl").mkdir(parents=True)
    record = json.loads(tuner_here("run", "config.yaml", "--json").stdout)
    assert record["verdict"]["outcome"] in {"deploy", "keep the baseline", "not enough queries"}
    done = tuner_here("evaluate", "config.yaml", "--queries", "holdout")
    assert "could not be remembered" in done.stderr


def test_without_a_baseline_there_is_no_verdict(tuner_here):
    tuner_here.edit("baseline: {title_weight: 1.0, top_k: 10}\n", "")
    record = json.loads(tuner_here("run", "config.yaml", "--json").stdout)
    assert record["verdict"] is None
    assert record["baseline"] is None


def test_guardrails_are_tested_and_checked(tuner_here):
    rail = "{latency_p95_ms: {max_increase: 5.0}, context_tokens: {max_increase: 0.5}}"
    record = json.loads(
        tuner_here("run", "config.yaml", "--json", "--set", f"verdict.guardrails={rail}").stdout
    )
    assert set(record["verdict"]["guardrails"]) == {"latency_p95_ms", "context_tokens"}
    for wrong, expected in (
        ("{context_tokns: {max_increase: 1}}", "did you mean 'context_tokens'"),
        ("{context_tokens: {}}", "exactly one of"),
        ("{context_tokens: {max_increase: -1}}", "greater than or equal to 0"),
        ("{context_tokens: {max_decrease: 1}}", "bound it by max_increase"),
        ("{recall@5: {max_increase: 1}}", "bound it by max_decrease"),
    ):
        done = tuner_here("check", "config.yaml", "--set", f"verdict.guardrails={wrong}", code=2)
        assert expected in done.stderr
