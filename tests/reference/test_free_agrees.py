"""The exact searches agree with weights and cut-offs evaluated one by one, at every depth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tuner.core.corpus import Query
from tuner.core.rankings import NO_DOCUMENT, Legs, Rankings
from tuner.core.space import Integer, Real, SearchSpace
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.free.cut import cut_steps
from tuner.evaluation.free.mixture import lines_of, looks_to, worth_of
from tuner.evaluation.free.profiling import Profiler
from tuner.evaluation.free.sweep import sweep
from tuner.evaluation.objective import Objective
from tuner.retrieval.computed import answer_at
from tuner.retrieval.free import FreeKnobs, Mixing, Share
from tuner.retrieval.hybrid.fusion import SCORE_STEP

QUERIES = tuple(Query(f"q{n}", "", query_type=None, difficulty=None) for n in range(24))
DOCUMENTS = tuple(f"d{n:02}" for n in range(60))
SHARES = {"graph": Share("weight"), "text": Share("weight", is_rest=True)}
WEIGHTS = np.linspace(0.0, 1.0, 1001)[1:-1]
OBJECTIVES = {
    "priced": Objective(
        {"recall@5": 0.5, "mrr@10": 0.3, "ndcg@10": 0.2}, {"context_tokens_per_1000": 3.0}
    ),
    "whole rankings": Objective({"map": 1.0, "ndcg": 1.0}, {"context_tokens": 0.001}),
    "free of charge": Objective({"mrr": 0.5, "success@3": 0.5}),
}


def answers(kind, seed=3):
    """Return rankings of two legs; a third of the scores is missing, and one query has no graph."""
    rng = np.random.default_rng(seed)
    scores = rng.random((2, len(QUERIES), 40)).astype(kind)
    scores[rng.random(scores.shape) < 0.3] = 0.0
    scores[0, 5] = 0.0
    pool = np.sort(rng.permuted(np.tile(np.arange(60), (len(QUERIES), 1)), axis=1)[:, :40])
    pool[7, 30:] = -1
    scores[:, 7, 30:] = 0.0
    legs = Legs(("graph", "text"), pool, scores, 5.0 + pool % 7.0)
    nothing = np.full((len(QUERIES), 12), -1)
    return Rankings([q.id for q in QUERIES], DOCUMENTS, nothing, legs=legs)


def judgements():
    rng = np.random.default_rng(8)
    found = {q.id: {DOCUMENTS[d]: 1.0 + d % 3 for d in rng.choice(60, 6)} for q in QUERIES}
    return {**found, "q9": {}}  # one that is undefined


class Silent:
    knobs = ()
    fingerprint = "f"


def prepared(kind, step, objective):
    names = (*objective.metric_names, "context_tokens")
    evaluator = Evaluator.build(Silent(), QUERIES, judgements(), names)
    mixing = Mixing(SHARES, step=step, least=0.0, graph="graph")
    return evaluator, FreeKnobs(("top_k",), mixing), answers(kind)


def one_by_one(evaluator, free, rankings, objective, weight, depths):
    deepest = answer_at(free, rankings, {"weight": weight, "top_k": max(depths)})
    outcomes = [evaluator.measure(deepest.first(depth)) for depth in depths]
    return np.array([objective.score(outcome.metrics).objective for outcome in outcomes])


def is_close_to_a_crossing(legs, weight, within):
    """Say whether two documents of a query have nearly the same score at a weight."""
    graph, text = legs.scores.astype(np.float64)
    silent = ~graph.any(axis=1)
    graph[silent] = text[silent]
    mixed = np.sort(graph * weight + text * (1 - weight), axis=1)
    gaps = np.diff(mixed, axis=1)
    return bool(((gaps < within) & (mixed[:, 1:] > 0)).any())


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize(("kind", "step"), [(np.float32, SCORE_STEP), (np.float64, 0.0)])
def test_every_weight_is_worth_what_evaluating_it_says(name, kind, step, every):
    objective = OBJECTIVES[name]
    evaluator, free, rankings = prepared(kind, step, objective)
    worth = worth_of(evaluator, objective)
    lines = lines_of(evaluator, free.mixing, rankings, {}, "weight", (0.0, 1.0), needs_tokens=True)
    depths = [1, 2, 3, 5, 8, 10]
    steps = sweep(lines, worth, depths, looks_to(worth) or max(depths))
    assert [one.depth for one in steps] == depths
    excused = 0
    for weight in WEIGHTS[::every]:
        found = np.array([one.objective[one.step_at(weight)] for one in steps])
        really = one_by_one(evaluator, free, rankings, objective, float(weight), depths)
        if np.abs(found - really).max() > 1e-9:
            # Scores within a step count as equal, and so the lower column comes first.
            assert is_close_to_a_crossing(rankings.legs, weight, 2 * step), (weight, found, really)
            excused += 1
    assert excused <= 0.2 * len(WEIGHTS[::every])


def test_values_by_query_and_errors_are_those_of_the_rankings():
    objective = OBJECTIVES["priced"]
    evaluator, free, rankings = prepared(np.float64, 0.0, objective)
    worth = worth_of(evaluator, objective)
    lines = lines_of(evaluator, free.mixing, rankings, {}, "weight", (0.0, 1.0), needs_tokens=True)
    (steps,) = sweep(lines, worth, [4], 10)

    def by_query(weight):
        outcome = evaluator.measure(answer_at(free, rankings, {"weight": weight, "top_k": 4}))
        return objective.by_query(outcome.per_query)

    reference = by_query(0.3)
    errors = steps.errors(reference)
    for weight in (0.02, 0.31, 0.5, 0.97):
        values = by_query(weight)
        np.testing.assert_allclose(steps.by_query(weight), values, atol=1e-12)
        difference = (values - reference)[~np.isnan(values)]
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        assert errors[steps.step_at(weight)] == pytest.approx(error, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "count"),
    [*((name, 101) for name in OBJECTIVES), pytest.param("priced", 1001, marks=pytest.mark.slow)],
)
def test_no_weight_of_so_many_is_better_than_the_chosen_one(name, count):
    objective = OBJECTIVES[name]
    evaluator, free, rankings = prepared(np.float64, 0.0, objective)
    space = SearchSpace({"weight": Real(0, 1), "top_k": Integer(2, 12)})
    profiler = Profiler(evaluator, objective, space, free)
    chosen, profile = profiler.profile(rankings, {})
    (at_it,) = one_by_one(evaluator, free, rankings, objective, chosen["weight"], [chosen["top_k"]])
    assert at_it == pytest.approx(profile.highest, abs=1e-12)
    depths = list(range(2, 13))
    for weight in np.linspace(0, 1, count):
        really = one_by_one(evaluator, free, rankings, objective, float(weight), depths)
        assert really.max() <= at_it + 1e-9
    assert [curve.name for curve in profile.curves] == ["weight", "top_k"]
    assert all(max(curve.objective) <= at_it + 1e-9 for curve in profile.curves)


def kept(rankings, least, depth):
    """Return a ranking without what scores less than a cut-off, document by document."""
    answers, tokens = [], []
    for documents, scores, each in zip(
        rankings.documents, rankings.scores, rankings.tokens, strict=True
    ):
        row = [
            (DOCUMENTS[document], count)
            for document, score, count in zip(documents, scores, each, strict=True)
            if document != NO_DOCUMENT and score >= least
        ][:depth]
        answers.append([id_ for id_, _ in row])
        tokens.append(sum(count for _, count in row))
    return Rankings.from_ids(rankings.query_ids, answers, context_tokens=np.array(tokens))


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_cutoff_is_worth_what_evaluating_it_says(name, every):
    objective = OBJECTIVES[name]
    evaluator, free, rankings = prepared(np.float64, 0.0, objective)
    ranked = answer_at(free, rankings, {"weight": 0.4, "top_k": 40})
    worth = worth_of(evaluator, objective)
    depths = [1, 2, 5, 10, 40]
    last = looks_to(worth) or max(depths)
    steps = cut_steps(evaluator, ranked, worth, depths, (0.1, 0.8), looks_to=last)
    inside = np.unique(ranked.scores[(ranked.scores > 0.1) & (ranked.scores < 0.8)])
    for least in [0.1, *inside[::every].tolist(), 0.8]:
        for depth, one in zip(depths, steps, strict=True):
            outcome = evaluator.measure(kept(ranked, least, depth))
            really = objective.score(outcome.metrics).objective
            assert one.objective[one.step_at(least)] == pytest.approx(really, abs=1e-12)
            by_query = objective.by_query(outcome.per_query)
            np.testing.assert_allclose(one.by_query(least), by_query, atol=1e-12)


MIXINGS = {
    "constant": Mixing({"graph": Share("weight"), "text": Share(constant=0.7)}),
    "ranks": Mixing(SHARES, rrf_k="k"),
    "by weight": Mixing(SHARES, normalisation="none", needs_share=True),
}


def mixed_plainly(legs, row, name, weight):
    """Return the ids of one query, best first: one document and one leg after the other."""
    documents, found = legs.documents[row].tolist(), []
    for leg in legs.scores[:, row].tolist():
        scores = {d: s for d, s in zip(documents, leg, strict=True) if d >= 0 and not np.isnan(s)}
        if name == "ranks":
            ranked = sorted(scores, key=lambda d, scores=scores: (-scores[d], d))
            scores = {d: 1 / (60 + rank) for rank, d in enumerate(ranked, start=1)}
        found.append(scores)
    graph, text = found
    rest = 0.7 if name == "constant" else 1.0 - weight
    total = {d: graph.get(d, 0.0) * weight + text.get(d, 0.0) * rest for d in {*graph, *text}}
    return [DOCUMENTS[d] for d in sorted(total, key=lambda d: (-total[d], d))]


@pytest.mark.parametrize("name", MIXINGS)
def test_other_ways_to_mix_are_worth_what_evaluating_them_says(name):
    objective = OBJECTIVES["priced"]
    evaluator, _, rankings = prepared(np.float64, 0.0, objective)
    legs = rankings.legs
    scores = np.where((legs.scores > 0) & (legs.documents >= 0), legs.scores, np.nan)
    legs = Legs(legs.names, legs.documents, scores, legs.tokens)
    rankings = Rankings(rankings.query_ids, DOCUMENTS, rankings.documents, legs=legs)
    if name == "constant":
        rankings = replace(rankings, legs=replace(legs, scores=np.nan_to_num(scores)))
    worth = worth_of(evaluator, objective)
    params, bounds = {"k": 60}, (0.0, 1.0)
    mixing = MIXINGS[name]
    lines = lines_of(evaluator, mixing, rankings, params, "weight", bounds, needs_tokens=True)
    steps = sweep(lines, worth, [3, 10], 10)
    for weight in WEIGHTS[::37].tolist():
        answers = [mixed_plainly(legs, row, name, weight) for row in range(len(QUERIES))]
        for one in steps:
            ids = [answer[: one.depth] for answer in answers]
            tokens = [sum(5.0 + int(id_[1:]) % 7.0 for id_ in row) for row in ids]
            given = Rankings.from_ids(rankings.query_ids, ids, context_tokens=np.array(tokens))
            really = objective.score(evaluator.measure(given).metrics).objective
            assert one.objective[one.step_at(weight)] == pytest.approx(really, abs=1e-9)
