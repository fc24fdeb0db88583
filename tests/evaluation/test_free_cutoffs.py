"""One answer tells what every cut-off on its scores is worth: as if each had been asked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tuner.core.corpus import Query
from tuner.core.errors import TunerError
from tuner.core.rankings import Legs, Rankings
from tuner.core.space import Categorical, Integer, Real, SearchSpace
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.free.asking import FreeEvaluator
from tuner.evaluation.objective import Bounds, Objective
from tuner.retrieval.computed import answer_at
from tuner.retrieval.free import FreeKnobs, Mixing, Share

QUERIES = tuple(Query(f"q{n}", "", query_type=None, difficulty=None) for n in range(30))
DOCUMENTS = tuple(f"d{n:02}" for n in range(30))
METRICS = ("recall@5", "mrr", "ndcg@10", "map", "recall@10", "context_tokens", "retrieved")
OBJECTIVES = {
    "priced": Objective(
        {"recall@5": 0.5, "mrr": 0.3, "ndcg@10": 0.2}, {"context_tokens_per_1000": 4.0}
    ),
    "whole rankings": Objective({"map": 1.0}, {"context_tokens": 0.003}),
    "bounded": Objective({"recall@10": 1.0}, {}, {"context_tokens": Bounds(max=30.0)}),
}
CUT, BOTH = FreeKnobs(cutoffs=("min_score",)), FreeKnobs(("top_k",), None, ("min_score",))
MIXED = FreeKnobs(
    ("top_k",),
    Mixing({"graph": Share("weight"), "text": Share("weight", is_rest=True)}),
    ("min_score",),
)


def judgements():
    rng = np.random.default_rng(5)
    found = {q.id: {DOCUMENTS[d]: 1.0 + d % 2 for d in rng.choice(30, 3)} for q in QUERIES}
    return {**found, "q7": {}}  # one that is undefined


class Scored:
    """Scores 30 documents by chance, relevant ones a little higher, in whole tenths.

    ``above`` has those that score as much as the cut-off left out, too.
    """

    knobs = ()
    fingerprint = "f"

    def __init__(self, *, above=False, digits=1):
        self.asked = []
        self.above = above
        self.digits = digits

    def legs(self, queries):
        judged = judgements()
        scores = np.empty((2, len(queries), 30))
        for row, query in enumerate(queries):
            relevant = np.array([id_ in judged[query.id] for id_ in DOCUMENTS])
            draws = np.random.default_rng([3, int(query.id[1:])]).random((2, 30))
            scores[:, row] = np.round(draws + 0.5 * relevant, self.digits)
        return scores

    def retrieve(self, queries, params):
        self.asked.append(params)
        pool = np.tile(np.arange(30), (len(queries), 1))
        graph, text = self.legs(queries)
        weight = params.get("weight", 0.5)
        mixed = weight * graph + (1.0 - weight) * text
        order = np.argsort(-mixed, axis=1, kind="stable")[:, : params.get("top_k", 20)]
        scores = np.take_along_axis(mixed, order, axis=1)
        least = params["min_score"]
        order = np.where(scores > least if self.above else scores >= least, order, -1)
        tokens = np.where(order >= 0, 5.0 + order % 7, 0.0)
        return Rankings(
            [q.id for q in queries],
            DOCUMENTS,
            order,
            scores=np.where(order >= 0, scores, 0.0),
            context_tokens=tokens.sum(axis=1),
            tokens=tokens,
            legs=Legs(("graph", "text"), pool, np.stack([graph, text]), 5.0 + pool % 7),
        )


SPACES = {
    "alone": (CUT, {}),
    "with a prefix": (BOTH, {"top_k": Integer(2, 20)}),
    "with a weight": (MIXED, {"top_k": Integer(2, 20), "weight": Real(0, 1)}),
}


def make(knobs, min_score, objective=OBJECTIVES["priced"], more=None, **options):
    retriever = Scored(**options)
    whole = Evaluator.build(retriever, QUERIES, judgements(), METRICS)
    space = SearchSpace({"min_score": min_score, **(more or {})})
    return retriever, whole, FreeEvaluator(whole, objective, space, knobs)


def worth(whole, objective, params):
    return objective.score(whole(params).metrics)


@pytest.mark.parametrize("digits", [1, 6])
@pytest.mark.parametrize("name", SPACES)
def test_an_answer_at_another_cutoff_is_the_one_that_is_given(name, digits):
    free, _ = SPACES[name]
    retriever = Scored(digits=digits)
    answer = retriever.retrieve(QUERIES, {"min_score": 0.0, "top_k": 20, "weight": 0.5})
    for least in (0.0, 0.3, 0.35, 0.7, 0.9, 1.2, 2.0):
        for more in ({}, {"top_k": 7}, {"weight": 0.31}):
            params = {"min_score": least, "top_k": 20, "weight": 0.5, **more}
            if not set(more) <= set(free.names):
                continue
            computed, given = answer_at(free, answer, params), retriever.retrieve(QUERIES, params)
            for row in range(len(QUERIES)):
                assert computed.ids(row) == given.ids(row)
                length = len(given.ids(row))
                np.testing.assert_array_equal(
                    computed.scores[row, :length], given.scores[row, :length]
                )
            np.testing.assert_array_equal(computed.context_tokens, given.context_tokens)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize(
    "min_score", [Real(0.1, 1.3), Real(0, 1, step=0.1), Categorical((0.5, 0.2, 0.9))]
)
def test_the_outcome_is_that_of_asking_the_chosen_cutoff(min_score, name, objective):
    knobs, more = SPACES[name]
    retriever, whole, free = make(knobs, min_score, OBJECTIVES[objective], more)
    outcome = free({})
    (asked,) = retriever.asked
    assert asked["min_score"] == (0.2 if isinstance(min_score, Categorical) else min_score.low)
    really = whole(outcome.params)
    assert outcome.metrics == really.metrics
    for metric, values in really.per_query.items():
        np.testing.assert_array_equal(outcome.per_query[metric], values)
    found = OBJECTIVES[objective].score(really.metrics)
    assert outcome.profile.highest == pytest.approx(found.objective, abs=1e-12)
    assert found.violation == 0.0


@pytest.mark.parametrize("objective", ["priced", "whole rankings"])
@pytest.mark.parametrize("name", ["alone", "with a prefix"])
def test_no_cutoff_is_better_than_the_chosen_one(name, objective):
    knobs, more = SPACES[name]
    _, whole, free = make(knobs, Real(0.1, 1.3), OBJECTIVES[objective], more)
    outcome = free({})
    best = worth(whole, OBJECTIVES[objective], outcome.params).objective
    for least in np.linspace(0.1, 1.3, 61).tolist():
        for depth in (2, 5, 20) if more else (20,):
            params = {"min_score": least, **({"top_k": depth} if more else {})}
            assert worth(whole, OBJECTIVES[objective], params).objective <= best + 1e-12
    assert {curve.name for curve in outcome.profile.curves} == set(knobs.names)


def test_the_curve_is_what_each_cutoff_is_worth():
    objective = OBJECTIVES["priced"]
    _, whole, free = make(CUT, Real(0.1, 1.3), digits=6)
    outcome = free({})
    (curve,) = outcome.profile.curves
    assert len(curve.at) > 100
    for at, value in list(zip(curve.at, curve.objective, strict=True))[::7]:
        really = worth(whole, objective, {"min_score": at}).objective
        assert value == pytest.approx(really, abs=1e-12)
    chosen = int(np.abs(np.array(curve.at) - outcome.params["min_score"]).argmin())
    assert curve.objective[chosen] == pytest.approx(outcome.profile.highest, abs=1e-12)
    assert curve.error[chosen] == pytest.approx(0.0, abs=1e-8)
    assert outcome.profile.luck >= 0


def test_a_value_lies_in_the_middle_of_its_step():
    retriever, _, free = make(CUT, Real(0.1, 1.3))  # scores in whole twentieths
    chosen = free({}).params["min_score"]
    scores = np.unique(retriever.retrieve(QUERIES, {"min_score": 0.1}).scores)
    below, above = scores[scores < chosen].max(), scores[scores >= chosen].min()
    assert chosen == pytest.approx((below + above) / 2)


def test_where_equal_cutoffs_keep_the_most_nothing_is_cut():
    free_of_charge = Objective({"recall@10": 1.0})
    _, _, free = make(CUT, Real(0.0, 1.3), free_of_charge)
    # No document that is left out can raise the recall, so none is, but for what is below all.
    assert free({}).params["min_score"] < 0.5


def test_answers_without_scores_tell_of_no_cutoff():
    rankings = replace(Scored().retrieve(QUERIES, {"min_score": 0.0}), scores=None)
    with pytest.raises(TunerError, match="the answers carry no scores"):
        rankings.at_least(0.5)
