"""What tuning the index adds to tuning the queries, by searches with equal numbers of trials.

    python experiments/search_quality/index_knobs.py builtin:atlas path/to/set … [--seeds 5]

For every data set and seed the queries are split in two halves. Three searches with the same
backend and the same number of trials tune on the one half: over ``graph_weight``, ``max_hops``,
``top_k`` and ``temperature`` (four), over these and the engine's other parameters of queries
(query), and over all of them and those of its index (together). The best of each is measured on the
other half. Differences are paired by query; the 95 % interval is a t interval over the queries of
all holdouts (a query that is held out under several seeds counts once, by its mean difference).
``--also NAME …`` leaves all other parameters out, to see what some bring.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from search_quality import DEFAULT, METRICS, OBJECTIVE, SHOWN, paired, shown

from tuner.backends.by_index import suggest
from tuner.config import Config
from tuner.core import registry
from tuner.core.space import SearchSpace
from tuner.core.trial import Trial, TrialState
from tuner.datasets import open_dataset, split_queries
from tuner.evaluation.evaluator import Evaluator
from tuner.run.systems import build_retriever

FOUR = {
    "graph_weight": {"type": "real", "low": 0.0, "high": 1.0},
    "max_hops": {"type": "integer", "low": 1, "high": 5},
    "top_k": {"type": "integer", "low": 5, "high": 30},
    "temperature": {"type": "real", "low": 0.01, "high": 1.0, "scale": "log"},
}
QUERY = {
    "seeds": {"type": "integer", "low": 2, "high": 8},
    "hop_decay": {"type": "real", "low": 0.2, "high": 1.0},
    "passage_weight": {"type": "real", "low": 0.0, "high": 2.0},
    "rerank": {"type": "categorical", "choices": ["none", "lexical"]},
    "rerank_depth": {"type": "integer", "low": 10, "high": 40, "when": {"rerank": ["lexical"]}},
}
INDEX = {
    "bm25_k1": {"type": "real", "low": 0.4, "high": 2.4, "step": 0.4},
    "bm25_b": {"type": "real", "low": 0.2, "high": 1.0, "step": 0.2},
    "names": {"type": "categorical", "choices": ["both", "titles", "triples"]},
    "hub_cut": {"type": "categorical", "choices": [0.01, 0.02, 0.05]},
    "edge_weight": {"type": "categorical", "choices": [1.0, 3.0, 10.0, 30.0]},
    "synonym_threshold": {"type": "categorical", "choices": [0.0, 0.8, 0.9]},
    "embedder": {"type": "categorical", "choices": ["none", "lsa"]},
    "dense_weight": {"type": "real", "low": 0.0, "high": 1.0, "when": {"embedder": ["lsa"]}},
    "chunk_tokens": {"type": "categorical", "choices": [0, 60, 120]},
}
TRIALS = 60


def engine(dataset, space):
    """Return the engine over a data set's index parameters, its queries prepared."""
    config = Config.model_validate({"space": space.to_mapping(), "dataset": {"path": "-"}})
    retriever = build_retriever(config, space, dataset.corpus)
    retriever.prepare(dataset.queries)
    return retriever


def search(backend, space, evaluate, trials, seed):
    """Ask one trial at a time; return the history."""
    history = []
    while len(history) < trials:
        points = suggest(backend, space, history, count=1, seed=seed)
        if not points:
            break
        outcome = evaluate(points[0])
        score = OBJECTIVE.score(outcome.metrics).objective
        history.append(
            Trial(
                number=len(history),
                arm="search",
                params=points[0],
                state=TrialState.FINISHED,
                objective=score,
                metrics=outcome.metrics,
                index=outcome.index,
            )
        )
    return history


def halves(dataset, retriever, seed):
    """Return the evaluators of the half that is tuned on and of the one that is held out."""
    parts = split_queries(
        dataset.queries, holdout=0.5, stratify_by=["query_type", "difficulty"], seed=seed
    )
    by_id = {query.id: query for query in dataset.queries}
    made = [
        Evaluator.build(
            retriever,
            [by_id[id_] for id_ in ids],
            dataset.qrels,
            METRICS,
            documents=dataset.corpus.documents,
        )
        for ids in parts
    ]
    return made, parts[1]


def one_seed(dataset, spaces, retrievers, arguments, seed):
    """Return, by name, what the best of each search comes to on both halves, and its indexes."""
    results = {}
    for name, space in spaces.items():
        (tune, holdout), ids = halves(dataset, retrievers[name], seed)
        if name == "default":
            best, indexes = dict(DEFAULT), 1
        else:
            backend = registry.load("backends", arguments.backend)(budget=arguments.trials)
            history = search(backend, space, tune, arguments.trials, seed)
            best = max(history, key=lambda trial: trial.objective).params
            indexes = len({trial.index.name for trial in history})
        on_tune, on_holdout = tune(best), holdout(best)
        results[name] = {
            "params": best,
            "indexes": indexes,
            "tune": {metric: on_tune.metrics[metric] for metric in SHOWN},
            "holdout": {metric: on_holdout.metrics[metric] for metric in SHOWN},
            "per_query": {
                metric: dict(zip(ids, on_holdout.per_query[metric], strict=True))
                for metric in SHOWN
            },
        }
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--backend", default="tpe")
    parser.add_argument("--also", nargs="*", default=[*QUERY, *INDEX])
    arguments = parser.parse_args()
    query, index = (
        {name: spec for name, spec in part.items() if name in arguments.also}
        for part in (QUERY, INDEX)
    )
    print("| data set | searched | indexes | tune nDCG@10 | held out | recall@5 | less four | s |")
    print("| --- | --- | ---: | ---: | ---: | ---: | --- | ---: |")
    for path in arguments.paths:
        dataset = open_dataset(path)
        spaces = {
            "default": SearchSpace.from_mapping(FOUR),
            "four": SearchSpace.from_mapping(FOUR),
            "query": SearchSpace.from_mapping({**FOUR, **query}),
            "together": SearchSpace.from_mapping({**FOUR, **query, **index}),
        }
        retrievers = {name: engine(dataset, space) for name, space in spaces.items()}
        for name, space in spaces.items():
            shaping = [k.name for k in retrievers[name].knobs if k.stage == "index"]
            spaces[name] = space.with_index(shaping)
        begin = time.perf_counter()
        seeds = []
        for seed in range(arguments.seeds):
            seeds.append(one_seed(dataset, spaces, retrievers, arguments, seed))
            for name, found in seeds[-1].items():
                told = {key: found[key] for key in ("tune", "holdout", "indexes", "params")}
                print(dataset.name, seed, name, told, file=sys.stderr, flush=True)
        took = time.perf_counter() - begin
        for name in spaces:
            mean = [
                np.mean([one[name][part][metric] for one in seeds])
                for part, metric in (
                    ("tune", "ndcg@10"),
                    ("holdout", "ndcg@10"),
                    ("holdout", "recall@5"),
                )
            ]
            less = "" if name == "four" else shown(paired(seeds, name, "four", "ndcg@10"))
            figures = " | ".join(f"{value:.3f}" for value in mean)
            indexes = np.mean([one[name]["indexes"] for one in seeds])
            print(
                f"| {dataset.name} | {name} | {indexes:.1f} | {figures} | {less} | {took:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
