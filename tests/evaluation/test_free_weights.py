"""Weights off the straight path: on a lattice, of three legs, and where no line tells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tuner.core.corpus import Query
from tuner.core.errors import TunerError
from tuner.core.rankings import Legs, Rankings
from tuner.core.space import Integer, Real, SearchSpace
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.free.profiling import Profiler
from tuner.evaluation.objective import Bounds, Objective
from tuner.retrieval.computed import answer_at
from tuner.retrieval.free import FreeKnobs, Mixing, Share

QUERIES = tuple(Query(f"q{n}", "", query_type=None, difficulty=None) for n in range(30))
DOCUMENTS = tuple(f"d{n:02}" for n in range(40))
PRICED = Objective({"recall@5": 0.5, "ndcg@10": 0.5}, {"context_tokens_per_1000": 2.0})
TWO = Mixing({"graph": Share("weight"), "text": Share("weight", is_rest=True)})
THREE = Mixing({name: Share(name) for name in ("a", "b", "c")})


class Silent:
    knobs = ()
    fingerprint = "f"


def made(mixing, objective, space, *, repeated=False):
    """Return a profiler, and an answer with legs; each relevant document is a little ahead."""
    rng = np.random.default_rng(1)
    judgements = {q.id: {DOCUMENTS[d]: 1.0 for d in rng.choice(40, 3)} for q in QUERIES}
    legs = len(mixing.shares)
    pool = np.tile(np.arange(40), (len(QUERIES), 1))
    scores = rng.random((legs, len(QUERIES), 40))
    for row, query in enumerate(QUERIES):
        for document in judgements[query.id]:
            scores[row % legs, row, int(document[1:])] += 0.5
    if repeated:
        pool = pool // 2
    names = (*objective.metric_names, "context_tokens")
    evaluator = Evaluator.build(Silent(), QUERIES, judgements, names)
    answer = Rankings(
        [q.id for q in QUERIES],
        DOCUMENTS,
        np.full((len(QUERIES), 10), -1),
        legs=Legs(tuple(mixing.shares), pool, scores, 4.0 + pool % 5),
    )
    return Profiler(evaluator, objective, space, FreeKnobs(("top_k",), mixing)), answer


def worth(profiler, answer, params):
    metrics = profiler.evaluator.measure(answer_at(profiler.free, answer, params)).metrics
    return profiler.objective.score(metrics)


def test_a_weight_with_a_step_takes_the_best_of_its_values():
    space = SearchSpace({"weight": Real(0, 1, step=0.25), "top_k": Integer(2, 10)})
    profiler, answer = made(TWO, PRICED, space)
    chosen, profile = profiler.profile(answer, {})
    values = [
        (worth(profiler, answer, {"weight": weight, "top_k": k}).objective, weight, k)
        for weight in (0.0, 0.25, 0.5, 0.75, 1.0)
        for k in range(2, 11)
    ]
    best = max(values, key=lambda value: value[0])
    assert (chosen["weight"], chosen["top_k"]) == best[1:]
    assert profile.highest == pytest.approx(best[0], abs=1e-12)


def test_of_three_legs_no_draw_of_weights_is_better():
    space = SearchSpace({**{name: Real(0, 1) for name in "abc"}, "top_k": Integer(2, 10)})
    profiler, answer = made(THREE, PRICED, space)
    chosen, profile = profiler.profile(answer, {})
    assert list(chosen) == ["a", "b", "c", "top_k"]
    assert worth(profiler, answer, chosen).objective == pytest.approx(profile.highest, abs=1e-12)
    rng = np.random.default_rng(2)
    for _ in range(150):
        params = {**dict(zip("abc", rng.random(3).tolist(), strict=True)), "top_k": 5}
        assert worth(profiler, answer, params).objective <= profile.highest
    assert [curve.name for curve in profile.curves] == ["a", "b", "c", "top_k"]


def test_a_constraint_is_kept_by_weights_evaluated_one_by_one():
    bound = Objective(PRICED.weights, {}, {"context_tokens": Bounds(max=30.0)})
    space = SearchSpace({"weight": Real(0, 1), "top_k": Integer(2, 10)})
    profiler, answer = made(TWO, bound, space)
    chosen, profile = profiler.profile(answer, {})
    score = worth(profiler, answer, chosen)
    assert score.violation == 0.0
    assert score.objective == pytest.approx(profile.highest, abs=1e-12)
    assert chosen["top_k"] in (4, 5)  # of 4 to 8 tokens each, 6 on average
    same_depth = [
        worth(profiler, answer, {"weight": weight, "top_k": chosen["top_k"]})
        for weight in np.linspace(0, 1, 101).tolist()
    ]
    assert max(s.objective for s in same_depth if s.violation == 0) == score.objective


def test_documents_with_several_passages_are_evaluated_one_by_one():
    space = SearchSpace({"weight": Real(0, 1), "top_k": Integer(2, 10)})
    profiler, answer = made(TWO, PRICED, space, repeated=True)
    chosen, profile = profiler.profile(answer, {})
    ranked = answer_at(profiler.free, answer, chosen)
    assert all(len(set(ranked.ids(row))) == chosen["top_k"] for row in range(len(QUERIES)))
    assert profile.looked_at == 101 + 9 + 101


def test_an_answer_without_legs_is_no_answer():
    space = SearchSpace({"weight": Real(0, 1), "top_k": Integer(2, 10)})
    profiler, answer = made(TWO, PRICED, space)
    nothing = Rankings(answer.query_ids, DOCUMENTS, answer.documents)
    with pytest.raises(TunerError, match="the answers carry no legs"):
        profiler.profile(nothing, {})


CONSTANT = Mixing({"graph": Share("weight"), "text": Share(constant=1.0)})


def test_a_leg_may_have_the_same_share_always():
    space = SearchSpace({"weight": Real(0, 4), "top_k": Integer(2, 10)})
    profiler, answer = made(CONSTANT, PRICED, space)
    graph, text = answer.legs.scores
    for weight in (0.0, 0.37, 1.0, 3.3):
        ranked = np.argsort(-(weight * graph + text), axis=1, kind="stable")[:, :7]
        computed = answer_at(profiler.free, answer, {"weight": weight, "top_k": 7})
        np.testing.assert_array_equal(computed.documents, ranked)
    chosen, profile = profiler.profile(answer, {})
    assert worth(profiler, answer, chosen).objective == pytest.approx(profile.highest, abs=1e-12)
    for weight in np.linspace(0, 4, 101).tolist():
        for top_k in (2, 5, 10):
            params = {"weight": weight, "top_k": top_k}
            assert worth(profiler, answer, params).objective <= profile.highest + 1e-12


def test_all_legs_count_alike_by_their_ranks_where_no_weight_is_named():
    ranks = FreeKnobs(("top_k",), Mixing({}, rrf_k="k"))
    space = SearchSpace({"k": Integer(1, 60), "top_k": Integer(2, 10)})
    profiler, answer = made(THREE, PRICED, space)
    profiler = replace(profiler, free=ranks)
    for k in (1, 7, 60):
        fused = np.zeros(answer.legs.scores.shape[1:])
        for leg in answer.legs.scores:
            fused += 1.0 / (k + 1 + np.argsort(np.argsort(-leg, axis=1), axis=1))
        ranked = np.argsort(-fused, axis=1, kind="stable")[:, :6]
        computed = answer_at(ranks, answer, {"k": k, "top_k": 6})
        np.testing.assert_array_equal(computed.documents, ranked)
    chosen, profile = profiler.profile(answer, {})
    values = [
        worth(profiler, answer, {"k": k, "top_k": chosen["top_k"]}).objective for k in range(1, 61)
    ]
    assert chosen["k"] == 1 + int(np.argmax(values))
    assert profile.highest == max(values)
