"""Winner and baseline query by query: written once, read back, asked once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tuner.config import load_config
from tuner.core.errors import InputError
from tuner.core.found import FOUND, ranks_of
from tuner.core.journal import found_if_whole, read_per_query, write_per_query
from tuner.core.run_files import JOURNAL_FILE, QUERIES_FILE
from tuner.core.trial import Trial
from tuner.retrieval.free import NOTHING_FREE
from tuner.retrieval.wrapped.remembered import Remembered
from tuner.run.assembly import assemble
from tuner.run.planning import make_plan
from tuner.run.side_by_side import (
    put_side_by_side,
    put_tune_side_by_side,
    read_side_by_side,
    write_side_by_side,
)
from tuner.run.trials import trial_evaluator

CORPUS = {"d1": ("Lima", "old river"), "d2": ("Oslo", "old market"), "d3": ("", "new bridge")}
QRELS = {"q1": {"d1": 2, "d3": 0}, "q2": {"d2": 1, "d3": 1}, "q3": {"d1": 0}}

# Both orders are written down here, so that every figure below can be added up by hand.
SYSTEM = """\
asked = []
ORDERS = {"up": ["d1", "d2", "d3"], "down": ["d3", "d2", "d1"]}

def search(query, order="up"):
    asked.append((query, order))
    return ORDERS[order]
"""


def write_data(folder: Path) -> None:
    (folder / "qrels").mkdir(parents=True)
    documents = [{"_id": id_, "title": t, "text": body} for id_, (t, body) in CORPUS.items()]
    queries = [
        {"_id": id_, "text": f"question {id_}", "query_type": "odd" if id_ == "q2" else "even"}
        for id_ in QRELS
    ]
    for name, records in (("corpus", documents), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, records)) + "\n")
    lines = [f"{query}\t{id_}\t{g}" for query, known in QRELS.items() for id_, g in known.items()]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *lines]))


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """Open the small system with a holdout share and lines to add to its configuration."""
    write_data(tmp_path / "data")
    (tmp_path / "orders_of_documents.py").write_text(SYSTEM)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("TUNER_CACHE_DIR", str(tmp_path / "cache"))

    def open_(*, holdout: float = 0.0, objective: str = ""):
        path = tmp_path / "config.yaml"
        path.write_text(
            f"""\
dataset: {{path: {tmp_path / "data"}, split: {{holdout: {holdout}}}}}
retriever: {{kind: function, function: "orders_of_documents:search"}}
space: {{order: {{type: categorical, choices: [up, down]}}}}
objective: {{maximize: {{mrr@10: 1.0}}{objective}}}
baseline: {{order: up}}
backends: [{{kind: random, trials: 2}}]
execution: {{kind: inline}}
tracking: null
"""
        )
        config, source = load_config(path)
        plan = make_plan(config, source, to_run=True)
        return assemble(config, source, plan, say=lambda _message: None)

    return open_


def test_each_query_has_both_answers_and_what_they_are_worth(opened):
    rows = put_side_by_side(opened(), {"order": "down"}, {"order": "up"})
    by_id = {row.query_id: row for row in rows}
    assert set(by_id) == {"q1", "q2", "q3"}
    first, second, third = (by_id[id_] for id_ in ("q1", "q2", "q3"))
    # q1: d1 is third of "down" and first of "up"; q2: d3 is first, d2 is second.
    assert (first.winner.composite, first.baseline.composite) == (pytest.approx(1 / 3), 1.0)
    assert first.change == pytest.approx(-2 / 3)
    assert second.change == pytest.approx(1.0 - 1 / 2)
    assert first.relevant == ("d1",)
    assert second.relevant == ("d2", "d3")
    assert [p.id for p in first.winner.retrieved] == ["d3", "d2", "d1"]
    assert [p.relevant for p in first.winner.retrieved] == [False, False, True]
    assert [p.title for p in first.winner.retrieved] == ["", "Oslo", "Lima"]
    assert (second.query, second.query_type, second.part) == ("question q2", "odd", "tune")
    # Nothing is relevant to q3, so that no metric is defined.
    assert third.relevant == ()
    assert third.winner.metrics["mrr@10"] is None
    assert third.winner.composite is None
    assert third.change is None


def test_each_is_asked_once_and_equal_ones_only_one_time(opened):
    import orders_of_documents

    assembly = opened()
    orders_of_documents.asked.clear()
    put_side_by_side(assembly, {"order": "down"}, {"order": "up"})
    assert len(orders_of_documents.asked) == len(set(orders_of_documents.asked)) == 6
    orders_of_documents.asked.clear()
    rows = put_side_by_side(assembly, {"order": "up"}, {"order": "up"})
    assert len(orders_of_documents.asked) == 3
    assert all(row.winner == row.baseline for row in rows)


def test_held_out_queries_are_the_only_ones_where_there_are_any(opened):
    assembly = opened(holdout=0.34)
    rows = put_side_by_side(assembly, {"order": "down"}, {"order": "up"})
    assert [row.query_id for row in rows] == [query.id for query in assembly.holdout_queries]
    assert {row.part for row in rows} == {"holdout"}


def test_a_budget_of_tokens_cuts_what_is_shown_as_it_cuts_what_is_measured(opened):
    # Each passage has two or three words, so that 4 tokens hold the first alone.
    assembly = opened(objective=", budget_tokens: 4")
    rows = put_side_by_side(assembly, {"order": "down"}, {"order": "up"})
    for row in rows:
        assert [passage.id for passage in row.winner.retrieved] == ["d3"]
        assert [passage.id for passage in row.baseline.retrieved] == ["d1"]
    assert next(row for row in rows if row.query_id == "q1").winner.composite == 0.0


def test_ranks_are_of_the_whole_answer_and_scores_those_that_the_system_tells(opened):
    rows = put_side_by_side(opened(), {"order": "down"}, {"order": "up"})
    first = next(row for row in rows if row.query_id == "q2")
    assert (first.winner.found, first.baseline.found) == ({"d3": 1, "d2": 2}, {"d2": 2, "d3": 3})
    assert {(p.score, len(p.legs)) for p in first.winner.retrieved} == {(None, 0)}


def two_trials(run_dir: Path) -> tuple[Trial, Trial]:
    """Keep the values of two trials on two tune queries: one found the first, the other both."""
    trials = (Trial(0, "baseline", {"order": "up"}), Trial(1, "random", {"order": "down"}))
    for trial, values in zip(trials, ([1.0, 0.0], [0.5, 0.25]), strict=True):
        write_per_query(run_dir / JOURNAL_FILE, trial.number, {"mrr@10": np.array(values)})
    return trials


def test_tune_queries_that_no_answer_was_kept_for_have_the_values_of_their_trials(opened, tmp_path):
    import orders_of_documents

    assembly = opened(holdout=0.34)
    baseline, winner = two_trials(tmp_path)
    orders_of_documents.asked.clear()
    rows = put_tune_side_by_side(assembly, tmp_path, winner, baseline)
    assert orders_of_documents.asked == []
    assert [row.query_id for row in rows] == [query.id for query in assembly.tune_queries]
    assert {row.part for row in rows} == {"tune"}
    assert [row.baseline.composite for row in rows] == [1.0, 0.0]
    assert [row.winner.composite for row in rows] == [0.5, 0.25]
    assert not any(side.is_kept for row in rows for side in (row.winner, row.baseline))
    assert put_tune_side_by_side(opened(), tmp_path, winner, baseline) == ()


def test_tune_queries_have_the_answers_that_are_kept(opened, tmp_path):
    import orders_of_documents

    (tmp_path / "answers").mkdir()
    assembly = opened(holdout=0.34)
    kept = Remembered(assembly.retriever, tmp_path / "answers", is_paid=True)
    assembly = replace(assembly, retriever=kept)
    baseline, winner = two_trials(tmp_path)
    kept.retrieve(assembly.tune_queries, {"order": "down"})
    orders_of_documents.asked.clear()
    rows = put_tune_side_by_side(assembly, tmp_path, winner, baseline)
    assert orders_of_documents.asked == []
    assert [row.winner.is_kept for row in rows] == [True, True]
    assert [row.baseline.is_kept for row in rows] == [False, False]
    assert {tuple(p.id for p in row.winner.retrieved) for row in rows} == {("d3", "d2", "d1")}


def test_a_trial_keeps_at_which_ranks_it_found_what_is_relevant(opened, tmp_path):
    assembly = opened()
    values = trial_evaluator(assembly, NOTHING_FREE)({"order": "down"}).per_query
    write_per_query(tmp_path / JOURNAL_FILE, 3, values)
    found = found_if_whole(tmp_path / JOURNAL_FILE, 3)
    ranks = {q.id: ranks_of(value) for q, value in zip(assembly.tune_queries, found, strict=True)}
    # "down" is d3, d2, d1: q1 wants d1, q2 wants d2 and d3, and nothing is relevant to q3.
    assert ranks == {"q1": ((3,), 3), "q2": ((1, 2), 3), "q3": ((), 3)}
    assert set(read_per_query(tmp_path / JOURNAL_FILE, 3)) == set(values) - {FOUND}
    assert found_if_whole(tmp_path / JOURNAL_FILE, 4) is None


def test_what_is_written_is_read_back_and_whole(opened, tmp_path):
    rows = put_side_by_side(opened(), {"order": "down"}, {"order": "up"})
    write_side_by_side(tmp_path, rows)
    assert read_side_by_side(tmp_path) == rows
    lines = (tmp_path / QUERIES_FILE).read_text().splitlines()
    assert [json.loads(line)["query_id"] for line in lines] == [row.query_id for row in rows]
    assert [path.name for path in tmp_path.glob(f".{QUERIES_FILE}*")] == []


def test_no_queries_no_file(tmp_path):
    write_side_by_side(tmp_path, ())
    assert not (tmp_path / QUERIES_FILE).exists()
    assert read_side_by_side(tmp_path) == ()


def test_a_broken_line_is_named(tmp_path):
    (tmp_path / QUERIES_FILE).write_text('\n{"query_id": "q1"}\n')
    with pytest.raises(InputError, match=rf"{QUERIES_FILE}:2.*no query with two answers"):
        read_side_by_side(tmp_path)
