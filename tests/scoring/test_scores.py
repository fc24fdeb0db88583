"""Scores of finished runs: who is averaged, what is missing, and agreement with trec_eval."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tuner.core.corpus import Document
from tuner.core.errors import InputError
from tuner.datasets import Evidence
from tuner.datasets.run_files import read_qrels, read_run
from tuner.metrics.base import MetricOptions
from tuner.scoring.evaluate_run import evaluate_run
from tuner.scoring.inputs import ScoringInputs, Told
from tuner.scoring.run_files import read_files
from tuner.scoring.scores import compare_with_first, score_runs
from tuner.stats import correct_holm

OURS = Path(__file__).resolve().parents[1] / "data/formats"
SHARED = Path(__file__).resolve().parents[2] / "../shared"
QRELS = {"q1": {"d1": 1, "d2": 1}, "q2": {"d3": 1}, "q3": {"d4": 0}}
RUN = {"q1": {"d1": 0.5, "d9": 0.7}, "q9": {"d1": 1.0}}


def test_a_missing_query_counts_0_and_an_undefined_one_is_left_out():
    scores = score_runs(QRELS, {"a": RUN}, ["recall@10", "mrr@10"], undefined="skip")
    (run,) = scores.runs
    # q1: one of two relevant, at rank 2; q2: missing, 0; q3: nothing is relevant, undefined
    assert run.values["recall@10"] == pytest.approx([0.5, 0.0, np.nan], nan_ok=True)
    assert run.mean("recall@10") == 0.25
    assert run.mean("mrr@10") == 0.25
    assert scores.defined == 2
    assert scores.without_relevant == 1
    assert run.missing == ("q2", "q3")
    assert run.without_judgements == 1
    assert run.unjudged_share == 0.5  # d9 of d1, d9
    assert run.retrieved == {"q1": 2, "q2": 0, "q3": 0}


def test_undefined_queries_count_0_as_in_trec_eval_and_evaluate_run():
    scores = score_runs(QRELS, {"a": RUN}, ["recall@10"])
    assert scores.runs[0].mean("recall@10") == pytest.approx(
        sum(evaluate_run(QRELS, {"q1": RUN["q1"]}, "recall@10").values()) / 3
    )
    assert scores.defined == 3
    assert scores.runs[0].mean("recall@10") == pytest.approx(0.5 / 3)


def test_unjudged_documents_are_counted_in_the_top_10_only():
    ranking = [f"x{number}" for number in range(9)] + ["d1"] + ["y"] * 1
    (run,) = score_runs({"q": {"d1": 1}}, {"a": {"q": ranking}}, ["mrr"]).runs
    assert run.unjudged_share == 0.9
    (run,) = score_runs({"q": {"d1": 1}}, {"a": {"q": []}}, ["mrr"]).runs
    assert run.unjudged_share is None
    assert run.mean("mrr") == 0.0


def test_nothing_in_common_is_an_error_that_shows_both_kinds_of_id():
    with pytest.raises(InputError, match=r"'a' shares no query .*'7'.*'q1', 'q2', 'q3'"):
        score_runs(QRELS, {"a": {"7": ["d1"]}}, ["mrr"])


def test_all_unknown_metrics_are_named_at_once():
    with pytest.raises(InputError) as caught:
        score_runs(QRELS, {"a": RUN}, ["ndgc@10", "mrr", "recal@5"])
    assert "did you mean 'ndcg@10'" in str(caught.value)
    assert "did you mean 'recall@5'" in str(caught.value)


def test_each_later_run_is_held_to_the_first_and_holm_counts_runs_times_metrics():
    generator = np.random.default_rng(5)
    qrels = {f"q{n}": {"d": 1} for n in range(40)}

    def ranking(most: int) -> list[str]:
        place = int(generator.integers(0, most))
        return [f"x{n}" for n in range(place)] + ["d"]

    runs = {
        "first": {query: ranking(9) for query in qrels},
        "better": {query: ranking(2) for query in qrels},
        "alike": {query: ranking(9) for query in qrels},
    }
    scores = score_runs(qrels, runs, ["mrr@10", "success@3"])
    compared = compare_with_first(scores)
    assert [(one.run, one.against, one.metric) for one in compared] == [
        ("better", "first", "mrr@10"),
        ("better", "first", "success@3"),
        ("alike", "first", "mrr@10"),
        ("alike", "first", "success@3"),
    ]
    first, better = (run.values["mrr@10"] for run in scores.runs[:2])
    assert compared[0].comparison.mean_difference == pytest.approx((better - first).mean())
    adjusted = correct_holm([one.comparison.p_value for one in compared])
    assert [one.adjusted_p for one in compared] == pytest.approx(adjusted.tolist())
    assert compared[0].is_significant
    assert not compared[2].is_significant


def test_a_copy_of_the_first_run_is_no_better():
    scores = score_runs(QRELS, {"a": RUN, "b": dict(RUN)}, ["mrr"])
    (one,) = compare_with_first(scores)
    assert one.adjusted_p == 1.0
    assert "identical" in (one.comparison.remark or "")


def test_trap_a_metric_may_be_undefined_where_another_one_is_not():
    qrels = {"q1": {"d1": 2}, "q2": {"d1": 1}}
    scores = score_runs(qrels, {"a": {"q1": ["d1"], "q2": ["d1"]}}, ["recall@5", "recall_level2@5"])
    (run,) = scores.runs
    assert (run.mean("recall@5"), run.count("recall@5")) == (1.0, 2)
    # q2 has no document of grade 2: left out, and not 0
    assert (run.mean("recall_level2@5"), run.count("recall_level2@5")) == (1.0, 1)
    assert scores.defined == 2


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("P_10", "precision@10"),
        ("P@5", "precision@5"),
        ("R@100", "recall@100"),
        ("recall_1000", "recall@1000"),
        ("ndcg_cut_20", "ndcg@20"),
        ("nDCG@7", "ndcg@7"),
        ("recip_rank", "mrr"),
        ("RR@10", "mrr@10"),
        ("AP", "map"),
        ("success_1", "success@1"),
    ],
)
def test_names_of_trec_eval_and_ir_measures_are_translated_in_the_error(theirs, ours):
    with pytest.raises(InputError) as caught:
        score_runs(QRELS, {"a": RUN}, [theirs])
    assert str(caught.value) == f"unknown metric {theirs!r}; did you mean {ours!r}?"


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("coverage", "'coverage' needs the texts of the passages and the queries; .*--dataset"),
        ("context_tokens", "'context_tokens' needs the texts"),
        ("entity_recall", r"'entity_recall' needs labelled names .*\(evidences\); .*--dataset"),
        ("discounted_precision_fitted@3", "needs weights of the ranks; .*--discount 1,0.6,0.8"),
        ("latency_p95_ms", "'latency_p95_ms' is measured while a system answers"),
        ("context_tokens_p95", "is no mean: write context_tokens"),
        ("retrieved", "is a column of --per-query"),
    ],
)
def test_what_a_metric_lacks_is_said_with_the_option_that_brings_it(metric, message):
    with pytest.raises(InputError, match=message):
        score_runs(QRELS, {"a": RUN}, [metric])


DOCUMENTS = [
    Document("a", "Lima", "capital of Peru"),  # 4 words
    Document("b", "", "a smart boat"),  # 3 words
]
TEXTS = ScoringInputs(
    documents=DOCUMENTS,
    query_texts={"q1": "capital of Peru", "q2": "smart boat"},
    evidences={"q1": Evidence(("Lima", "Peru"), ((("Lima", "capital of", "Peru"),),))},
)
TWO = {"q1": {"a": 1}, "q2": {"b": 1}}
TEXT_METRICS = ["context_tokens", "density", "coverage", "redundancy", "budget_use@5"]


def test_metrics_of_the_text_by_hand():
    scores = score_runs(TWO, {"r": {"q1": ["b", "a"], "q2": ["b"]}}, TEXT_METRICS, inputs=TEXTS)
    (run,) = scores.runs
    assert run.values["context_tokens"].tolist() == [7.0, 3.0]
    assert run.values["density"] == pytest.approx([4 / 7, 1.0])
    assert run.values["coverage"].tolist() == [1.0, 1.0]
    assert run.values["budget_use@5"] == pytest.approx([5 / 7, 1.0])
    assert run.mean("redundancy") == 0.0
    letters = replace(TEXTS, tokenizer=list)
    scores = score_runs(TWO, {"r": {"q1": ["b"], "q2": ["b"]}}, ["context_tokens"], inputs=letters)
    assert scores.runs[0].mean("context_tokens") == 12.0  # "a smart boat"


def test_trap_a_query_that_the_run_lacks_is_0_even_for_its_budget():
    scores = score_runs(TWO, {"r": {"q1": ["b", "a"]}}, TEXT_METRICS, inputs=TEXTS)
    for metric, values in scores.runs[0].values.items():
        assert values[1] == 0.0, metric


def test_texts_that_are_not_there_are_named():
    with pytest.raises(InputError, match=r"lacks 1 of the 2 documents that the run 'r' .*'x'"):
        score_runs(TWO, {"r": {"q1": ["x", "a"]}}, ["density"], inputs=TEXTS)
    with pytest.raises(InputError, match="every judged query's text, and the data set has no 'q3'"):
        score_runs({**TWO, "q3": {"a": 1}}, {"r": {"q1": ["a"]}}, ["density"], inputs=TEXTS)
    # where no text is read, a document may be unknown
    score_runs(TWO, {"r": {"q1": ["x", "a"]}}, ["mrr"], inputs=TEXTS)


def test_metrics_of_the_graph_by_hand():
    step = ("lima", "Capital of", "peru")
    told = {"r": Told({"q1": ["Lima"]}, {"q1": [(step,)]}), "s": Told({"q1": []}, {"q2": []})}
    runs = {"r": {"q1": ["a"], "q2": ["b"]}, "s": {"q1": ["b"]}}
    metrics = ["entity_recall", "path_recall", "graphrag_recall@5"]
    r, s = score_runs(TWO, runs, metrics, inputs=replace(TEXTS, told=told)).runs
    assert r.values["entity_recall"] == pytest.approx([0.5, np.nan], nan_ok=True)
    assert r.values["path_recall"] == pytest.approx([1.0, np.nan], nan_ok=True)
    # .4 * 1 + .3 * .5 + .3 * 1; q2 has documents only
    assert r.values["graphrag_recall@5"] == pytest.approx([0.85, 1.0])
    assert s.mean("graphrag_recall@5") == 0.0
    assert (r.count("path_recall"), s.count("path_recall")) == (1, 1)


def test_a_run_that_tells_nothing_of_its_graph_is_named_with_what_to_write():
    inputs = replace(TEXTS, told={"r": Told({"q1": ["Lima"]}, None)})
    assert score_runs(TWO, {"r": RUN}, ["entity_recall"], inputs=inputs).runs
    for metric in ("path_recall", "graphrag_recall"):
        with pytest.raises(InputError, match=rf"'{metric}': the run 'r' tells no paths; .*JSON"):
            score_runs(TWO, {"r": RUN}, [metric], inputs=inputs)
    with pytest.raises(InputError, match="the run 'r' tells no entities and no paths"):
        score_runs(TWO, {"r": RUN}, ["graphrag_recall"], inputs=TEXTS)


def test_fitted_weights_of_the_ranks():
    inputs = ScoringInputs(options=MetricOptions([1.0, 0.25]))
    run = RUN | {"q2": ["a", "b"]}
    scores = score_runs(TWO, {"r": run}, ["discounted_precision_fitted@2"], inputs=inputs)
    assert scores.runs[0].values["discounted_precision_fitted@2"][1] == pytest.approx(0.25 / 1.25)
    with pytest.raises(InputError, match="2 weights for 3 ranks"):
        score_runs(TWO, {"r": RUN}, ["discounted_precision_fitted@3"], inputs=inputs)


def test_undefined_as_zero_concerns_queries_without_a_relevant_document_only():
    qrels = {"q1": {"d1": 2}, "q2": {"d1": 1}, "q3": {"d1": 0}}
    run = {query: ["d1"] for query in qrels}
    (scored,) = score_runs(qrels, {"a": run}, ["recall_level2@5"], undefined="zero").runs
    assert scored.values["recall_level2@5"] == pytest.approx([1.0, np.nan, 0.0], nan_ok=True)


def test_files_are_named_shortly_unless_two_share_a_name(tmp_path):
    (tmp_path / "qrels").write_text("q1 0 d1 1\n")
    paths = []
    for name in ("a/bm25.run.gz.txt", "b/bm25.run.gz.txt", "b/dense.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("q1 Q0 d1 1 0.5 x\n")
        paths.append(str(path))
    qrels = str(tmp_path / "qrels")
    assert [run.name for run in read_files(qrels, paths[1:]).runs] == ["bm25.run.gz", "dense"]
    assert [run.name for run in read_files(qrels, paths).runs] == paths
    with pytest.raises(InputError, match=r"given twice: as --run and as --run"):
        read_files(qrels, [paths[0], paths[0]])
    with pytest.raises(InputError, match=r"given twice: as --qrels and as --run"):
        read_files(qrels, [qrels])


def test_files_that_may_be_swapped_are_scored_with_a_remark(tmp_path):
    scores, grades = tmp_path / "scores.tsv", tmp_path / "grades.tsv"
    scores.write_text("q1\td1\t7.5\nq1\td2\t2.25\n")
    grades.write_text("q1\td1\t1\nq1\td2\t0\n")
    (remark,) = read_files(str(scores), [str(grades)]).remarks
    assert "did you swap --qrels and --run?" in remark
    assert read_files(str(grades), [str(scores)]).remarks == ()


def test_grades_of_trec_may_be_fractions(tmp_path):
    qrels, run = tmp_path / "qrels", tmp_path / "run"
    qrels.write_text("q1 0 d1 2.5\nq2 0 d3 1.5\n")
    run.write_text("q1 Q0 d1 1 1 x\nq2 Q0 d3 1 2 x\n")
    files = read_files(str(qrels), [str(run)])
    assert files.grades == {"q1": {"d1": 2.5}, "q2": {"d3": 1.5}}
    (remark,) = files.remarks
    assert "swap" not in remark  # six columns are a run, and four are not


# Our name -> trec_eval's.
NAMES = {
    "ndcg": "ndcg",
    "ndcg@10": "ndcg_cut_10",
    "ndcg@100": "ndcg_cut_100",
    "recall@10": "recall_10",
    "recall@1000": "recall_1000",
    "precision@5": "P_5",
    "success@5": "success_5",
    "mrr": "recip_rank",
    "map": "map",
}


@pytest.mark.parametrize(
    ("qrels_file", "run_file"),
    [
        (OURS / "trec_qrels.txt", OURS / "trec_run.txt"),
        (OURS / "trec_qrels_graded.txt", OURS / "trec_run.txt"),
        (SHARED / "data/formats/trec_qrels.txt", SHARED / "data/formats/trec_run.txt"),
        (SHARED / "data/formats/trec_qrels_graded.txt", SHARED / "data/formats/trec_run.txt"),
        (SHARED / "conformance/qrels.txt", SHARED / "conformance/run.txt"),
    ],
    ids=lambda file: f"{file.parent.name}/{file.name}",
)
def test_agreement_with_pytrec_eval(qrels_file, run_file):
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval is not installed")
    if not qrels_file.is_file():
        pytest.skip(f"{qrels_file.name} is not beside this checkout (../shared)")
    grades = read_qrels(qrels_file).grades
    answers = read_run(run_file).answers
    scores = score_runs(grades, {"run": answers}, list(NAMES), undefined="zero")
    whole = {q: {d: int(grade) for d, grade in judged.items()} for q, judged in grades.items()}
    evaluator = pytrec_eval.RelevanceEvaluator(whole, set(NAMES.values()))
    theirs = evaluator.evaluate({q: r for q, r in answers.items() if q in whole})
    assert theirs
    for name, their_name in NAMES.items():
        wanted = [theirs[q][their_name] if q in theirs else 0.0 for q in scores.query_ids]
        assert scores.runs[0].values[name] == pytest.approx(wanted, abs=1e-9, rel=0), name
        mean = sum(wanted) / len(grades)  # trec_eval -c
        assert scores.runs[0].mean(name) == pytest.approx(mean, abs=1e-9, rel=0), name
