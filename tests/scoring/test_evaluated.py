"""One configuration evaluated: its figures, for how many queries each is, and what is written."""

from __future__ import annotations

import csv
import json

import pytest

from tuner.config import load_config
from tuner.core.errors import InputError
from tuner.run.assembly import assemble
from tuner.run.planning import make_plan
from tuner.scoring.evaluated import evaluate_choice, with_metrics

SYSTEM = (
    'def search(query, order="up"):\n    return ["d1", "d2"] if order == "up" else ["d2", "d1"]\n'
)
QRELS = {"q1": "d1", "q2": "d2", "q3": "d2", "q4": "d1"}


@pytest.fixture
def assembly(tmp_path, monkeypatch):
    (tmp_path / "data" / "qrels").mkdir(parents=True)
    documents = [{"_id": id_, "title": "", "text": "a river"} for id_ in ("d1", "d2")]
    queries = [{"_id": id_, "text": f"question {id_}", "query_type": "hop"} for id_ in QRELS]
    for name, records in (("corpus", documents), ("queries", queries)):
        (tmp_path / "data" / f"{name}.jsonl").write_text("\n".join(map(json.dumps, records)))
    lines = ["query-id\tcorpus-id\tscore", *(f"{q}\t{d}\t1" for q, d in QRELS.items())]
    (tmp_path / "data" / "qrels" / "test.tsv").write_text("\n".join(lines))
    (tmp_path / "orders_of_two.py").write_text(SYSTEM)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("TUNER_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "config.yaml").write_text(
        f"""\
study: {{runs_dir: {tmp_path / "runs"}}}
dataset: {{path: {tmp_path / "data"}, split: {{holdout: 0.5}}}}
retriever: {{kind: function, function: "orders_of_two:search"}}
space: {{order: {{type: categorical, choices: [up, down]}}}}
objective: {{maximize: {{mrr@10: 1.0}}}}
baseline: {{order: up}}
"""
    )
    config, source = load_config(tmp_path / "config.yaml")
    return assemble(config, source, make_plan(config, source), say=lambda message: None)


def test_every_figure_is_told_with_its_number_of_queries(assembly):
    found = evaluate_choice(assembly, {"order": "up"}, "all")
    # reciprocal ranks 1, 1/2, 1/2, 1
    assert found.figures["mrr@10"] == found.figures["objective"] == pytest.approx(0.75)
    assert found.defined["composite"] == found.defined["mrr@10"] == found.defined_queries == 4
    record = found.to_record()
    assert (record["params"], record["queries"]) == ({"order": "up"}, 4)
    assert record["queries_asked"] == {"evaluation": 4}
    json.dumps(record, allow_nan=False)


@pytest.mark.parametrize(("part", "looked"), [("tune", False), ("holdout", True), ("all", True)])
def test_held_out_queries_are_looked_at(assembly, part, looked):
    first = evaluate_choice(assembly, {"order": "up"}, part)
    again = evaluate_choice(assembly, {"order": "down"}, part)
    assert (first.looks is not None) is looked
    assert bool(again.remarks) is looked
    assert (again.to_record()["holdout_looks"] is not None) is looked


def test_a_row_a_query_is_written_with_blanks_where_nothing_is_defined(assembly, tmp_path):
    found = evaluate_choice(with_metrics(assembly, ["recall@1"]), {"order": "up"}, "all")
    found.write_queries(tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open() as file:
        rows = {row["query_id"]: row for row in csv.DictReader(file)}
    assert {id_: row["recall@1"] for id_, row in rows.items()} == {
        "q1": "1", "q2": "0", "q3": "0", "q4": "1",
    }  # fmt: skip
    assert rows["q2"]["mrr@10"] == "0.5"
    assert (rows["q2"]["query_type"], rows["q2"]["text"]) == ("hop", "question q2")
    with pytest.raises(InputError, match=r"--per-query .*none.*: cannot be written"):
        found.write_queries(tmp_path / "none" / "rows.csv")


def test_cut_offs_and_grades_are_written_out_and_wrong_names_told_at_once(assembly):
    names = with_metrics(assembly, ["recall@1,5", "share_grades@5", "mrr@10"]).plan.metric_names
    assert {"recall@1", "recall@5", "share_grade0@5", "share_grade1@5"} <= set(names)
    assert len(set(names)) == len(names)
    with pytest.raises(InputError) as caught:
        with_metrics(assembly, ["recal@1", "ndgc@5"])
    assert [problem.key for problem in caught.value.problems] == [("--metric",)] * 2
