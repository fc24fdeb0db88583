"""Measures what a trial's pool of documents changes against ranking every document.

    python experiments/benchmarks/pool.py [DATA ...] [--settings 40] [--seed 0] [--json]

A prepared query keeps the 200 best documents of the text leg and the 300 best of the graph; trials
rank within that pool, a served query ranks the whole corpus. DATA are data sets as `dataset.path`
takes them; without any, the Atlas that ships with the project.

The defaults and random settings of the engine's knobs (each top_k=100) are answered both ways, all
queries each time:
- top 10 the same: share of queries with the same ten documents in the same order.
- ndcg@10: the pool's mean less the mean with every document ranked.
- top 100 shared: share of the whole ranking's first 100 that the pool's first 100 hold.
- best setting: how much ndcg@10, with every document ranked, is lost by the setting that looks
  best with pools against the one that is best; 0 where both are the same.
"worst" is the worst of the settings, and need not be the same setting for each figure.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is loaded

import numpy as np

from tuner.core.rankings import Rankings
from tuner.datasets import open_dataset
from tuner.evaluation.evaluator import Evaluator
from tuner.retrieval.hybrid import Hybrid

METRIC = "ndcg@10"
DEPTH = 100
# Ranking every document takes a row of the whole corpus for each query.
QUERIES_AT_ONCE = 200


@dataclass(frozen=True)
class Comparison:
    """One setting, answered within pools and from every document; means over queries."""

    params: Mapping[str, float]
    same_top_10: float
    pooled_ndcg: float
    whole_ndcg: float
    shared_top_100: float


def draw(count: int, seed: int) -> list[dict[str, float]]:
    """Return the defaults and ``count`` random settings."""
    random = np.random.default_rng(seed)
    drawn = [
        {
            "graph_weight": float(random.uniform()),
            "max_hops": int(random.integers(1, 7)),
            "temperature": float(np.exp(random.uniform(np.log(0.001), np.log(10)))),
            "top_k": DEPTH,
        }
        for _ in range(count)
    ]
    return [{"top_k": DEPTH}, *drawn]


def whole(engine: Hybrid, queries: Sequence[Any], params: Mapping[str, float]) -> Rankings:
    """Answer from every document; ``engine`` must have nothing prepared."""
    parts = [
        engine.retrieve(queries[start : start + QUERIES_AT_ONCE], params)
        for start in range(0, len(queries), QUERIES_AT_ONCE)
    ]
    return Rankings(
        query_ids=[query.id for query in queries],
        document_ids=parts[0].document_ids,
        documents=np.concatenate([part.documents for part in parts]),
    )


def shared(pooled: np.ndarray, every: np.ndarray) -> float:
    """Return the mean share of each row of ``every`` that the same row of ``pooled`` holds."""
    shares = [
        np.isin(row[row >= 0], own[own >= 0]).mean()
        for own, row in zip(pooled, every, strict=True)
        if (row >= 0).any()
    ]
    return float(np.mean(shares))


def compare(path: str, settings: Sequence[Mapping[str, float]], options: Any) -> dict[str, Any]:
    dataset = open_dataset(path)
    queries = dataset.queries
    with tempfile.TemporaryDirectory() as cache:
        unprepared = Hybrid.build(dataset.corpus, cache_dir=Path(cache), **options)
        prepared = Hybrid.build(dataset.corpus, cache_dir=Path(cache), **options)
        prepared.prepare(queries)
        (file,) = prepared.directory.parent.glob("queries-*/pool.npy")
        pool_sizes = (np.load(file) >= 0).sum(axis=1)
        evaluator = Evaluator.build(
            prepared, queries, dataset.qrels, [METRIC], documents=dataset.corpus.documents
        )
        found: list[Comparison] = []
        for params in settings:
            pooled = replace(prepared.retrieve(queries, params), context_tokens=None)
            every = whole(unprepared, queries, params)
            equal = pooled.documents[:, :10] == every.documents[:, :10]
            found.append(
                Comparison(
                    params=params,
                    same_top_10=float(equal.all(axis=1).mean()),
                    pooled_ndcg=evaluator.measure(pooled).metrics[METRIC],
                    whole_ndcg=evaluator.measure(every).metrics[METRIC],
                    shared_top_100=shared(pooled.documents, every.documents),
                )
            )
    chosen = max(found, key=lambda comparison: comparison.pooled_ndcg)
    return {
        "dataset": dataset.name,
        "documents": len(dataset.corpus.documents),
        "queries": len(queries),
        "mean_pool": float(pool_sizes.mean()),
        "largest_pool": int(pool_sizes.max()),
        "best_setting_loss": max(c.whole_ndcg for c in found) - chosen.whole_ndcg,
        "settings": [asdict(comparison) for comparison in found],
    }


def row(result: Mapping[str, Any]) -> str:
    """Return one line of the table."""
    settings = result["settings"]
    same = [setting["same_top_10"] for setting in settings]
    gaps = [setting["pooled_ndcg"] - setting["whole_ndcg"] for setting in settings]
    depth = [setting["shared_top_100"] for setting in settings]
    cells = (
        result["dataset"],
        f"{result['documents']:,}",
        f"{result['queries']:,}",
        f"{result['mean_pool']:.0f}",
        *(f"{value:.2%}" for value in (same[0], np.mean(same), min(same))),
        *(f"{value:+.5f}" for value in (gaps[0], np.mean(gaps), max(gaps, key=abs))),
        *(f"{value:.2%}" for value in (depth[0], np.mean(depth), min(depth))),
        f"{result['best_setting_loss']:.5f}",
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", default=["builtin:atlas"])
    parser.add_argument("--settings", type=int, default=40, help="random settings, by default 40")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--text-pool", type=int, default=200)
    parser.add_argument("--graph-pool", type=int, default=300)
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    arguments = parser.parse_args()
    options = {"text_pool": arguments.text_pool, "graph_pool": arguments.graph_pool}
    settings = draw(arguments.settings, arguments.seed)
    results = (compare(path, settings, options) for path in arguments.data)
    if arguments.json:
        print(json.dumps(list(results), indent=2))
        return
    print(
        f"pool: {arguments.text_pool} by text + {arguments.graph_pool} by graph; defaults and "
        f"{arguments.settings} random settings; of three figures: defaults, mean, worst\n\n"
        "| data | documents | queries | mean pool | top 10 the same | | | ndcg@10, pool - all | | "
        "| top 100 shared | | | best setting loses |\n| --- |" + " ---: |" * 13
    )
    for result in results:
        print(row(result), flush=True)


if __name__ == "__main__":
    main()
