"""Times fusions of three runs a second: tuner, a plain loop over dictionaries, and ranx.

    pip install '.[bench]' && python experiments/benchmarks/fusion.py [--json]

Made-up input with a fixed seed: 100 queries, three runs of 100 documents for each, drawn from 300,
with distinct scores; the ten best are kept. Each call has other weights, as in a search.

What is counted:
- tuner, weights: `Runs.retrieve` from parameters to rankings, where only weights change; so is the
  check of the parameters.
- tuner, all: the same, where every call also has another normalisation and depth, so that nothing
  can be remembered. tuner, rrf: reciprocal ranks with another k each time.
- plain loop: dictionaries, min-max with the ranges worked out each time, a sort; what one would
  write first.
- ranx: `fuse(runs, norm="min-max", method="wsum", params=...)` with its `Run` objects made and
  compiled before; and the sum alone, of scores that are not normalised.

The answers of all are compared before anything is timed: the same ten documents for each query, by
min-max with weights. A document that a run lacks counts 0 in all three.

One thread each. The contenders take turns in every repetition, so that a busy machine slows all of
them; reported is the median.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy and numba are loaded

import numpy as np  # noqa: E402
import ranx  # noqa: E402

from tuner.core.corpus import Corpus, Query  # noqa: E402
from tuner.retrieval.adapters.runs import Runs  # noqa: E402

LEGS = ("graph", "text", "vector")
DRAWN_FROM = 300
TOP_K = 10
NORMALISATIONS = ("min_max", "z", "dbsf", "max", "none")
TARGET_PER_SECOND = 1000.0

Run = dict[str, dict[str, float]]


def make_runs(queries: int, depth: int, *, seed: int) -> dict[str, Run]:
    generator = np.random.default_rng(seed)
    runs: dict[str, Run] = {}
    for leg in LEGS:
        runs[leg] = {}
        for query in range(queries):
            documents = generator.choice(DRAWN_FROM, depth, replace=False)
            scores = np.cumsum(generator.uniform(0.01, 0.3, depth))[::-1]
            pairs = zip(documents, scores, strict=True)
            runs[leg][f"q{query:04d}"] = {f"d{place:04d}": float(score) for place, score in pairs}
    return runs


def plain_loop(runs: Mapping[str, Run], weights: Mapping[str, float]) -> dict[str, list[str]]:
    answers = {}
    for query in next(iter(runs.values())):
        fused: dict[str, float] = {}
        for leg, run in runs.items():
            scores = run[query]
            low, high = min(scores.values()), max(scores.values())
            for document, score in scores.items():
                share = weights[leg] * (score - low) / (high - low)
                fused[document] = fused.get(document, 0.0) + share
        ordered = sorted(fused.items(), key=lambda pair: (pair[1], pair[0]), reverse=True)
        answers[query] = [document for document, _ in ordered[:TOP_K]]
    return answers


class Contenders:
    """The same runs in the form of each, and a fresh set of weights for each call."""

    def __init__(self, runs: dict[str, Run], folder: Path, *, seed: int) -> None:
        self.runs = runs
        self.queries = [Query(id_, id_) for id_ in next(iter(runs.values()))]
        for leg in runs:
            (folder / leg).write_text(leg)  # the content is given below, by the name
        self.retriever = Runs.build(
            Corpus(()),
            cache_dir=folder / "cache",
            legs={leg: str(folder / leg) for leg in runs},
            read_run=lambda path: runs[path.name],
        )
        self.ranx_runs = [ranx.Run(run, name=leg) for leg, run in runs.items()]
        self.draw = np.random.default_rng(seed)
        self.depth = len(next(iter(runs["graph"].values())))

    def weights(self) -> dict[str, float]:
        return dict(zip(LEGS, self.draw.uniform(0.05, 1.0, len(LEGS)).tolist(), strict=True))

    def tuner(self, weights: Mapping[str, float], **params: Any) -> Any:
        given = {f"weight_{leg}": weight for leg, weight in weights.items()}
        return self.retriever.retrieve(self.queries, {**given, "top_k": TOP_K, **params})

    def tuner_all(self) -> Any:
        method = NORMALISATIONS[self.draw.integers(len(NORMALISATIONS))]
        depths = {f"depth_{leg}": int(self.draw.integers(10, self.depth + 1)) for leg in LEGS}
        return self.tuner(self.weights(), normalisation=method, **depths)

    def ranx(self, weights: Mapping[str, float], norm: str | None = "min-max") -> Any:
        params = {"weights": [weights[leg] for leg in LEGS]}
        return ranx.fuse(self.ranx_runs, norm=norm, method="wsum", params=params)

    def calls(self) -> dict[str, Callable[[], Any]]:
        return {
            "tuner, weights": lambda: self.tuner(self.weights()),
            "tuner, all": self.tuner_all,
            "tuner, rrf": lambda: self.tuner(
                self.weights(), fusion="rrf", rrf_k=int(self.draw.integers(1, 1000))
            ),
            "plain loop": lambda: plain_loop(self.runs, self.weights()),
            "ranx": lambda: self.ranx(self.weights()),
            "ranx, not normalised": lambda: self.ranx(self.weights(), None),
        }

    def check_agreement(self) -> None:
        weights = self.weights()
        mine = self.tuner(weights)
        plain = plain_loop(self.runs, weights)
        theirs = self.ranx(weights).to_dict()
        for row, query in enumerate(self.queries):
            by_ranx = sorted(theirs[query.id].items(), key=lambda pair: -pair[1])[:TOP_K]
            found = {"tuner": mine.ids(row), "ranx": [document for document, _ in by_ranx]}
            for name, documents in found.items():
                if documents != plain[query.id]:
                    raise SystemExit(f"{name} answers {query.id!r} otherwise than the plain loop")


def measure(calls: Mapping[str, Callable[[], Any]], repetitions: int) -> dict[str, float]:
    """Return the median seconds of each call; all take turns in each repetition."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repetitions):
        for name, call in calls.items():
            gc.collect()
            count = 20 if name.startswith("tuner") else 1
            started = time.perf_counter()
            for _ in range(count):
                call()
            seconds[name].append((time.perf_counter() - started) / count)
    return {name: statistics.median(values) for name, values in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--depth", type=int, default=100)
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        runs = make_runs(options.queries, options.depth, seed=options.seed)
        contenders = Contenders(runs, Path(folder), seed=options.seed)
        contenders.check_agreement()
        calls = contenders.calls()
        for call in calls.values():
            call()  # what compiles or is mapped on first use
        seconds = measure(calls, options.repetitions)
    base = seconds["tuner, weights"]
    report = {
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in ("ranx", "numpy")},
        "queries": options.queries,
        "depth": options.depth,
        "legs": len(LEGS),
        "fusions_per_second": {name: 1 / value for name, value in seconds.items()},
        "of_tuner_weights": {name: value / base for name, value in seconds.items()},
        "targets": {
            f"at least {TARGET_PER_SECOND:.0f} fusions a second": 1 / base >= TARGET_PER_SECOND
        },
    }
    if options.json:
        print(json.dumps(report, indent=2))
        return
    print(f"{options.queries} queries, {len(LEGS)} runs of {options.depth} documents, {TOP_K} best")
    print(f"{'':26}{'fusions/s':>12}{'time of tuner, weights':>26}")
    for name, value in seconds.items():
        print(f"{name:26}{1 / value:12.1f}{value / base:26.1f}")
    for target, is_met in report["targets"].items():
        print(f"  {'met' if is_met else 'MISSED'}: {target}")


if __name__ == "__main__":
    main()
