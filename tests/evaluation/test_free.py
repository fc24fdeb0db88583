"""One answer tells what every value of a free parameter is worth: as if each had been asked."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from tuner.core.corpus import Query
from tuner.core.rankings import Rankings
from tuner.core.space import Categorical, Integer, SearchSpace
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.free.asking import FreeEvaluator
from tuner.evaluation.free.choice import Table, luck_of
from tuner.evaluation.free.raced import FreeRacing
from tuner.evaluation.free.settings import decided_by_answer
from tuner.evaluation.objective import Bounds, Objective
from tuner.evaluation.racing import Racing
from tuner.retrieval.free import FreeKnobs

QUERIES = tuple(Query(f"q{n}", "", query_type=None, difficulty=None) for n in range(40))
DOCUMENTS = tuple(f"d{n:02}" for n in range(30))
OBJECTIVE = Objective(
    {"recall@5": 0.5, "mrr": 0.3, "ndcg@10": 0.2}, {"context_tokens_per_1000": 2.0}
)
METRICS = ("recall@5", "mrr", "ndcg@10", "recall@10", "context_tokens", "retrieved")
PREFIX = FreeKnobs(("top_k",))


def judgements():
    rng = np.random.default_rng(5)
    found = {q.id: {DOCUMENTS[d]: 1.0 + d % 2 for d in rng.choice(30, 3)} for q in QUERIES}
    return {**found, "q7": {}}  # one that is undefined


class Shuffled:
    """Ranks 20 of 30 documents by chance; ``luck`` is another draw."""

    knobs = ()
    fingerprint = "f"

    def __init__(self):
        self.asked = []

    def retrieve(self, queries, params):
        self.asked.append(params)
        draws = [np.random.default_rng([params["luck"], int(q.id[1:])]) for q in queries]
        order = np.array([rng.permutation(30)[: min(params["top_k"], 20)] for rng in draws])
        tokens = 5.0 + order % 7
        return Rankings(
            [q.id for q in queries],
            DOCUMENTS,
            order,
            context_tokens=tokens.sum(axis=1),
            tokens=tokens,
        )


def make(top_k, objective=OBJECTIVE):
    retriever = Shuffled()
    whole = Evaluator.build(retriever, QUERIES, judgements(), METRICS)
    space = SearchSpace({"luck": Integer(1, 9), "top_k": top_k})
    return retriever, whole, FreeEvaluator(whole, objective, space, PREFIX)


@pytest.mark.parametrize("top_k", [Integer(1, 20), Integer(2, 14, step=4), Categorical((5, 3, 9))])
def test_the_outcome_is_that_of_asking_the_chosen_value(top_k):
    retriever, whole, free = make(top_k)
    outcome = free({"luck": 3})
    assert [params["top_k"] for params in retriever.asked] == [max(top_k.levels(20))]
    assert list(outcome.params) == ["luck", "top_k"]
    really = whole(outcome.params)
    assert outcome.metrics == really.metrics
    for name, values in really.per_query.items():
        np.testing.assert_array_equal(outcome.per_query[name], values)


def test_the_curve_is_what_each_value_is_worth():
    _, whole, free = make(Integer(1, 20))
    outcome = free({"luck": 3})
    (curve,) = outcome.profile.curves
    assert curve.at == tuple(range(1, 21))
    really = [
        OBJECTIVE.score(whole({"luck": 3, "top_k": k}).metrics).objective for k in range(1, 21)
    ]
    assert list(curve.objective) == really
    assert outcome.profile.highest == max(really)
    assert outcome.profile.looked_at == 20
    assert curve.error[outcome.params["top_k"] - 1] == 0.0


def test_a_latency_is_that_of_the_chosen_value_in_a_pass_of_its_own():
    retriever = Shuffled()
    whole = Evaluator.build(retriever, QUERIES, judgements(), (*METRICS, "latency_p95_ms"))
    space = SearchSpace({"luck": Integer(1, 9), "top_k": Integer(1, 20)})
    outcome = FreeEvaluator(whole, OBJECTIVE, space, PREFIX)({"luck": 3})
    first, *timed = [params["top_k"] for params in retriever.asked]
    assert first == 20
    assert set(timed) == {outcome.params["top_k"]} != {20}
    assert outcome.metrics["latency_p95_ms"] > 0


def test_what_has_a_value_is_asked_with_it():
    retriever, whole, free = make(Integer(1, 20))
    outcome = free({"luck": 3, "top_k": 4})
    assert (outcome.params, outcome.profile) == (None, None)
    assert [params["top_k"] for params in retriever.asked] == [4]
    assert outcome.metrics == whole({"luck": 3, "top_k": 4}).metrics


def test_a_constraint_is_kept_where_it_can_be():
    bound = {"context_tokens": Bounds(max=30.0)}
    _, _, free = make(Integer(1, 20), Objective({"recall@10": 1.0}, {}, bound))
    outcome = free({"luck": 3})
    assert outcome.metrics["context_tokens"] <= 30.0


def table(values, violation):
    values = np.array(values)
    return Table(np.nanmean(values, axis=1), np.array(violation), values)


def test_the_best_of_those_that_break_constraints_least_is_chosen():
    values = [[1.0, 0.5], [0.9, 0.6], [0.5, np.nan]]
    assert table(values, [0.0, 0.0, 0.0]).best == 0  # .75 twice: the first
    assert table(values, [0.2, 0.0, 0.0]).best == 1
    assert table(values, [0.2, 0.3, 0.1]).best == 2


def test_errors_are_those_of_paired_differences():
    # To the first row: -.2, 0, 0, .1: deviation .1258 over the root of 4; one query alone: none.
    values = [[0.5, 0.5, 0.5, 0.5], [0.3, 0.5, 0.5, 0.6], [0.4, np.nan, np.nan, np.nan]]
    errors = table(values, [0.0, 0.0, 0.0]).errors(0)
    np.testing.assert_allclose(errors, [0.0, 0.0629, np.nan], atol=1e-4)


def test_what_a_clock_tells_is_no_matter_of_an_answer():
    objective = Objective(
        {"recall@5": 1.0},
        {"latency_p95_ms": 0.1, "context_tokens": 0.1},
        {"index_mb": Bounds(max=9.0), "retrieved": Bounds(min=1.0)},
    )
    left = decided_by_answer(objective)
    assert (list(left.price), list(left.constraints)) == (["context_tokens"], ["retrieved"])


def test_the_beginning_of_a_ranking_has_the_tokens_of_its_passages():
    rankings = Shuffled().retrieve(QUERIES[:2], {"luck": 1, "top_k": 9})
    cut = rankings.first(4)
    assert cut.documents.shape == (2, 4)
    np.testing.assert_array_equal(cut.context_tokens, rankings.tokens[:, :4].sum(axis=1))
    assert replace(rankings, tokens=None).first(4).context_tokens is None
    assert rankings.first(9) is rankings


def test_it_goes_to_other_processes_whole():
    _, _, free = make(Integer(1, 20))
    assert pickle.loads(pickle.dumps(free))({"luck": 3}).params == free({"luck": 3}).params


def racing(shares=(0.25, 0.5)):
    retriever, _, free = make(Integer(1, 20))

    def over(queries):
        return Evaluator.build(retriever, queries, judgements(), METRICS)

    race = Racing.build(over, QUERIES, OBJECTIVE, shares=shares, seed=2)
    return retriever, free, FreeRacing.build(free, race, over)


def test_a_race_that_is_run_to_its_end_has_the_outcome_of_one_answer():
    _, free, raced = racing()
    far_behind = np.full((2, 40), -9.0)
    outcome, whole = raced({"luck": 3}, rival=far_behind), free({"luck": 3})
    assert outcome.race is None
    assert (outcome.params, outcome.metrics) == (whole.params, whole.metrics)
    assert outcome.profile == whole.profile
    for name, values in whole.per_query.items():
        np.testing.assert_array_equal(outcome.per_query[name], values)


def test_a_race_stops_where_no_free_value_keeps_up():
    retriever, _, raced = racing()
    outcome = raced({"luck": 3}, rival=np.ones((2, 40)))
    assert outcome.race.queries == 10
    assert outcome.race.estimate < 1
    assert outcome.params.keys() == {"luck", "top_k"}
    assert outcome.profile.asked == {"luck": 3}
    assert [params["top_k"] for params in retriever.asked] == [20]
    assert np.isnan(outcome.per_query["mrr"]).sum() >= 30


def test_a_baseline_races_as_it_is():
    retriever, _, raced = racing()
    assert raced({"luck": 3, "top_k": 2}).profile is None
    assert {params["top_k"] for params in retriever.asked} == {2}


def test_the_luck_of_a_choice_is_what_other_queries_do_not_confirm():
    rng = np.random.default_rng(4)
    alike = rng.normal(size=(80, 60))
    # All are worth 0: whatever the best of 80 seems to be is luck.
    assert luck_of(alike) == pytest.approx(alike.mean(axis=1).max(), abs=0.1)
    one_is_better = alike * 0.01
    one_is_better[7] += 1.0
    assert luck_of(one_is_better) < 0.005
    assert luck_of(alike[:1]) == 0.0


def test_a_profile_tells_its_luck():
    _, _, free = make(Integer(1, 20))
    assert 0.0 < free({"luck": 3}).profile.luck < 0.2
