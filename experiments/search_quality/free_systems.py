"""How many queries LightRAG, and a function with legs, are asked to come within 1 % of the best.

    python experiments/search_quality/free_systems.py function [--seeds 3]
    python experiments/search_quality/free_systems.py path/to/musique [--seeds 3]

As `free_knobs.py`, with the same objective and split. `function` is `experiments/my_function/legs.py` on atlas: which
words are asked for and how much rare ones weigh is searched, `title_weight` and `top_k` are computed. Of a path,
LightRAG answers the queries to tune on, with the space of `lightrag_surface.py` and `chunk_top_k`, which is computed;
that needs `pip install '.[lightrag]' wordllama`. Both run where `experiments` can be imported from (`PYTHONPATH=.`).
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import lightrag_surface
import numpy as np
from free_knobs import heading, report
from surfaces import OBJECTIVE

from tuner.core.space import SearchSpace
from tuner.datasets import open_dataset, split_queries
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.free.asking import FreeEvaluator
from tuner.retrieval.adapters.function import Function
from tuner.retrieval.free import FreeKnobs, Mixing, Share
from tuner.run.systems import cache_dir

OF_FUNCTION = SearchSpace.from_mapping(
    {
        "long_words": {"type": "integer", "low": 2, "high": 8},
        "rare": {"type": "real", "low": 0.0, "high": 3.0},
        "title_weight": {"type": "real", "low": 0.0, "high": 1.0},
        "top_k": {"type": "integer", "low": 3, "high": 30},
    }
)
LEGS = FreeKnobs(
    ("top_k",),
    Mixing(
        {"title": Share("title_weight"), "text": Share("title_weight", is_rest=True)},
        normalisation="max",
    ),
)
OF_LIGHTRAG = SearchSpace.from_mapping(
    {
        **lightrag_surface.SPACE.to_mapping(),
        "chunk_top_k": {"type": "integer", "low": 3, "high": 30},
    }
)
# So many of the settings that are recorded, with a fixed `chunk_top_k`, are looked at for the best.
BEST_RECORDED = 60


def tuned_on(dataset, by):
    ids, _ = split_queries(dataset.queries, holdout=0.5, stratify_by=by, seed=42)
    by_id = {query.id: query for query in dataset.queries}
    return [by_id[id_] for id_ in ids]


def best_of(places):
    """Return what finds the best of these places of what is asked, the rest exact."""
    return lambda free: max(OBJECTIVE.score(free(at).metrics).objective for at in places)


def function(seeds):
    dataset = open_dataset("builtin:atlas")
    retriever = Function.build(
        dataset.corpus, function="experiments.my_function.legs:search", space=OF_FUNCTION
    )
    queries = tuned_on(dataset, ["query_type", "difficulty"])
    whole = Evaluator.build(retriever, queries, dataset.qrels, OBJECTIVE.metric_names)
    places = [
        {"long_words": letters, "rare": float(rare)}
        for letters in range(2, 9)
        for rare in np.linspace(0, 3, 13)
    ]
    free = FreeEvaluator(whole, OBJECTIVE, OF_FUNCTION, LEGS)
    report("function with legs, atlas", free, best_of(places), checked=25, seeds=seeds)


def lightrag(path, seeds):
    from tuner.retrieval.adapters.lightrag import Lightrag

    dataset = open_dataset(path)
    retriever = Lightrag.build(
        dataset.corpus, cache_dir=cache_dir(), embedder="experiments.lightrag.embedders:wordllama"
    )
    queries = tuned_on(dataset, ["query_type"])
    retriever.prepare(queries)
    whole = Evaluator.build(retriever, queries, dataset.qrels, OBJECTIVE.metric_names)
    free = FreeEvaluator(whole, OBJECTIVE, OF_LIGHTRAG, retriever.free_knobs({}, OF_LIGHTRAG.names))
    recorded, _ = lightrag_surface.value_of(OBJECTIVE)
    places = sorted(lightrag_surface.settings(), key=recorded, reverse=True)[:BEST_RECORDED]
    report("LightRAG, musique", free, best_of(places), checked=10, seeds=seeds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("system", help="`function`, or a data set with its triples for LightRAG")
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    heading()
    if given.system == "function":
        function(given.seeds)
    else:
        lightrag(given.system, given.seeds)


if __name__ == "__main__":
    main()
