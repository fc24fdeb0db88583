"""tuner evaluate: further metrics, several cut-offs, the spread of queries, and groups."""

from __future__ import annotations

import json

import pytest


def test_further_metrics_with_their_spread_and_by_query_type(tuner_here):
    done = tuner_here(
        "evaluate", "config.yaml", "--metric", "recall@1,3", "--metric", "coverage",
        "--by", "query_type", "--aggregates", "--queries", "all", "--json",
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


def test_the_same_as_tables(tuner_here):
    done = tuner_here("evaluate", "config.yaml", "--by", "query_type", "--aggregates")
    assert "median" in done.stdout
    lines = done.stdout.splitlines()
    assert sum(line.startswith(("market ", "river ")) for line in lines) == 2


def test_a_pipe_gets_every_name_and_every_figure_whole(tuner_here):
    names = ["context_precision_graded@10", "discounted_precision_reciprocal@10", "density"]
    names += [f"discounted_precision_uniform@{k}" for k in range(1, 21)]
    metrics = [part for name in names for part in ("--metric", name)]
    done = tuner_here("evaluate", "config.yaml", "--by", "query_type", "--aggregates", *metrics)
    head = next(line for line in done.stdout.splitlines() if line.startswith("query_type"))
    assert set(names) <= set(head.split())
    assert "…" not in done.stdout


def test_every_mean_says_how_many_queries_it_stands_on(tuner_here):
    # a query of each type has evidence, the other 18 have none
    evidences = [{"query_id": f"q0-{part}", "entities": ["Lima"]} for part in ("river", "market")]
    text = "".join(json.dumps(record) + "\n" for record in evidences)
    (tuner_here.folder / "data" / "evidences.jsonl").write_text(text)
    retriever = tuner_here.folder / "word_overlap.py"
    told = (
        "context_tokens=tokens, entities=[['Lima'] for _ in queries], paths=[[] for _ in queries]"
    )
    retriever.write_text(retriever.read_text().replace("context_tokens=tokens", told))
    tuner_here.edit("recall@5: 0.5", "entity_recall: 0.5")
    done = tuner_here("evaluate", "config.yaml", "--queries", "all")
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.strip()}
    assert rows["metric"] == ["value", "queries"]
    assert rows["entity_recall"] == ["1.0000", "2"]
    assert rows["mrr@10"][1] == rows["context_tokens"][1] == "20"
    assert rows["composite"][1] == "2"
    assert "the composite has all of its metrics for 2 of 20 queries" in done.stderr
    everything = ("evaluate", "config.yaml", "--queries", "all", "--json")
    record = json.loads(tuner_here(*everything).stdout)
    assert record["defined"]["composite"] == record["defined"]["entity_recall"] == 2
    assert record["defined"]["context_tokens"] == 20


def test_all_grades_at_once(tuner_here):
    done = tuner_here(
        "evaluate", "config.yaml", "--metric", "share_grades@2,5", "--metric", "recall_levels@5",
        "--json",
    )  # fmt: skip
    metrics = json.loads(done.stdout)["metrics"]
    assert metrics["recall_level1@5"] == metrics["recall@5"]
    assert metrics["share_grade0@5"] + metrics["share_grade1@5"] == pytest.approx(1.0)
    assert metrics["share_grade1@2"] <= 0.5  # one relevant passage a query
    assert "share_grade2@2" not in metrics


def test_what_nothing_defines_is_no_number(tuner_here):
    done = tuner_here("evaluate", "config.yaml", "--metric", "recall_level7@5")
    (row,) = [line.split() for line in done.stdout.splitlines() if "recall_level7@5" in line]
    assert row == ["recall_level7@5", "–", "0"]
    record = json.loads(
        tuner_here("evaluate", "config.yaml", "--metric", "recall_level7@5", "--json").stdout
    )
    assert record["metrics"]["recall_level7@5"] is None
    tuner_here.edit("recall@5: 0.5", "recall_level7@5: 0.5")
    done = tuner_here("evaluate", "config.yaml", code=2)
    assert "metric 'recall_level7@5' is undefined for every query" in done.stderr


def test_what_cannot_be_shown_is_said(tuner_here):
    done = tuner_here("evaluate", "config.yaml", "--by", "difficulty", code=2)
    assert "--by difficulty: no query of this data set has a difficulty" in done.stderr
    done = tuner_here(
        "evaluate", "config.yaml", "--metric", "recall@1,0", "--metric", "ndgc@5", code=2
    )
    assert "recall@0" in done.stderr
    assert "did you mean 'ndcg@5'" in done.stderr
    done = tuner_here("evaluate", "config.yaml", "--metric", "path_recall", code=2)
    assert "'path_recall' needs evidences" in done.stderr


def test_a_tokenizer_and_weights_of_ones_own(tuner_here):
    (tuner_here.folder / "letters.py").write_text("encode = list\n")
    plain = tuner_here("evaluate", "config.yaml", "--metric", "context_tokens", "--json")
    assert json.loads(plain.stdout)["metrics"]["context_tokens"] == 80.0  # as the retriever says
    tuner_here.edit(
        "tracking: null",
        "tracking: null\ncontext: {tokenizer: 'letters:encode', discount: [0, 1, 0]}",
    )
    done = tuner_here(
        "evaluate", "config.yaml", "--metric", "discounted_precision_fitted@3",
        "--metric", "context_tokens", "--params", '{"top_k": 1}', "--json",
    )  # fmt: skip
    metrics = json.loads(done.stdout)["metrics"]
    # one passage a query, never at rank 2; "Lima the river of Lima is old" has 29 letters or so
    assert metrics["discounted_precision_fitted@3"] == 0.0
    assert 25 < metrics["context_tokens"] < 36
    done = tuner_here(
        "evaluate", "config.yaml", "--metric", "discounted_precision_fitted@4", code=2
    )
    assert "'discounted_precision_fitted@4': the discount has 3 weights for 4 ranks" in done.stderr
    (tuner_here.folder / "halves.py").write_text("def encode(text):\n    return text / 2\n")
    tuner_here.edit("letters:encode", "halves:encode")
    done = tuner_here("check", "config.yaml", code=2)
    assert "config.yaml:16: context.tokenizer: the tokenizer 'halves:encode' must" in done.stderr


def test_another_tokenizer_is_another_study(tuner_here):
    (tuner_here.folder / "letters.py").write_text("encode = list\n")
    tuner_here("run", "config.yaml", "--quiet")
    (run_dir,) = tuner_here.runs()
    tuner_here("resume", str(run_dir))
    config = run_dir / "config.yaml"
    text = config.read_text()
    config.write_text(text.replace("tokenizer: null", "tokenizer: letters:encode"))
    assert "metrics" in tuner_here("resume", str(run_dir), code=2).stderr


def test_grades_from_0_to_1_are_read_as_the_configuration_says(tuner_here):
    qrels = tuner_here.folder / "data" / "qrels" / "test.tsv"
    qrels.write_text(qrels.read_text().replace("\t1\n", "\t0.8\n"))
    refused = tuner_here("evaluate", "config.yaml", code=2)
    assert "no grade reaches 1, the highest is 0.8; set relevant_from" in refused.stderr
    tuner_here.edit("{path: data,", "{path: data, relevant_from: 0.5, max_grade: 0.4,")
    refused = tuner_here("evaluate", "config.yaml", code=2)
    assert "config.yaml:2: dataset.max_grade: max_grade is 0.4; it must be at least 0.5" in (
        refused.stderr
    )
    tuner_here.edit("max_grade: 0.4", "max_grade: 1")
    metrics = ("--metric", "discounted_precision_uniform@1", "--metric", "precision@1")
    found = json.loads(tuner_here("evaluate", "config.yaml", "--json", *metrics).stdout)["metrics"]
    # A relevant passage at the first rank is worth .8 of the highest grade.
    assert found["discounted_precision_uniform@1"] == pytest.approx(0.8 * found["precision@1"])
    assert found["precision@1"] > 0
