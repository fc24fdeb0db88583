"""What holds for every ranking metric on any input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuner.core.rankings import Rankings
from tuner.metrics import Qrels, known_names, parse
from tuner.scoring.evaluate_run import evaluate_run, evaluate_run_metrics

DOCUMENTS = [f"d{number:02d}" for number in range(12)]
QUERIES = ["q1", "q2", "q3"]
NAMES = sorted({name.replace("@k", f"@{k}") for name in known_names() for k in (1, 3, 10)})
NAMES = [name for name in NAMES if parse(name).is_ranking and parse(name).takes != "discount"]

grades = st.one_of(st.integers(-1, 4), st.floats(-1, 4, allow_nan=False))
judgements = st.dictionaries(st.sampled_from(DOCUMENTS), grades, max_size=10)
qrels_of_all = st.fixed_dictionaries(dict.fromkeys(QUERIES, judgements))
lists = st.lists(st.sampled_from(DOCUMENTS), unique=True, max_size=12)
list_runs = st.fixed_dictionaries(dict.fromkeys(QUERIES, lists))
# Few different scores: many ties. All are exact in float32, as trec_eval compares them.
scores = st.integers(-2, 3).map(lambda number: number / 4)
score_runs = st.fixed_dictionaries(
    {query: st.dictionaries(st.sampled_from(DOCUMENTS), scores, max_size=12) for query in QUERIES}
)


def all_values(qrels, run) -> dict[str, list[float]]:
    """Return each metric's values by the queries' names in order, NaN where undefined."""
    values = evaluate_run_metrics(qrels, run, NAMES, undefined="skip")
    return {name: [row[query] for query in sorted(row)] for name, row in values.items()}


def array_values(qrels, run, name: str) -> np.ndarray:
    rankings = Rankings.from_ids(QUERIES, [run[query] for query in QUERIES])
    return parse(name).per_query(Qrels.build(qrels, query_ids=QUERIES).judge(rankings))


@given(qrels=qrels_of_all, run=list_runs)
def test_every_value_is_in_0_to_1_and_undefined_only_without_a_relevant_document(qrels, run):
    for name in NAMES:
        level = int(name.partition("_level")[2].partition("@")[0] or 1)
        has_relevant = [any(grade >= level for grade in qrels[query].values()) for query in QUERIES]
        values = array_values(qrels, run, name)
        assert np.isnan(values).tolist() == [not is_defined for is_defined in has_relevant]
        defined = values[has_relevant]
        assert ((defined >= 0) & (defined <= 1)).all(), name


@given(qrels=qrels_of_all, run=score_runs)
def test_recall_and_success_never_fall_as_k_grows(qrels, run):
    for family in ("recall", "success", "mrr"):
        values = [list(evaluate_run(qrels, run, f"{family}@{k}").values()) for k in range(1, 14)]
        assert (np.diff(values, axis=0) >= 0).all()


@given(qrels=qrels_of_all, run=list_runs, shuffled=st.permutations(DOCUMENTS))
def test_renaming_documents_and_queries_changes_nothing(qrels, run, shuffled):
    new = dict(zip(DOCUMENTS, shuffled, strict=True))
    renamed_qrels = {f"_{q}": {new[d]: g for d, g in row.items()} for q, row in qrels.items()}
    renamed_run = {f"_{q}": [new[d] for d in row] for q, row in run.items()}
    # Untied scores, so that ids decide nothing.
    scored = {q: {d: -float(i) for i, d in enumerate(row)} for q, row in renamed_run.items()}
    before = all_values(qrels, run)
    for after in (all_values(renamed_qrels, renamed_run), all_values(renamed_qrels, scored)):
        for name in NAMES:
            np.testing.assert_array_equal(after[name], before[name])


@given(qrels=qrels_of_all, run=list_runs, count=st.integers(1, 30))
def test_unjudged_documents_at_the_end_change_nothing(qrels, run, count):
    longer = {q: [*row, *(f"new{number}" for number in range(count))] for q, row in run.items()}
    before = all_values(qrels, run)
    for name, values in all_values(qrels, longer).items():
        np.testing.assert_array_equal(values, before[name])


@given(qrels=qrels_of_all, run=list_runs)
def test_arrays_and_dictionaries_agree_to_the_last_bit(qrels, run):
    for name, values in all_values(qrels, run).items():
        np.testing.assert_array_equal(values, array_values(qrels, run, name))


@given(qrels=qrels_of_all, run=list_runs)
def test_a_query_scores_the_same_alone_as_in_the_batch(qrels, run):
    together = all_values(qrels, run)
    for row, query in enumerate(QUERIES):
        alone = all_values({query: qrels[query]}, {query: run[query]})
        for name in NAMES:
            np.testing.assert_array_equal(alone[name], together[name][row : row + 1])


@given(qrels=qrels_of_all, run=list_runs)
def test_the_shares_of_all_grades_add_up_to_1(qrels, run):
    for depth in (1, 3, 10):
        names = [f"share_grade{grade}@{depth}" for grade in range(5)]
        rows = evaluate_run_metrics(qrels, run, names, undefined="skip")
        sums = np.sum([list(row.values()) for row in rows.values()], axis=0)
        np.testing.assert_allclose(sums[~np.isnan(sums)], 1.0)


@given(judged=judgements)
def test_the_ideal_order_scores_exactly_1(judged):
    ranking = sorted(judged, key=lambda document: judged[document], reverse=True)
    has_relevant = any(grade >= 1 for grade in judged.values())
    for name in ("ndcg", "ndcg@3", "ndcg_exp", "ndcg_exp@3", "mrr", "map"):
        assert evaluate_run({"q": judged}, {"q": ranking}, name) == {"q": float(has_relevant)}


@settings(max_examples=50)
@given(
    # At least one positive grade: trec_eval leaves a variable unset where all are negative.
    qrels=st.fixed_dictionaries(
        {
            query: st.dictionaries(
                st.sampled_from(DOCUMENTS), st.integers(-1, 3), min_size=1, max_size=10
            ).map(lambda row: {**row, "never": 1})
            for query in QUERIES
        }
    ),
    run=score_runs,
)
def test_agrees_with_pytrec_eval_ties_included(qrels, run):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    measures = {"recall.3", "P.3", "ndcg_cut.3", "ndcg", "success.3", "recip_rank", "map"}
    run = {query: row for query, row in run.items() if row}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    names = {
        "recall@3": "recall_3",
        "precision@3": "P_3",
        "ndcg@3": "ndcg_cut_3",
        "ndcg": "ndcg",
        "success@3": "success_3",
        "mrr": "recip_rank",
        "map": "map",
    }
    ours = evaluate_run_metrics(qrels, run, list(names))
    for name, measure in names.items():
        for query in QUERIES:
            wanted = theirs[query][measure] if query in run else 0.0
            assert ours[name][query] == pytest.approx(wanted, abs=1e-9)
