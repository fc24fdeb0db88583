"""Surfaces on which search backends are compared: the built-in engine's, recorded and made-up ones.

The name of a surface of a data set is the set's path and, after a `#`, which queries and
which parameters: `builtin:atlas#tune`, `#held-out`, `#50` (fifty of the queries to tune on), `#nine` (the engine's
nine query parameters). The split, space and objective of the first three are those of `configs/graphrag.yaml`.
`lightrag` is the recorded surface of `lightrag_surface.py`, and a file `….npz` one of `index_surfaces.py`.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from functools import cache

import index_surfaces
import lightrag_surface
import numpy as np

from tuner.core.space import Categorical, Integer, Real, SearchSpace
from tuner.datasets import open_dataset, split_queries
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.objective import Objective
from tuner.retrieval.hybrid import Hybrid
from tuner.run.systems import cache_dir

FOUR = {
    "graph_weight": {"type": "real", "low": 0.0, "high": 1.0},
    "max_hops": {"type": "integer", "low": 1, "high": 5},
    "top_k": {"type": "integer", "low": 3, "high": 30},
    "temperature": {"type": "real", "low": 0.01, "high": 1.0, "scale": "log"},
}
NINE = {
    **FOUR,
    "seeds": {"type": "integer", "low": 2, "high": 8},
    "hop_decay": {"type": "real", "low": 0.2, "high": 1.0},
    "passage_weight": {"type": "real", "low": 0.0, "high": 2.0},
    "rerank": {"type": "categorical", "choices": ["none", "lexical"]},
    "rerank_depth": {"type": "integer", "low": 10, "high": 40, "when": {"rerank": ["lexical"]}},
}
BASELINE = {"graph_weight": 0.5, "max_hops": 2, "top_k": 10, "temperature": 0.1}
MORE = {"seeds": 8, "hop_decay": 0.5, "passage_weight": 0.0, "rerank": "none"}
OBJECTIVE = Objective(
    {"recall@10": 0.5, "mrr@10": 0.3, "ndcg@10": 0.2}, {"context_tokens_per_1000": 0.02}
)
METRICS = ("recall@10", "mrr@10", "ndcg@10", "context_tokens")
PARTS = ("tune", "held-out", "50", "nine")
SEED = 42
MADE_UP = ("hills 10", "hills 20", "hills 4 noisy", "branches", "additive", "branching", "shifting")
# A dense table, and then steps around its best points: the best value known.
DENSE = {"graph_weight": 51, "temperature": 21, "top_k": range(3, 11)}
STEPS = (0.05, 0.02, 0.01, 0.005)


@dataclass(frozen=True)
class Surface:
    """An objective over a space, the best value known of it, and a point to begin with."""

    name: str
    space: SearchSpace
    value: object = field(repr=False)
    optimum: float
    baseline: dict


def named(paths, on):
    """Return the names of the surfaces that paths stand for, or those of them that are wanted."""
    names = []
    for path in paths:
        if path == "made-up":
            names += MADE_UP
        elif path in ("lightrag", *MADE_UP) or path.endswith(".npz") or "#" in path:
            names.append(path)
        else:
            names += [f"{path}#{part}" for part in PARTS]
    return [name for name in names if not on or name in on or name.partition("#")[2] in on]


def surfaces(name, folder):
    """Return one surface by its name; the best value known is kept in a file in ``folder``."""
    if name in MADE_UP:
        return {name: made_up(name)}
    if name == "lightrag" or name.endswith(".npz"):
        return {name: recorded(name)}
    path, _, part = name.partition("#")
    value, space, baseline = of_engine(path, part)
    kept = folder / "best_known.json"
    known = json.loads(kept.read_text()) if kept.exists() else {}
    if name not in known:
        known[name] = best_known(value, space, part)
        kept.write_text(json.dumps(known, indent=1))
    return {name: Surface(name, space, value, known[name], baseline)}


def recorded(name):
    """Return a surface that is a table: LightRAG's query parameters, or those of an index too."""
    if name == "lightrag":
        value, best = lightrag_surface.value_of(OBJECTIVE)
        space = lightrag_surface.SPACE
        return Surface(name, space, value, best, space.canonical(lightrag_surface.BASELINE))
    one = index_surfaces.recorded(name)
    start = {**BASELINE, "chunk_words": 0, "embedding_dim": 0, "bm25_k1": 1.2, "bm25_b": 0.75}
    return Surface(name, one.space, one.value, one.optimum, one.space.canonical(start))


@cache
def _opened(path):
    dataset = open_dataset(path)
    retriever = Hybrid.build(dataset.corpus, cache_dir=cache_dir())
    retriever.prepare(dataset.queries)
    return dataset, retriever


def of_engine(path, part):
    """Return a surface's objective, space and baseline."""
    dataset, retriever = _opened(path)
    tune, held_out = split_queries(
        dataset.queries, holdout=0.5, stratify_by=["query_type", "difficulty"], seed=SEED
    )
    ids = {"held-out": held_out, "50": tune[:: max(1, len(tune) // 50)][:50]}.get(part, tune)
    by_id = {query.id: query for query in dataset.queries}
    evaluate = Evaluator.build(retriever, [by_id[i] for i in ids], dataset.qrels, METRICS)
    space = SearchSpace.from_mapping(NINE if part == "nine" else FOUR)
    baseline = {**BASELINE, **MORE} if part == "nine" else BASELINE

    def value(params):
        return OBJECTIVE.score(evaluate(params).metrics).objective

    return value, space, space.canonical(baseline)


def best_known(value, space, part):
    """Return the best value of a dense table (or of many draws), and of steps around its best."""
    rng = np.random.default_rng(0)
    if part == "nine":
        points = [space.decode(row) for row in rng.random((6000, len(space.names)))]
    else:
        weights = np.linspace(0, 1, DENSE["graph_weight"])
        warmths = np.geomspace(0.01, 1, DENSE["temperature"])
        points = [
            space.canonical({"graph_weight": w, "max_hops": h, "top_k": k, "temperature": t})
            for w, h, k, t in itertools.product(weights, range(1, 6), DENSE["top_k"], warmths)
        ]
    ranked = sorted(((value(params), i) for i, params in enumerate(points)), reverse=True)
    best = [(worth, points[i]) for worth, i in ranked[:20]]
    for step in (0.1, *STEPS) if part == "nine" else STEPS:
        for _, params in list(best):
            rows = space.encode(params) + rng.normal(0.0, step, (30, len(space.names)))
            near = [space.decode(row) for row in np.clip(rows, 0.0, 1.0)]
            best += [(value(params), params) for params in near]
        best = sorted(best, key=lambda one: -one[0])[:20]
    return best[0][0]


def made_up(name):
    """Return a surface that is a formula, with its optimum."""
    if name == "branches":
        return branches()
    for make in index_surfaces.MADE_UP:
        if make.__name__ == name:
            one = make()
            middle = one.space.decode(np.full(len(one.space.names), 0.5))
            return Surface(name, one.space, one.value, one.optimum, middle)
    kind, dimensions, *noisy = name.split()
    assert kind == "hills"
    return hills(name, int(dimensions), noise=0.01 if noisy else 0.0)


def hills(name, dimensions, *, noise):
    """Return one broad hill and a lower one, of which few parameters matter much.

    The noise is a fixed function of the point, as that of an objective over few queries is.
    """
    rng = np.random.default_rng(dimensions)
    space = SearchSpace({f"x{i}": Real(0.0, 1.0) for i in range(dimensions)})
    weights = 0.6 ** np.arange(dimensions)
    weights = weights / weights.sum()
    high, low = rng.uniform(0.15, 0.85, (2, dimensions))
    waves = rng.normal(0.0, 60.0, (40, dimensions))
    phases = rng.uniform(0, 2 * np.pi, 40)

    def smooth(row):
        first = np.exp(-8 * (weights * (row - high) ** 2).sum())
        second = 0.8 * np.exp(-8 * (weights * (row - low) ** 2).sum())
        return 0.6 + 0.3 * max(first, second)

    def value(params):
        row = space.encode(params)
        jitter = noise * np.sqrt(2 / 40) * np.cos(waves @ row + phases).sum()
        return float(smooth(row) + jitter)

    return Surface(name, space, value, 0.9 + 2 * noise, space.decode(np.full(dimensions, 0.5)))


def branches():
    """Return a surface of kinds of a system with parameters of their own, and a constraint."""
    space = SearchSpace(
        {
            "mode": Categorical(("text", "graph", "mix")),
            "first": Integer(5, 100, scale="log"),
            "top_k": Integer(3, 30),
            "hops": Integer(1, 4, when={"mode": ("graph", "mix")}),
            "decay": Real(0.1, 1.0, when={"mode": ("graph", "mix")}),
            "weight": Real(0.0, 1.0, when={"mode": ("mix",)}),
            "stemmer": Categorical(("none", "light", "full")),
        },
        ("top_k <= first",),
    )
    by_mode = {"text": 0.0, "graph": 0.02, "mix": 0.06}
    by_stemmer = {"none": 0.0, "light": 0.02, "full": 0.01}

    def value(params):
        at = {
            name: space.parameters[name].position(params[name])
            for name in ("first", "top_k", "hops", "decay", "weight")
            if name in params
        }
        worth = 0.72 + by_mode[params["mode"]] + by_stemmer[params["stemmer"]]
        worth -= 0.1 * (at["first"] - 0.7) ** 2 + 0.3 * (at["top_k"] - 0.3) ** 2
        if params["mode"] == "text":
            return worth
        worth -= 0.08 * (at["hops"] - 0.6) ** 2 + 0.1 * (at["decay"] - 0.4) ** 2
        return worth if params["mode"] == "graph" else worth - 0.25 * (at["weight"] - 0.65) ** 2

    start = {"mode": "mix", "first": 50, "top_k": 10, "hops": 2, "decay": 0.5, "weight": 0.5}
    return Surface("branches", space, value, 0.8, space.canonical({**start, "stemmer": "none"}))
