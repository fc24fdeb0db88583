"""Times the profile of one answer (every graph_weight, every top_k) against a trial of the engine.

    python experiments/benchmarks/free_profile.py [--data FOLDER] [--repeats 10] [--rounds 5]

All queries of hotpotqa beside the checkout (400) or, where that is absent, of the Atlas. A trial
evaluates one new setting of max_hops, temperature, graph_weight and top_k with the objective of
`configs/graphrag.yaml`. A profile has its answer and works out the curve, chooses, and makes what is shown.
Processor time, medians, both in turns in one run: the ratio is what counts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is loaded

import numpy as np

from tuner.core.space import Integer, Real, SearchSpace
from tuner.datasets import open_dataset
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.free.profiling import Profiler
from tuner.evaluation.objective import Objective
from tuner.retrieval.hybrid import Hybrid
from tuner.run.systems import cache_dir

HOTPOTQA = Path(__file__).resolve().parents[3] / "shared" / "data" / "hotpotqa"
OBJECTIVE = Objective(
    {"recall@10": 0.5, "mrr@10": 0.3, "ndcg@10": 0.2}, {"context_tokens_per_1000": 0.02}
)
SPACE = SearchSpace(
    {
        "graph_weight": Real(0, 1),
        "max_hops": Integer(1, 5),
        "top_k": Integer(3, 30),
        "temperature": Real(0.01, 1, scale="log"),
    }
)
WHOLE = Objective({"map": 0.5, "ndcg": 0.5}, {"context_tokens_per_1000": 0.02})


def milliseconds(step, settings):
    spent = []
    for setting in settings:
        begin = time.process_time()
        step(setting)
        spent.append(1000 * (time.process_time() - begin))
    return statistics.median(spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=str(HOTPOTQA) if HOTPOTQA.is_dir() else "builtin:atlas")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    dataset = open_dataset(given.data)
    engine = Hybrid.build(dataset.corpus, cache_dir=cache_dir()).telling_legs()
    engine.prepare(dataset.queries)
    rng = np.random.default_rng(0)
    places = [
        {"max_hops": int(rng.integers(1, 6)), "temperature": float(10 ** rng.uniform(-2, 0))}
        for _ in range(given.repeats)
    ]
    print("| objective | queries | trial, ms | profile, ms | trials that a profile takes |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, objective in (("looks at 10 places", OBJECTIVE), ("looks at all 30", WHOLE)):
        whole = Evaluator.build(engine, dataset.queries, dataset.qrels, objective.metric_names)
        profiler = Profiler(whole, objective, SPACE, engine.free_knobs({}, SPACE.names))
        settings = [{**at, "graph_weight": float(rng.random()), "top_k": 10} for at in places]
        answers = [
            (engine.retrieve(dataset.queries, {**at, **profiler.to_ask()}), at) for at in places
        ]
        rounds = [
            (
                milliseconds(whole, settings),
                milliseconds(lambda answer: profiler.profile(*answer), answers),  # noqa: B023
            )
            for _ in range(1 + given.rounds)
        ][1:]
        trial, profile = (statistics.median(times) for times in zip(*rounds, strict=True))
        ratio = statistics.median(both[1] / both[0] for both in rounds)
        row = f"{len(dataset.queries)} | {trial:.2f} | {profile:.1f} | {ratio:.0f}"
        print(f"| {name} | {row} |")


if __name__ == "__main__":
    main()
