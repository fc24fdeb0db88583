"""Times one trial of the built-in engine against a plain Python loop over the same graph.

    python experiments/benchmarks/trial_speed.py [--data FOLDER] [--repeats 50] [--json]

The data set is hotpotqa beside the checkout (3,945 documents, 400 queries) or, where that is
absent, the Atlas that ships with the project.

What is counted:
- engine, new temperature: all queries with a temperature (and max_hops, where it says so) not seen
  before: seeds weighed, walks added up, fused, ranked.
- engine, new graph_weight and top_k: all queries, at a temperature and max_hops just used.
- plain loop: what one would write first, per query: BM25 over an inverted index of dicts, the
  engine's own search for names, walks over dicts of neighbours, fusion, a sort. Its dicts are made
  beforehand and not counted. It runs on 20 queries spread over the set and is **scaled** to all;
  its answers are checked against the engine's.
- knobs: processor time of a trial of all queries with a new value of one knob, beside the same
  trial without that knob; both have a temperature not seen before, and take turns. ``dense_weight``
  is measured on an index with ``embedder: lsa``.
- serve: one query at a time from the index alone, nothing prepared.
- cold: a process that builds the index and prepares all queries; warm: one that opens both from
  the cache. Each runs in a process of its own, for an honest peak of memory; "process" includes
  Python's own start, imports and reading the data.
The engine prepares queries once a data set; the plain loop has nothing to prepare, so the cold
build is the price of the ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is loaded

import numpy as np

from tuner.core.corpus import Query
from tuner.datasets import open_dataset
from tuner.datasets.dataset import Dataset
from tuner.retrieval.hybrid import Hybrid
from tuner.retrieval.hybrid.index import open_index
from tuner.retrieval.hybrid.text import analyse, full_text

HOTPOTQA = Path(__file__).resolve().parents[3] / "shared" / "data" / "hotpotqa"
PLAIN_QUERIES = 20
KNOBS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # name -> (parameters of both trials, those of the one with the knob); a pair is a range
    "hop_decay, 1 hop": ({"max_hops": 1}, {"hop_decay": (0.05, 1.0)}),
    "hop_decay, 2 hops": ({"max_hops": 2}, {"hop_decay": (0.05, 1.0)}),
    "hop_decay, 3 hops": ({"max_hops": 3}, {"hop_decay": (0.05, 1.0)}),
    "hop_decay, 5 hops": ({"max_hops": 5}, {"hop_decay": (0.05, 1.0)}),
    "hop_decay, 1 to 6 hops": ({"max_hops": (1, 6)}, {"hop_decay": (0.05, 1.0)}),
    "seeds": ({}, {"seeds": (1, 8)}),
    "passage_weight": ({}, {"passage_weight": (0.1, 2.0)}),
    "rerank: lexical, 20 deep": ({}, {"rerank": "lexical"}),
    "rerank: lexical, 50 deep": ({}, {"rerank": "lexical", "rerank_depth": 50}),
}
DENSE_KNOBS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "dense_weight": ({}, {"dense_weight": (0.0, 1.0)}),
    "dense_weight, passage_weight": (
        {},
        {"dense_weight": (0.0, 1.0), "passage_weight": (0.1, 2.0)},
    ),
}
EXPECTED = {"new temperature": 500.0, "new graph_weight and top_k": 2000.0}


class PlainLoop:
    """The engine's ranking, query by query, in dicts."""

    def __init__(self, dataset: Dataset, engine: Hybrid) -> None:
        index = open_index(engine.directory, engine.options)
        self.lookup = index.lookup
        self.seed_count = engine.options.seeds
        texts = {document.id: full_text(document) for document in dataset.corpus.documents}
        self.counts = {name: Counter(analyse([text])[0]) for name, text in texts.items()}
        self.postings: dict[str, list[str]] = {}
        for name, counts in self.counts.items():
            for term in counts:
                self.postings.setdefault(term, []).append(name)
        self.lengths = {name: sum(counts.values()) for name, counts in self.counts.items()}
        self.mean_length = statistics.mean(self.lengths.values())
        ids = index.document_ids
        self.passages_of = _neighbours(index.graph.to_passages, range(len(index.graph.names)), ids)
        self.entities_of = _neighbours(index.graph.to_entities, ids, range(len(index.graph.names)))

    def rank(
        self, text: str, *, graph_weight: float, max_hops: int, top_k: int, temperature: float
    ) -> list[str]:
        # Some passage shares no word with a query, so the least BM25 score is 0.
        bm25 = self._bm25(text)
        best = max(bm25.values(), default=1.0)
        scores = {name: score / best for name, score in bm25.items()}
        graph = self._walk(text, temperature, max_hops)
        if graph:
            greatest = max(graph.values())
            scores = {name: (1 - graph_weight) * score for name, score in scores.items()}
            for name, score in graph.items():
                gain = graph_weight * (score / greatest) ** 0.25
                scores[name] = scores.get(name, 0.0) + gain
        return sorted(scores, key=lambda name: (-scores[name], name))[:top_k]

    def _bm25(self, text: str) -> dict[str, float]:
        scores: dict[str, float] = {}
        for term in analyse([text])[0]:
            holding = self.postings.get(term, [])
            idf = float(np.log(1 + (len(self.counts) - len(holding) + 0.5) / (len(holding) + 0.5)))
            for name in holding:
                found = self.counts[name][term]
                length = self.lengths[name] / self.mean_length
                gain = idf * found / (found + 1.5 * (0.25 + 0.75 * length))
                scores[name] = scores.get(name, 0.0) + gain
        return scores

    def _walk(self, text: str, temperature: float, max_hops: int) -> dict[str, float]:
        entities, scores = self.lookup.candidates(text, count=self.seed_count)
        if not len(entities):
            return {}
        powers = np.exp((scores - scores.max()) / temperature)
        at_entities = dict(zip(entities.tolist(), (powers / powers.sum()).tolist(), strict=True))
        total: dict[str, float] = {}
        for hop in range(1, max_hops + 1):
            at_passages: dict[str, float] = {}
            for entity, share in at_entities.items():
                for name, part in self.passages_of[entity]:
                    at_passages[name] = at_passages.get(name, 0.0) + share * part
            at_entities = {}
            for name, share in at_passages.items():
                total[name] = total.get(name, 0.0) + 0.7**hop * share
                for entity, part in self.entities_of[name]:
                    at_entities[entity] = at_entities.get(entity, 0.0) + share * part
        return total


def _neighbours(matrix: Any, rows: Sequence[Any], columns: Sequence[Any]) -> dict[Any, list[Any]]:
    return {
        row: [
            (columns[matrix.indices[place]], float(matrix.data[place]))
            for place in range(matrix.indptr[number], matrix.indptr[number + 1])
        ]
        for number, row in enumerate(rows)
    }


def timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def stage(path: str, cache: str) -> None:
    """Build or open everything, and print what it took; runs in a process of its own."""
    dataset = open_dataset(path)
    begin = time.perf_counter()
    engine = Hybrid.build(dataset.corpus, cache_dir=Path(cache))
    built = time.perf_counter()
    engine.prepare(dataset.queries)
    prepared = time.perf_counter()
    engine.retrieve(dataset.queries, {})
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        json.dumps(
            {
                "index_s": built - begin,
                "prepare_s": prepared - built,
                "first_trial_s": time.perf_counter() - prepared,
                "total_s": time.perf_counter() - begin,
                "peak_mb": peak_kb / 1024,
            }
        )
    )


def start(path: str, cache: str) -> dict[str, float]:
    begin = time.perf_counter()
    command = [sys.executable, __file__, "--stage", cache, "--data", path]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {**json.loads(output), "process_s": time.perf_counter() - begin}


def engine_times(
    engine: Hybrid, queries: Sequence[Query], repeats: int, random: np.random.Generator
) -> dict[str, list[float]]:
    def run(**params: Any) -> float:
        return timed(lambda: engine.retrieve(queries, params))

    def temperature() -> float:
        return float(np.exp(random.uniform(np.log(0.01), 0)))

    run()
    for hops in range(1, 7):
        run(max_hops=hops)  # pages of each hop in memory, as after a study's first trials
    times: dict[str, list[float]] = {
        "new temperature, 2 hops": [run(temperature=temperature()) for _ in range(repeats)],
        "new temperature, 5 hops": [
            run(temperature=temperature(), max_hops=5) for _ in range(repeats)
        ],
        "new temperature and max_hops": [
            run(temperature=temperature(), max_hops=int(random.integers(1, 7)))
            for _ in range(repeats)
        ],
    }
    run(temperature=0.25, max_hops=2)
    times["new graph_weight and top_k"] = [
        run(
            temperature=0.25,
            max_hops=2,
            graph_weight=float(random.uniform()),
            top_k=int(random.integers(3, 31)),
        )
        for _ in range(repeats)
    ]
    return times


def drawn(params: dict[str, Any], random: np.random.Generator) -> dict[str, Any]:
    """Return parameters with a value drawn from each range."""
    found = {"temperature": float(np.exp(random.uniform(np.log(0.01), 0)))}
    for name, value in params.items():
        match value:
            case (int(low), int(high)):
                found[name] = int(random.integers(low, high + 1))
            case (low, high):
                found[name] = float(random.uniform(low, high))
            case _:
                found[name] = value
    return found


def knob_times(
    engine: Hybrid,
    queries: Sequence[Query],
    knobs: dict[str, tuple[dict[str, Any], dict[str, Any]]],
    repeats: int,
    random: np.random.Generator,
) -> dict[str, dict[str, float]]:
    """Return by knob the milliseconds without and with it, and their ratio."""
    times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in knobs}
    for _ in range(repeats + 1):
        for name, (both, knob) in knobs.items():
            # So that neither trial is the one that finds the cache full of another knob's arrays.
            engine.retrieve(queries, drawn(both, random))
            for place, params in enumerate((both, {**both, **knob})):
                chosen = drawn(params, random)
                begin = time.process_time()
                engine.retrieve(queries, chosen)
                times[name][place].append(time.process_time() - begin)
    # The first round brings what is read once into memory.
    medians = {
        name: [1000 * statistics.median(values[1:]) for values in pair]
        for name, pair in times.items()
    }
    return {
        name: {"without_ms": without, "with_ms": with_it, "ratio": with_it / without}
        for name, (without, with_it) in medians.items()
    }


def measure(path: str, repeats: int) -> dict[str, Any]:
    dataset = open_dataset(path)
    queries = dataset.queries
    with tempfile.TemporaryDirectory() as cache:
        cold, warm = start(path, cache), start(path, cache)
        engine = Hybrid.build(dataset.corpus, cache_dir=Path(cache))
        engine.prepare(queries)
        times = engine_times(engine, queries, repeats, np.random.default_rng(0))
        knobs = knob_times(engine, queries, KNOBS, repeats, np.random.default_rng(0))
        with_vectors = Hybrid.build(dataset.corpus, cache_dir=Path(cache), embedder="lsa")
        with_vectors.prepare(queries)
        knobs |= knob_times(with_vectors, queries, DENSE_KNOBS, repeats, np.random.default_rng(0))
        plain = PlainLoop(dataset, engine)
        step = max(1, len(queries) // PLAIN_QUERIES)
        sample = queries[::step][:PLAIN_QUERIES]
        scale = len(queries) / len(sample)
        plain_s, agreement = {}, []
        for hops in (2, 5):
            params = {"graph_weight": 0.5, "max_hops": hops, "top_k": 10, "temperature": 0.1}
            answers: list[list[str]] = []
            plain_s[hops] = scale * timed(
                lambda answers=answers, params=params: answers.extend(
                    plain.rank(query.text, **params) for query in sample
                )
            )
            live = [engine.serve(query, params).ids(0) for query in sample]
            agreement += [len(set(a) & set(b)) / len(b) for a, b in zip(answers, live, strict=True)]
        serve_ms = [timed(lambda q=query: engine.serve(q, {})) * 1000 for query in sample * 5]
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {
        "dataset": dataset.name,
        "documents": len(dataset.corpus.documents),
        "queries": len(queries),
        "python": platform.python_version(),
        "cold": cold,
        "warm": warm,
        "engine_ms": {name: value * 1000 for name, value in medians.items()},
        "knobs": knobs,
        "plain_queries": len(sample),
        "plain_scaled_s": plain_s,
        "plain_agreement": statistics.mean(agreement),
        "ratios": {
            "new temperature": plain_s[2] / medians["new temperature, 2 hops"],
            "new temperature, 5 hops": plain_s[5] / medians["new temperature, 5 hops"],
            "new graph_weight and top_k": plain_s[2] / medians["new graph_weight and top_k"],
        },
        "serve_ms": {
            "median": statistics.median(serve_ms),
            "p95": float(np.quantile(serve_ms, 0.95)),
        },
    }


def show(result: dict[str, Any]) -> None:
    print(f"{result['dataset']}: {result['documents']:,} documents, {result['queries']} queries\n")
    for name, value in result["engine_ms"].items():
        print(f"engine, {name:<32} {value:9.2f} ms")
    for hops, value in result["plain_scaled_s"].items():
        label = f"plain loop, {hops} hops, scaled from {result['plain_queries']} queries"
        print(f"{label:<40} {value * 1000:9.0f} ms")
    print(f"\nanswers of the plain loop that are the engine's: {result['plain_agreement']:.1%}\n")
    for name, value in result["ratios"].items():
        expected = EXPECTED.get(name)
        wanted = f"  (expected at least {expected:,.0f})" if expected else ""
        print(f"{name:<40} {value:9,.0f} x{wanted}")
    print(f"\n{'knob, processor time of a trial':<36} {'without':>9} {'with':>9}    ratio")
    for name, row in result["knobs"].items():
        print(
            f"{name:<36} {row['without_ms']:6.2f} ms {row['with_ms']:6.2f} ms {row['ratio']:8.2f}"
        )
    print(
        f"\nserve, one query: median {result['serve_ms']['median']:.2f} ms, "
        f"p95 {result['serve_ms']['p95']:.2f} ms"
    )
    for name in ("cold", "warm"):
        cost = result[name]
        print(
            f"{name} start: {cost['total_s']:.2f} s (index {cost['index_s']:.2f}, queries "
            f"{cost['prepare_s']:.2f}), process {cost['process_s']:.2f} s, "
            f"peak {cost['peak_mb']:.0f} MB"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=str(HOTPOTQA) if HOTPOTQA.is_dir() else "builtin:atlas")
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--stage", metavar="CACHE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.stage:
        stage(arguments.data, arguments.stage)
        return
    result = measure(arguments.data, arguments.repeats)
    print(json.dumps(result, indent=2)) if arguments.json else show(result)


if __name__ == "__main__":
    main()
