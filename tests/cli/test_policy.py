"""Dynamic weights from the command line."""

from __future__ import annotations

import json

import pytest
import yaml

from tuner.core.journal import read_journal


@pytest.fixture
def run_dir(tuner_here):
    tuner_here("run", "config.yaml", "--quiet")
    (folder,) = tuner_here.runs()
    return folder


def test_a_policy_is_written_judged_and_stands_wherever_parameters_do(tuner_here, run_dir):
    done = tuner_here("policy", str(run_dir), "--json")
    record = json.loads(done.stdout)
    assert [row["query_type"] for row in record["types"]] == ["market", "river"]
    assert 0.0 <= record["rule_accuracy"] <= 1.0
    assert record["verdict"]["looks"] == 1  # the run itself looked first
    policy = run_dir / "policy.yaml"
    assert set(yaml.safe_load(policy.read_text())["rule"]) == {"start", "weights"}
    asked = ("--params", str(policy), "--queries", "holdout", "--json")
    evaluated = json.loads(tuner_here("evaluate", "config.yaml", *asked).stdout)
    assert evaluated["queries"] == 10
    assert set(evaluated["params"]) == {"default", "types"}
    shown = tuner_here("evaluate", "config.yaml", "--params", str(policy)).stdout.splitlines()
    assert shown[0] == "by query type  on 10 queries (tune)"
    assert shown[1].split()[:2] == ["any", "other"]
    assert max(map(len, shown)) < 100
    compared = tuner_here("compare", "config.yaml", "--b", str(policy))
    assert "B less A" in compared.stdout


def test_people_get_a_table_and_a_sentence(tuner_here, run_dir):
    done = tuner_here("policy", str(run_dir))
    assert "the rule tells" in done.stdout
    assert "fixed parameters" in done.stdout or "the policy" in done.stdout
    assert "policy.yaml" in done.stdout


def test_a_policy_is_the_baseline_of_the_next_study(tuner_here, run_dir):
    tuner_here("policy", str(run_dir))
    policy = run_dir / "policy.yaml"
    tuner_here.edit("baseline: {title_weight: 1.0, top_k: 10}", f"baseline: {policy}")
    found = json.loads(tuner_here("evaluate", "config.yaml", "--json").stdout)
    given = json.loads(
        tuner_here("evaluate", "config.yaml", "--params", str(policy), "--json").stdout
    )
    assert found == given
    tuner_here("run", "config.yaml", "--quiet")
    (second,) = [run for run in tuner_here.runs() if run != run_dir]
    trials = read_journal(second / "journal.jsonl").trials.values()
    (baseline,) = [trial for trial in trials if trial.arm == "baseline"]
    assert baseline.params["policy"].startswith("by query type (")
    tune = tuner_here("evaluate", "config.yaml", "--queries", "tune", "--json")
    expected = json.loads(tune.stdout)["metrics"]
    assert baseline.metrics["mrr@10"] == pytest.approx(expected["mrr@10"])
    # the study is complete in its folder: without the file it resumes, and its winner is usable
    policy.unlink()
    tuner_here("resume", str(second))
    tuner_here("evaluate", str(second / "config.yaml"), "--params", str(second / "best.yaml"))
    assert "policy.yaml" in tuner_here("policy", str(second)).stdout


def test_a_broken_policy_is_told_in_words(tuner_here, run_dir):
    tuner_here("policy", str(run_dir))
    policy = run_dir / "policy.yaml"
    record = yaml.safe_load(policy.read_text())
    for part, message in (("rule", "rule is missing"), ("default", "default is missing")):
        policy.write_text(yaml.safe_dump({k: v for k, v in record.items() if k != part}))
        for arguments in (
            ("evaluate", "config.yaml", "--params", str(policy)),
            ("compare", "config.yaml", "--b", str(policy)),
            ("evaluate", "config.yaml", "--set", f"baseline={policy}"),
        ):
            done = tuner_here(*arguments, code=2)
            assert f"not a policy as `tuner policy` writes it: {message}" in done.stderr
            assert "KeyError" not in done.stderr
    record["default"]["title_weight"] = 99
    policy.write_text(yaml.safe_dump(record))
    done = tuner_here("run", "config.yaml", "--set", f"baseline={policy}", code=2)
    assert "baseline" in done.stderr
    assert "99 is outside what 'title_weight' can be" in done.stderr


def test_a_study_that_has_not_ended_is_refused(tuner_here, run_dir):
    journal = run_dir / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    looks = (run_dir.parent / "holdouts.jsonl").read_text()
    unfinished = [line for line in lines if json.loads(line).get("kind") != "summary"]
    assert len(unfinished) == len(lines) - 1
    journal.write_text("".join(unfinished))
    done = tuner_here("policy", str(run_dir), code=2)
    assert "has not ended" in done.stderr
    assert f"tuner resume {run_dir} first" in done.stderr
    assert not (run_dir / "policy.yaml").exists()
    assert (run_dir.parent / "holdouts.jsonl").read_text() == looks


def test_other_data_is_refused(tuner_here, run_dir):
    corpus = tuner_here.folder / "data" / "corpus.jsonl"
    corpus.write_text(corpus.read_text().replace("is old", "is rather old"))
    done = tuner_here("policy", str(run_dir), code=2)
    assert "dataset" in done.stderr


def test_one_query_type_is_no_policy(tuner_here):
    queries = tuner_here.folder / "data" / "queries.jsonl"
    queries.write_text(queries.read_text().replace('"river"', '"any"').replace('"market"', '"any"'))
    tuner_here("run", "config.yaml", "--quiet")
    (run_dir,) = tuner_here.runs()
    assert "at least two query types" in tuner_here("policy", str(run_dir), code=2).stderr
