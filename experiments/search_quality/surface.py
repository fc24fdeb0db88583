"""How each parameter matters: the best nDCG@10 for every value of one, over all values of the others.

    python experiments/search_quality/surface.py builtin:atlas path/to/set …

All queries take part; this describes the surface and promises nothing about other queries.
"""

from __future__ import annotations

import argparse
import itertools
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from tuner.datasets import open_dataset
from tuner.evaluation.evaluator import Evaluator
from tuner.retrieval.hybrid import Hybrid
from tuner.run.systems import cache_dir

LEVELS = {
    "graph_weight": (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    "max_hops": (1, 2, 3, 4, 5),
    "temperature": (0.01, 0.03, 0.1, 0.3, 1.0),
    "top_k": (3, 5, 10, 20),
}
METRIC = "ndcg@10"


def surface(path):
    """Return the dataset's name and {point: nDCG@10} over the whole grid of levels."""
    dataset = open_dataset(path)
    retriever = Hybrid.build(dataset.corpus, cache_dir=cache_dir())
    retriever.prepare(dataset.queries)
    evaluate = Evaluator.build(retriever, dataset.queries, dataset.qrels, [METRIC])
    points = itertools.product(*LEVELS.values())
    return dataset.name, {
        point: evaluate(dict(zip(LEVELS, point, strict=True))).metrics[METRIC] for point in points
    }


def print_marginals(values):
    """Print one table a parameter."""
    for place, (name, levels) in enumerate(LEVELS.items()):
        best = {level: max(v for p, v in values.items() if p[place] == level) for level in levels}
        print(f"| {name} | " + " | ".join(f"{level:g}" for level in levels) + " |")
        print("| --- |" + " ---: |" * len(levels))
        print("| nDCG@10 | " + " | ".join(f"{best[level]:.3f}" for level in levels) + " |\n")


def print_weight_by_hops(values):
    """Print graph_weight x max_hops, each cell the best over temperature and top_k."""
    print("graph_weight by max_hops:\n")
    print("| | " + " | ".join(f"{hops} hops" for hops in LEVELS["max_hops"]) + " |")
    print("| --- |" + " ---: |" * len(LEVELS["max_hops"]))
    for weight in LEVELS["graph_weight"]:
        cells = [
            max(v for p, v in values.items() if p[0] == weight and p[1] == hops)
            for hops in LEVELS["max_hops"]
        ]
        print(f"| {weight:g} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+")
    for path in parser.parse_args().paths:
        name, values = surface(path)
        print(f"\n## {name}\n")
        print_marginals(values)
        print_weight_by_hops(values)


if __name__ == "__main__":
    main()
