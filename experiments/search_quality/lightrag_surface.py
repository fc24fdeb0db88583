"""A surface of LightRAG on which searches are compared: its query parameters on MuSiQue, recorded once.

    python experiments/search_quality/lightrag_surface.py path/to/musique

LightRAG answers the 50 queries to tune on of `experiments/lightrag/musique.yaml` at every setting of `LEVELS`, and
what it scores is appended to `results/lightrag_surface.csv`, a line for each setting; a run that was killed goes on.
It needs `pip install '.[lightrag]' wordllama`, runs where `experiments` can be imported from
(`PYTHONPATH=.`), and takes four minutes of one core. Between the levels of a number the surface is linear.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.interpolate import RegularGridInterpolator

from tuner.core.space import SearchSpace

RECORDED = Path(__file__).parent / "results" / "lightrag_surface.csv"
GRAPH_MODES = ("local", "global", "hybrid", "mix")
# The numbers of a mode, from what LightRAG takes; naive, which is vectors alone, has the threshold only.
LEVELS = {
    "mode": GRAPH_MODES,
    "kg_chunk_pick_method": ("VECTOR", "WEIGHT"),
    "top_k": (5, 16, 30),
    "related_chunk_number": (1, 2, 5, 20),
    "cosine_better_than_threshold": (0.0, 0.2, 0.4, 0.6),
}
NUMBERS = ("top_k", "related_chunk_number", "cosine_better_than_threshold")
IN_GRAPH = {"when": {"mode": list(GRAPH_MODES)}}
SPACE = SearchSpace.from_mapping(
    {
        "mode": {"type": "categorical", "choices": ["naive", *GRAPH_MODES]},
        "kg_chunk_pick_method": {
            "type": "categorical",
            "choices": list(LEVELS["kg_chunk_pick_method"]),
            **IN_GRAPH,
        },
        "top_k": {"type": "integer", "low": 5, "high": 30, "scale": "log", **IN_GRAPH},
        "related_chunk_number": {
            "type": "integer",
            "low": 1,
            "high": 20,
            "scale": "log",
            **IN_GRAPH,
        },
        "cosine_better_than_threshold": {"type": "real", "low": 0.0, "high": 0.6},
    }
)
BASELINE = {
    "mode": "mix",
    "kg_chunk_pick_method": "VECTOR",
    "top_k": 30,
    "related_chunk_number": 5,
    "cosine_better_than_threshold": 0.2,
}
METRICS = ("recall@10", "mrr@10", "ndcg@10", "context_tokens")


def settings():
    """Yield every setting that is recorded: those without the graph first."""
    for threshold in LEVELS["cosine_better_than_threshold"]:
        yield {"mode": "naive", "cosine_better_than_threshold": threshold}
    for values in itertools.product(*LEVELS.values()):
        yield dict(zip(LEVELS, values, strict=True))


def value_of(objective):
    """Return the function from parameters to the objective, and its highest value at a level."""
    with RECORDED.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    scores = {
        tuple(row[name] for name in LEVELS): objective.score(
            {metric: float(row[metric]) for metric in METRICS}
        ).objective
        for row in rows
    }

    def score(setting):
        return scores[tuple(str(setting.get(name, "")) for name in LEVELS)]

    thresholds = LEVELS["cosine_better_than_threshold"]
    naive = [
        score({"mode": "naive", "cosine_better_than_threshold": level}) for level in thresholds
    ]
    axes = [_scaled(name, np.array(LEVELS[name])) for name in NUMBERS]
    tables = {}
    for kind in itertools.product(GRAPH_MODES, LEVELS["kg_chunk_pick_method"]):
        table = [
            score(dict(zip(LEVELS, (*kind, *numbers), strict=True)))
            for numbers in itertools.product(*(LEVELS[name] for name in NUMBERS))
        ]
        tables[kind] = RegularGridInterpolator(axes, np.reshape(table, [len(one) for one in axes]))

    def value(params):
        if params["mode"] == "naive":
            return float(np.interp(params["cosine_better_than_threshold"], thresholds, naive))
        place = [_scaled(name, params[name]) for name in NUMBERS]
        return float(tables[params["mode"], params["kg_chunk_pick_method"]](place)[0])

    return value, max(scores.values())


def _scaled(name, number):
    return number if name == "cosine_better_than_threshold" else np.log(number)


def record(path, folder):
    """Ask LightRAG what is not recorded yet."""
    from tuner.datasets import open_dataset, split_queries
    from tuner.evaluation.evaluator import Evaluator
    from tuner.retrieval.adapters.lightrag import Lightrag

    dataset = open_dataset(path)
    retriever = Lightrag.build(
        dataset.corpus,
        cache_dir=folder,
        embedder="experiments.lightrag.embedders:wordllama",
    )
    tune, _ = split_queries(dataset.queries, holdout=0.5, stratify_by=["query_type"], seed=42)
    by_id = {query.id: query for query in dataset.queries}
    queries = [by_id[id_] for id_ in tune]
    retriever.prepare(queries)
    evaluate = Evaluator.build(retriever, queries, dataset.qrels, METRICS)
    done = set()
    if RECORDED.exists():
        with RECORDED.open(newline="") as stream:
            done = {tuple(row[name] for name in LEVELS) for row in csv.DictReader(stream)}
    else:
        RECORDED.write_text(",".join((*LEVELS, *METRICS)) + "\n")
    for setting in settings():
        place = tuple(str(setting.get(name, "")) for name in LEVELS)
        if place in done:
            continue
        begin = time.process_time()
        metrics = evaluate(setting).metrics
        print(setting, f"{time.process_time() - begin:.1f} s", flush=True)
        with RECORDED.open("a", newline="") as stream:
            figures = [f"{metrics[metric]:.6g}" for metric in METRICS]
            csv.writer(stream, lineterminator="\n").writerow([*place, *figures])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", help="the data set, with its triples")
    parser.add_argument("--cache", type=Path, default=None, help="where the index lies")
    arguments = parser.parse_args()
    if arguments.cache is None:
        from tuner.run.systems import cache_dir

        arguments.cache = Path(cache_dir())
    record(arguments.path, arguments.cache)


if __name__ == "__main__":
    main()
