"""Dynamic weights from the command line."""

from __future__ import annotations

import json

import pytest
import yaml


@pytest.fixture
def run_dir(tuner):
    tuner("run", "config.yaml", "--quiet")
    (folder,) = tuner.runs()
    return folder


def test_a_policy_is_written_judged_and_stands_wherever_parameters_do(tuner, run_dir):
    done = tuner("policy", str(run_dir), "--json")
    record = json.loads(done.stdout)
    assert [row["query_type"] for row in record["types"]] == ["market", "river"]
    assert 0.0 <= record["rule_accuracy"] <= 1.0
    assert record["verdict"]["looks"] == 1  # the run itself looked first
    policy = run_dir / "policy.yaml"
    assert set(yaml.safe_load(policy.read_text())["rule"]) == {"start", "weights"}
    evaluated = json.loads(
        tuner("evaluate", "config.yaml", "--params", str(policy), "--queries", "holdout", "--json")
        .stdout
    )  # fmt: skip
    assert evaluated["queries"] == 10
    compared = tuner("compare", "config.yaml", "--b", str(policy))
    assert "B less A" in compared.stdout


def test_people_get_a_table_and_a_sentence(tuner, run_dir):
    done = tuner("policy", str(run_dir))
    assert "the rule tells" in done.stdout
    assert "fixed parameters" in done.stdout or "the policy" in done.stdout
    assert "policy.yaml" in done.stdout


def test_other_data_is_refused(tuner, run_dir):
    corpus = tuner.folder / "data" / "corpus.jsonl"
    corpus.write_text(corpus.read_text().replace("is old", "is rather old"))
    done = tuner("policy", str(run_dir), code=2)
    assert "dataset" in done.stderr


def test_one_query_type_is_no_policy(tuner):
    queries = tuner.folder / "data" / "queries.jsonl"
    queries.write_text(queries.read_text().replace('"river"', '"any"').replace('"market"', '"any"'))
    tuner("run", "config.yaml", "--quiet")
    (run_dir,) = tuner.runs()
    assert "at least two query types" in tuner("policy", str(run_dir), code=2).stderr
