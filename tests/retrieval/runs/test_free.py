"""What runs declare free is so: an answer that is computed is the one that the fusion gives."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tuner.core.corpus import Corpus, Document, Query
from tuner.core.space import Categorical, Integer, Real, SearchSpace
from tuner.datasets.run_files import read_run
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.free.asking import FreeEvaluator
from tuner.evaluation.objective import Objective
from tuner.retrieval.adapters.runs import Runs
from tuner.retrieval.adapters.runs.fusion import NORMALISATIONS
from tuner.retrieval.computed import answer_at
from tuner.run.free_branches import with_branches

QUERIES = [Query(f"q{n}", "") for n in range(20)]
IDS = [f"d{n:02}" for n in range(25)]
LEGS = ("a", "b", "c")
WEIGHTS = tuple(f"weight_{leg}" for leg in LEGS)
PRICED = Objective({"recall@5": 0.6, "mrr@10": 0.4}, {"context_tokens_per_1000": 2.0})
WHOLE = Objective({"map": 1.0})


def judgements():
    rng = np.random.default_rng(2)
    return {q.id: dict.fromkeys(rng.choice(IDS, 3).tolist(), 1.0) for q in QUERIES}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three runs of 0 to 8 of 25 documents; some scores are equal, and some below 0."""
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(7)
    judged = judgements()
    paths = {}
    for place, leg in enumerate(LEGS):
        run = {}
        for number, query in enumerate(QUERIES):
            chosen = rng.choice(IDS, (0, 1, 5, 8)[(number + place) % 4], replace=False).tolist()
            wanted = [id_ for id_ in judged[query.id] if number % 3 == place]
            scores = {id_: float(np.round(rng.normal(), 1)) for id_ in chosen}
            run[query.id] = {**scores, **dict.fromkeys(wanted, 1.5)}
        paths[leg] = folder / f"{leg}.json"
        paths[leg].write_text(json.dumps(run))
    corpus = Corpus(tuple(Document(id_, "", "word " * (3 + n % 5)) for n, id_ in enumerate(IDS)))
    return Runs.build(
        corpus,
        cache_dir=folder / "cache",
        legs={leg: str(path) for leg, path in paths.items()},
        read_run=lambda path: read_run(path).answers,
    ).telling_legs()


def assert_computed(runs, free, asked, settings):
    answer = runs.retrieve(QUERIES, asked)
    for setting in settings:
        params = {**asked, **setting}
        computed, given = answer_at(free, answer, params), runs.retrieve(QUERIES, params)
        for row in range(len(QUERIES)):
            assert computed.ids(row) == given.ids(row), (params, row)
        np.testing.assert_array_equal(computed.scores, given.scores)
        np.testing.assert_array_equal(computed.context_tokens, given.context_tokens)


def drawn(names, count=12):
    """Return settings by chance; a weight is often 0, which leaves its leg out, but never all."""
    rng = np.random.default_rng(4)
    for _ in range(count):
        values = np.where(rng.random(3) < 0.3, 0.0, rng.random(3))
        values[rng.integers(3)] = 1.0
        weights = dict(zip(WEIGHTS, values.tolist(), strict=True))
        yield {
            **{name: weights[name] for name in WEIGHTS if name in names},
            "top_k": int(rng.integers(1, 25)),
            **({"rrf_k": int(rng.integers(1, 200))} if "rrf_k" in names else {}),
        }


@pytest.mark.parametrize("depths", [{}, {"depth_a": 3, "depth_b": 6}])
@pytest.mark.parametrize("normalisation", NORMALISATIONS)
def test_every_weight_is_computed_for_every_normalisation(runs, normalisation, depths):
    searched = ("top_k", "normalisation", *WEIGHTS)
    free = runs.free_knobs({}, searched)
    assert free.names == ("top_k", *WEIGHTS)
    asked = {"normalisation": normalisation, "top_k": 25, **depths}
    assert_computed(runs, free, asked, drawn(searched))


@pytest.mark.parametrize("depths", [{}, {"depth_a": 3, "depth_b": 6}])
def test_weights_and_the_constant_of_ranks_are_computed(runs, depths):
    searched = ("top_k", "rrf_k", *WEIGHTS)
    free = runs.free_knobs({"fusion": "rrf"}, searched)
    assert free.names == ("top_k", "rrf_k", *WEIGHTS)
    asked = {"fusion": "rrf", "rrf_k": 60, "top_k": 25, **depths}
    assert_computed(runs, free, asked, drawn(searched))


@pytest.mark.parametrize("fixed", [{"weight_a": 0.0}, {"weight_a": 0.4}, {}])
def test_a_weight_that_is_not_searched_keeps_its_value(runs, fixed):
    searched = ("top_k", "weight_b", "weight_c")
    free = runs.free_knobs(fixed, searched)
    assert free.names == searched
    assert_computed(runs, free, {**fixed, "top_k": 25}, drawn(searched))


def test_the_constant_of_ranks_is_free_where_ranks_are_all_that_counts(runs):
    searched = ("top_k", "rrf_k", "fusion", *WEIGHTS)
    assert runs.free_knobs({}, searched).names == ("top_k", *WEIGHTS)
    assert runs.free_knobs({}, ("top_k", "rrf_k")).names == ("top_k",)
    assert runs.free_knobs({"fusion": "rrf"}, ("rrf_k",)).names == ("top_k", "rrf_k")


def profiled(runs, space, objective, fixed):
    names = (*objective.metric_names, "context_tokens")
    whole = Evaluator.build(runs, QUERIES, judgements(), names, fixed=fixed)
    free = runs.free_knobs(fixed, space.names).only(space.names)
    return whole, FreeEvaluator(whole, objective, space, free)


def best_of(whole, objective, settings):
    return max(objective.score(whole(params).metrics).objective for params in settings)


@pytest.mark.parametrize("objective", [PRICED, WHOLE], ids=["priced", "whole"])
@pytest.mark.parametrize("fusion", ["score", "rrf"])
def test_no_weights_of_two_legs_are_better_than_the_chosen_ones(runs, objective, fusion):
    space = SearchSpace(
        {"weight_a": Real(0, 1), "weight_b": Real(0, 1), "top_k": Integer(1, 12)},
        ("weight_a + weight_b > 0",),
    )
    whole, free = profiled(runs, space, objective, {"weight_c": 0.0, "fusion": fusion})
    outcome = free({})
    really = whole(outcome.params)
    assert outcome.metrics == really.metrics
    found = objective.score(really.metrics).objective
    assert outcome.profile.highest == pytest.approx(found, abs=1e-12)
    ratios = np.linspace(0.0, 1.0, 25)
    settings = [
        {"weight_a": float(share), "weight_b": float(1 - share), "top_k": top_k}
        for share in ratios
        for top_k in (1, 4, 12)
    ]
    assert best_of(whole, objective, settings) <= found + 1e-12


def test_every_constant_of_ranks_is_looked_at(runs):
    space = SearchSpace({"rrf_k": Integer(1, 40, scale="log"), "top_k": Integer(1, 12)})
    whole, free = profiled(runs, space, PRICED, {"fusion": "rrf", "weight_b": 0.3})
    outcome = free({})
    assert outcome.metrics == whole(outcome.params).metrics
    curve = next(curve for curve in outcome.profile.curves if curve.name == "rrf_k")
    assert curve.at == tuple(range(1, 41))
    top_k = outcome.params["top_k"]
    for k, value in zip(curve.at, curve.objective, strict=True):
        params = {"rrf_k": int(k), "top_k": top_k}
        assert value == pytest.approx(best_of(whole, PRICED, [params]), abs=1e-12)


def test_weights_and_the_constant_of_ranks_are_searched_in_turn(runs):
    names = {**{name: Real(0, 1) for name in WEIGHTS}, "rrf_k": Integer(1, 30)}
    space = SearchSpace({**names, "top_k": Integer(1, 12)})
    whole, free = profiled(runs, space, PRICED, {"fusion": "rrf"})
    outcome = free({})
    found = best_of(whole, PRICED, [outcome.params])
    assert outcome.profile.highest == pytest.approx(found, abs=1e-12)
    # No other value of one parameter alone is better.
    for name in WEIGHTS:
        values = np.linspace(0.0, 1.0, 21).tolist()
        settings = [{**outcome.params, name: value} for value in values]
        settings = [one for one in settings if any(one[weight] for weight in WEIGHTS)]
        assert best_of(whole, PRICED, settings) <= found + 1e-12
    settings = [{**outcome.params, "rrf_k": k} for k in range(1, 31)]
    assert best_of(whole, PRICED, settings) <= found + 1e-12


def test_what_is_left_to_ask_has_no_constraint_of_weights_alone():
    weights = {"weight_a": Real(0, 1), "weight_b": Real(0, 1)}
    constraints = ("weight_a + weight_b > 0", "depth_a <= depth_b")
    depths = {"depth_a": Integer(1, 8), "depth_b": Integer(1, 8)}
    left = SearchSpace({**weights, **depths}, constraints).without(weights)
    assert left.names == ("depth_a", "depth_b")
    assert left.constraints == ("depth_a <= depth_b",)


def test_weights_on_a_lattice_are_never_all_zero(runs):
    step = Real(0, 1, step=0.5)
    space = SearchSpace(dict.fromkeys(WEIGHTS, step) | {"top_k": Categorical((2, 5))})
    whole, free = profiled(runs, space, PRICED, {})
    outcome = free({})
    assert any(outcome.params[name] for name in WEIGHTS)
    assert outcome.metrics == whole(outcome.params).metrics
    found = PRICED.score(outcome.metrics).objective
    assert outcome.profile.highest == pytest.approx(found, abs=1e-12)


CONDITIONAL = SearchSpace(
    {
        "fusion": Categorical(("score", "rrf")),
        "normalisation": Categorical(("min_max", "z"), when={"fusion": ("score",)}),
        "rrf_k": Integer(1, 60, when={"fusion": ("rrf",)}),
        "weight_a": Real(0, 1),
        "top_k": Integer(1, 12),
    }
)


def in_branches(runs, space=CONDITIONAL):
    def declared(values, searched):
        return runs.free_knobs({"weight_b": 1.0, "weight_c": 0.0, **values}, searched)

    return with_branches(space, declared({}, space.names).only(space.names), declared)


def test_a_constant_of_ranks_under_a_condition_is_free_where_that_holds(runs):
    free = in_branches(runs)
    assert set(free.names) == {"top_k", "rrf_k", "weight_a"}
    assert free.at({"fusion": "rrf"}).mixing.rrf_k == "rrf_k"
    assert free.at({"fusion": "score", "normalisation": "z"}).weights == ("weight_a",)
    # What is not free in one branch any more is free in none.
    assert free.only(["rrf_k", "top_k"]).names == ("top_k",)
    names = (*PRICED.metric_names, "context_tokens")
    fixed = {"weight_b": 1.0, "weight_c": 0.0}
    whole = Evaluator.build(runs, QUERIES, judgements(), names, fixed=fixed)
    evaluate = FreeEvaluator(whole, PRICED, CONDITIONAL, free)
    for asked in ({"fusion": "rrf"}, {"fusion": "score", "normalisation": "z"}):
        outcome = evaluate(asked)
        there = {"fusion", "weight_a", "top_k", *asked, *(["rrf_k"] if len(asked) == 1 else [])}
        assert set(outcome.params) == there
        assert outcome.profile.asked == asked
        assert outcome.metrics == whole(outcome.params).metrics
        assert {curve.name for curve in outcome.profile.curves} == there - set(asked)
        found = PRICED.score(outcome.metrics).objective
        others = ({**outcome.params, "weight_a": w, "top_k": k} for w in (0.1, 0.9) for k in (2, 9))
        assert best_of(whole, PRICED, others) <= found + 1e-12


def test_without_a_condition_nothing_is_in_branches(runs):
    space = SearchSpace({"rrf_k": Integer(1, 60), "weight_a": Real(0, 1), "top_k": Integer(1, 9)})
    assert in_branches(runs, space).branches == ()


def test_what_decides_in_too_many_ways_leaves_all_as_it_was(runs):
    many = {**CONDITIONAL.parameters, "depth": Integer(1, 40)}
    many["rrf_k"] = Integer(1, 60, when={"fusion": ("rrf",), "depth": (3,)})
    assert in_branches(runs, SearchSpace(many)).names == ("top_k", "weight_a")
