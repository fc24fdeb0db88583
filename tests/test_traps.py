"""Mistakes that textbook snippets and other tools make, each with a test named after it.

Here are those that are not tested beside the code they concern; the others stand there.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from tuner.core.corpus import Corpus, Document, Query, Triple
from tuner.datasets import split_queries
from tuner.evaluation.objective import DEFAULT_WEIGHTS, Objective
from tuner.evaluation.system_metrics import SYSTEM_METRICS
from tuner.retrieval.hybrid import Hybrid
from tuner.scoring.evaluate_run import evaluate_run


def per_query(qrels, run, metric):
    return evaluate_run({"q": qrels}, {"q": run}, metric)["q"]


# Ranking


def test_a_ranking_without_scores_is_taken_in_its_given_order():
    # By id, ascending or descending, the relevant "m" would not be third.
    assert per_query({"m": 1}, ["z", "a", "m", "b"], "mrr") == pytest.approx(1 / 3)


def test_precision_divides_by_k_even_if_fewer_were_retrieved():
    # 2 relevant of 2 retrieved: 2 / 10, not 2 / 2.
    assert per_query({"a": 1, "b": 1, "c": 1}, ["a", "b"], "precision@10") == pytest.approx(0.2)


def test_recall_divides_by_all_relevant_and_recall_cap_by_what_k_ranks_can_hold():
    qrels = {f"d{number}": 1 for number in range(8)}
    ranking = ["d0", "d1", "x", "d2", "y"]
    assert per_query(qrels, ranking, "recall@5") == pytest.approx(3 / 8)
    assert per_query(qrels, ranking, "recall_cap@5") == pytest.approx(3 / 5)
    # Fewer relevant than k: the two are the same.
    assert per_query({"d0": 1, "d9": 1}, ranking, "recall_cap@5") == pytest.approx(1 / 2)


def test_unjudged_and_grades_of_0_or_less_have_no_gain_and_are_not_relevant():
    qrels = {"a": 1, "zero": 0, "bad": -2}
    ranking = ["zero", "bad", "unjudged", "a"]
    assert per_query(qrels, ranking, "mrr") == pytest.approx(1 / 4)
    # dcg = 1 / log2(5); ideal = 1
    assert per_query(qrels, ranking, "ndcg@4") == pytest.approx(1 / math.log2(5))


def test_the_gain_is_the_grade_and_only_ndcg_exp_takes_powers_of_two():
    qrels, ranking = {"a": 3, "b": 1}, ["b", "a"]
    gain = 1 + 3 / math.log2(3), 3 + 1 / math.log2(3)
    assert per_query(qrels, ranking, "ndcg@2") == pytest.approx(gain[0] / gain[1])
    # 2^1 - 1 = 1, 2^3 - 1 = 7
    gain = 1 + 7 / math.log2(3), 7 + 1 / math.log2(3)
    assert per_query(qrels, ranking, "ndcg_exp@2") == pytest.approx(gain[0] / gain[1])


def test_duplicates_never_lift_recall_or_ndcg_above_1():
    qrels = {"q": {"a": 1, "b": 1}}
    run = {"q": ["a", "a", "a", "b"]}  # counted three times, "a" alone would give recall 1.5
    for metric in ("recall@4", "ndcg@4"):
        assert evaluate_run(qrels, run, metric, duplicates="first")["q"] == pytest.approx(1.0)


# Graph


def test_fusing_by_concatenation_would_drop_the_vector_hits_once_the_graph_fills_k(tmp_path):
    # Six passages hang on the query's name; the one that answers it is found by its words alone.
    around = [Document(f"g{number}", f"Note {number}", "A remark.") for number in range(6)]
    answer = Document("text", "Harbour", "Which storms closed the harbour in winter: all of them.")
    triples = [Triple(one.id, "Lissa", "seen in", one.title) for one in around]
    engine = Hybrid.build(Corpus((*around, answer), tuple(triples)), cache_dir=tmp_path)
    question = [Query("q", "Which storms closed the harbour of Lissa in winter?")]

    def found(graph_weight):
        params = {"graph_weight": graph_weight, "top_k": 3, "max_hops": 1}
        return engine.retrieve(question, params).ids(0)

    by_graph, by_text = found(1.0), found(0.0)
    assert by_text[0] == "text"
    assert len(by_graph) == 3
    assert "text" not in [*by_graph, *by_text][:3]  # concatenation
    assert "text" in found(0.5)


# Comparing two configurations


def test_queries_are_split_before_tuning_by_stratum_with_groups_together():
    queries = [
        Query(f"q{number}", f"question {number}?", "ab"[number % 2], group=f"g{number % 10}")
        for number in range(40)
    ]
    tune, holdout = split_queries(queries, holdout=0.5, stratify_by=["query_type"], seed=1)
    assert not set(tune) & set(holdout)
    of = {query.id: query for query in queries}
    assert not {of[id_].group for id_ in tune} & {of[id_].group for id_ in holdout}
    # 10 of each type, but for half of a group of 4.
    assert all(8 <= sum(of[id_].query_type == kind for id_ in holdout) <= 12 for kind in "ab")


# Objective


def test_the_default_composite_is_half_recall_three_tenths_mrr_one_fifth_ndcg():
    assert dict(DEFAULT_WEIGHTS) == {"recall": 0.5, "mrr": 0.3, "ndcg": 0.2}
    found = Objective(DEFAULT_WEIGHTS).score({"recall": 0.8, "mrr": 0.6, "ndcg": 0.5})
    assert found.objective == pytest.approx(0.68)  # .4 + .18 + .1


def test_depth_is_paid_for_so_that_a_larger_top_k_does_not_win_by_construction():
    objective = Objective({"recall@10": 1.0}, price={"context_tokens_per_1000": 0.1})
    shallow = objective.score({"recall@10": 0.8, "context_tokens": 500.0}).objective
    deep = objective.score({"recall@10": 0.82, "context_tokens": 2_000.0}).objective
    assert shallow == pytest.approx(0.75)  # .8 - .1 * .5
    assert deep == pytest.approx(0.62)  # .82 - .1 * 2


# Latency


def test_percentiles_are_type_7_and_nothing_measured_is_undefined_not_0():
    values = np.arange(1.0, 101.0)
    assert SYSTEM_METRICS["latency_p50_ms"].summary(values) == pytest.approx(50.5)
    assert SYSTEM_METRICS["latency_p95_ms"].summary(values) == pytest.approx(95.05)
    for name in ("latency_mean_ms", "latency_p95_ms"):
        assert math.isnan(SYSTEM_METRICS[name].summary(np.array([])))
