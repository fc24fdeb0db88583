"""What tuning the index adds to tuning the queries, by searches with equal numbers of trials.

    python experiments/search_quality/index_knobs.py OUT.jsonl builtin:atlas path/to/set … [--seeds 5]

For every data set and seed the queries are split in two halves. Searches with the same backend and the
same number of trials tune on the one half: over ``graph_weight``, ``max_hops``, ``top_k`` and
``temperature`` (four), over these and the engine's other parameters of queries (query), and over all
of them and those of its index (together). The best of each is measured on the other half. Differences
are paired by query; the 95 % interval is a t interval over the queries of all holdouts (a query that is
held out under several seeds counts once, by its mean difference). ``--also NAME …`` leaves all other
parameters out, to see what some bring.

``--embedder NAME`` adds an embedder to the choices of *together* (``sentence_vectors.py`` is one), and two
searches: *vectors* is *query* with this embedder in the index and its share searched, *few* that over ``FEW``.
What ``OUT.jsonl`` has is not searched again; the tables are made of it.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import defaultdict
from pathlib import Path

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
FEW = (
    "graph_weight",
    "max_hops",
    "top_k",
    "temperature",
    "passage_weight",
    "dense_weight",
    "rerank",
)
SEARCHES = ("default", "four", "query", "vectors", "few", "together")
TRIALS = 60


def spaces_of(arguments):
    """Return the space of each search, and the embedder that its index has from the start."""
    own = arguments.embedder
    query, index = (
        {name: spec for name, spec in part.items() if name in arguments.also}
        for part in (QUERY, INDEX)
    )
    if own and "embedder" in index:
        names = [*index["embedder"]["choices"], own]
        index["embedder"] = {"type": "categorical", "choices": names}
        index["dense_weight"] = {**index["dense_weight"], "when": {"embedder": names[1:]}}
    share = {"dense_weight": {"type": "real", "low": 0.0, "high": 1.0}}
    with_vectors = {**FOUR, **query, **share}
    few = {name: spec for name, spec in with_vectors.items() if name in FEW}
    found = {
        "default": (FOUR, None),
        "four": (FOUR, None),
        "query": ({**FOUR, **query}, None),
        "vectors": (with_vectors, own),
        "few": (few, own),
        "together": ({**FOUR, **query, **index}, None),
    }
    return {
        name: (SearchSpace.from_mapping(space), embedder)
        for name, (space, embedder) in found.items()
        if name in arguments.searches and (own or name not in ("vectors", "few"))
    }


def engine(dataset, space, embedder):
    """Return the engine over a data set's index parameters, its queries prepared."""
    section = {"kind": "hybrid"} if embedder is None else {"kind": "hybrid", "embedder": embedder}
    config = Config.model_validate(
        {"space": space.to_mapping(), "dataset": {"path": "-"}, "retriever": section}
    )
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


def searched(dataset, name, space, retriever, arguments, seed):
    """Return what the best of a search comes to on both halves, and how many indexes it asked."""
    (tune, holdout), ids = halves(dataset, retriever, seed)
    if name == "default":
        best, indexes = dict(DEFAULT), 1
    else:
        backend = registry.load("backends", arguments.backend)(budget=arguments.trials)
        history = search(backend, space, tune, arguments.trials, seed)
        best = max(history, key=lambda trial: trial.objective).params
        indexes = len({trial.index.name for trial in history})
    on_tune, on_holdout = tune(best), holdout(best)
    return {
        "params": best,
        "indexes": indexes,
        "tune": {metric: on_tune.metrics[metric] for metric in SHOWN},
        "holdout": {metric: on_holdout.metrics[metric] for metric in SHOWN},
        "per_query": {
            metric: dict(zip(ids, map(float, on_holdout.per_query[metric]), strict=True))
            for metric in SHOWN
        },
    }


def run(path, arguments):
    """Search what the file of results does not have; return the data set's name."""
    dataset = open_dataset(path)
    done = {(line["data set"], line["search"], line["seed"]) for line in read(arguments.out)}
    for name, (space, embedder) in spaces_of(arguments).items():
        wanted = [seed for seed in range(arguments.seeds) if (dataset.name, name, seed) not in done]
        if not wanted:
            continue
        retriever = engine(dataset, space, embedder)
        shaped = space.with_index([k.name for k in retriever.knobs if k.stage == "index"])
        for seed in wanted:
            found = searched(dataset, name, shaped, retriever, arguments, seed)
            line = {"data set": dataset.name, "search": name, "seed": seed, **found}
            with arguments.out.open("a") as stream:
                stream.write(json.dumps(line) + "\n")
    return dataset.name


def read(out):
    """Return the results of searches that a file has."""
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def show(lines, dataset):
    """Print a data set's rows, means over the seeds that each search has."""
    by_seed = defaultdict(dict)
    for line in lines:
        if line["data set"] == dataset:
            by_seed[line["seed"]][line["search"]] = line
    for name in SEARCHES:
        seeds = [found for found in by_seed.values() if name in found]
        if not seeds:
            continue
        figures = [
            f"{np.mean([one[name][part][metric] for one in seeds]):.3f}"
            for part in ("tune", "holdout")
            for metric in SHOWN
        ]
        pairs = [one for one in seeds if "four" in one]
        less = [
            "" if name == "four" or not pairs else shown(paired(pairs, name, "four", metric))
            for metric in SHOWN
        ]
        indexes = np.mean([one[name]["indexes"] for one in seeds])
        cells = [dataset, name, str(len(seeds)), f"{indexes:.1f}", *figures, *less]
        print(f"| {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--backend", default="tpe")
    parser.add_argument("--also", nargs="*", default=[*QUERY, *INDEX])
    parser.add_argument("--embedder")
    parser.add_argument("--searches", nargs="*", default=SEARCHES)
    arguments = parser.parse_args()
    print(
        "| data set | searched | seeds | indexes | tune nDCG@10 | recall@5 | held out nDCG@10 | recall@5 "
        "| nDCG@10 less four | recall@5 less four |"
    )
    print("| --- | --- | " + "---: | " * 6 + "--- | --- |")
    for path in arguments.paths:
        name = run(path, arguments)
        show(read(arguments.out), name)


if __name__ == "__main__":
    main()
