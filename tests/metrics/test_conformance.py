"""Agreement with trec_eval's own code on every value of the conformance data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tuner.core.rankings import Rankings
from tuner.metrics import Qrels, mean_defined, parse
from tuner.metrics.ordering import top_documents
from tuner.scoring.evaluate_run import evaluate_run, evaluate_run_metrics

FOLDER = Path(__file__).resolve().parents[2] / "../shared/conformance"
TOLERANCE = 1e-9


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    if not FOLDER.is_dir():
        pytest.skip("the conformance data (../shared/conformance) is not beside this checkout")
    return json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def qrels(expected) -> dict[str, dict[str, int]]:
    table: dict[str, dict[str, int]] = {}
    for line in (FOLDER / "qrels.txt").read_text(encoding="utf-8").splitlines():
        query, _, document, grade = line.split()
        table.setdefault(query, {})[document] = int(grade)
    return table


@pytest.fixture(scope="module")
def run(expected) -> dict[str, dict[str, float]]:
    table: dict[str, dict[str, float]] = {}
    for line in (FOLDER / "run.txt").read_text(encoding="utf-8").splitlines():
        query, _, document, _, score, _ = line.split()
        table.setdefault(query, {})[document] = float(score)
    return table


def test_every_per_query_value_from_dicts(expected, qrels, run):
    together = evaluate_run_metrics(qrels, run, expected["metrics"])
    for metric in expected["metrics"]:
        wanted = expected["per_query"][metric]
        assert together[metric] == pytest.approx(wanted, abs=TOLERANCE, rel=0), metric
        assert evaluate_run(qrels, run, metric) == together[metric]


def test_every_per_query_value_from_arrays(expected, qrels, run):
    query_ids = list(qrels)
    answers = top_documents(query_ids, [run.get(query, {}) for query in query_ids])
    judged = Qrels.build(qrels).judge(Rankings.from_ids(query_ids, answers))
    for name in expected["metrics"]:
        values = np.nan_to_num(parse(name).per_query(judged), nan=0.0)
        wanted = [expected["per_query"][name][query] for query in query_ids]
        assert values == pytest.approx(wanted, abs=TOLERANCE, rel=0), name


def test_means_over_all_judged_queries_and_over_those_with_a_relevant_document(
    expected, qrels, run
):
    query_ids = list(qrels)
    answers = top_documents(query_ids, [run.get(query, {}) for query in query_ids])
    judged = Qrels.build(qrels).judge(Rankings.from_ids(query_ids, answers))
    for name in expected["metrics"]:
        values = parse(name).per_query(judged)
        means = expected["mean"][name]
        every, _ = mean_defined(values, undefined="zero")
        defined, count = mean_defined(values)
        assert every == pytest.approx(means["all_qrels_queries"], abs=TOLERANCE)
        assert defined == pytest.approx(means["with_relevant"], abs=TOLERANCE)
        assert count == sum(any(g >= 1 for g in grades.values()) for grades in qrels.values())


def test_queries_of_the_run_without_judgements_are_counted_in_a_warning(
    expected, qrels, run, caplog
):
    values = evaluate_run(qrels, run, "ndcg@10")
    run_only = expected["queries"]["run_only"]
    assert run_only
    assert not set(run_only) & set(values)
    assert f"{len(run_only)} queries of the run have no judgements" in caplog.text


def test_list_edge_cases(expected):
    cases = json.loads((FOLDER / "edge_cases.json").read_text(encoding="utf-8"))
    assert cases
    for case in cases:
        got = evaluate_run_metrics(
            {"q": case["qrels"]}, {"q": case["ranking"]}, list(case["expected"]), duplicates="first"
        )
        for metric, wanted in case["expected"].items():
            assert got[metric]["q"] == pytest.approx(wanted, abs=TOLERANCE), (case["name"], metric)
