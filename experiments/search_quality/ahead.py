"""What it costs to ask ahead: how far from the best a search ends, by `study.ahead`; and what it brings.

    python experiments/search_quality/ahead.py regret builtin:atlas path/to/set … [--seeds 10]
    python experiments/search_quality/ahead.py workers

`regret`: whole studies of 40 trials, each suggested without the results of the `ahead` before it.
Regret is the best objective that any study of that data set and seed found, less that of this study,
in thousandths; `less 0` is its paired difference to `ahead: 0`, with a 95 % t interval over the seeds.
As in `search_quality.py` a study tunes on one half of the queries.

`workers`: a simulation without a clock. A worker takes the next trial when it is free and every trial
more than `ahead` before that one has ended; lengths are drawn with a mean of 1. Utilisation is the
share of the workers' time that was spent on trials, over 40 trials, the mean of 2,000 draws.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import stats
from search_quality import METRICS, OBJECTIVE, SPACE

from tuner.core import registry
from tuner.core.study_record import ArmRecord, StudyHeader
from tuner.datasets import open_dataset, split_queries
from tuner.evaluation.evaluator import Evaluator
from tuner.execution.local.inline import Inline
from tuner.retrieval.hybrid import Hybrid
from tuner.run.systems import cache_dir
from tuner.study.arms import Arm
from tuner.study.loop import run_study
from tuner.study.spec import StudySpec
from tuner.study.study import Study

AHEAD = (0, 2, 4, 8, 12)
TRIALS = 40
SEARCHES = {"gp": {"gp": 40}, "tpe": {"tpe": 40}}
WORKERS = (2, 4, 8)
DRAWS = 2_000


def best_found(budgets, evaluate, seed, ahead):
    """Run one study; return the best objective among its trials."""
    arms = [
        Arm(kind, registry.load("backends", kind)(budget=budget), budget)
        for kind, budget in budgets.items()
    ]
    header = StudyHeader(
        study_id="ahead",
        name="ahead",
        created_at=0.0,
        seed=seed,
        arms=tuple(ArmRecord(arm.name, arm.name, arm.budget) for arm in arms),
        space=SPACE.to_mapping(),
        objective=OBJECTIVE.to_mapping(),
        ahead=ahead,
    )
    study = Study.create(header, StudySpec(arms, SPACE, OBJECTIVE))
    assert run_study(study, Inline(), evaluate) == "finished"
    return study.best.objective


def one_seed(dataset, retriever, seed, ways):
    """Return the regret of each search at each way of asking ahead, in thousandths."""
    ids, _ = split_queries(
        dataset.queries, holdout=0.5, stratify_by=["query_type", "difficulty"], seed=seed
    )
    by_id = {query.id: query for query in dataset.queries}
    evaluate = Evaluator.build(retriever, [by_id[i] for i in ids], dataset.qrels, METRICS)
    found = {
        (name, ahead): best_found(budgets, evaluate, seed, ahead)
        for name, budgets in SEARCHES.items()
        for ahead in ways
    }
    best = max(found.values())
    return {key: 1000 * (best - value) for key, value in found.items()}


def report_regret(dataset_name, seeds, ways):
    print(f"\n## {dataset_name}\n", flush=True)
    print("| ahead | " + " | ".join(f"{name} | less 0" for name in SEARCHES) + " |")
    print("| ---: | " + "---: | " * (2 * len(SEARCHES)))
    for ahead in ways:
        cells = []
        for name in SEARCHES:
            regrets = np.array([regret[name, ahead] for regret in seeds])
            difference = regrets - np.array([regret[name, 0] for regret in seeds])
            cells += [f"{regrets.mean():.2f}", "" if ahead == 0 else shown(difference)]
        print(f"| {ahead} | " + " | ".join(cells) + " |", flush=True)


def shown(difference):
    mean, count = difference.mean(), len(difference)
    half = stats.t.ppf(0.975, count - 1) * difference.std(ddof=1) / np.sqrt(count)
    return f"{mean:+.2f} [{mean - half:+.2f}, {mean + half:+.2f}]"


def utilisation(lengths, workers, ahead):
    """Return the share of the workers' time that trials of these lengths took."""
    free = [0.0] * workers
    ends, all_before = [], 0.0
    for number, length in enumerate(lengths):
        if number - ahead - 1 >= 0:
            all_before = max(all_before, ends[number - ahead - 1])
        begin = max(heapq.heappop(free), all_before)
        ends.append(begin + length)
        heapq.heappush(free, begin + length)
    return sum(lengths) / (workers * max(ends))


def report_workers():
    random = np.random.default_rng(0)
    shape = (DRAWS, TRIALS)
    kinds = {
        "equal": np.ones(shape),
        "0.5 to 1.5": random.uniform(0.5, 1.5, shape),
        "lognormal, sigma 0.5": random.lognormal(-0.125, 0.5, shape),
        "exponential": random.exponential(1.0, shape),
    }
    print("| lengths | workers | " + " | ".join(map(str, AHEAD)) + " | no bound |")
    print("| --- | ---: | " + "---: | " * (len(AHEAD) + 1))
    for name, draws in kinds.items():
        for workers in WORKERS:
            shares = [
                np.mean([utilisation(lengths, workers, ahead) for lengths in draws.tolist()])
                for ahead in (*AHEAD, TRIALS)
            ]
            print(f"| {name} | {workers} | " + " | ".join(f"{s:.0%}" for s in shares) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("regret", "workers"))
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--ahead", type=int, nargs="+", default=AHEAD)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if arguments.what == "workers":
        report_workers()
        return
    everything = {}
    for path in arguments.paths:
        dataset = open_dataset(path)
        retriever = Hybrid.build(dataset.corpus, cache_dir=cache_dir())
        retriever.prepare(dataset.queries)
        seeds = [
            one_seed(dataset, retriever, seed, arguments.ahead) for seed in range(arguments.seeds)
        ]
        report_regret(dataset.name, seeds, arguments.ahead)
        everything[dataset.name] = [
            {f"{name}/{ahead}": value for (name, ahead), value in regret.items()}
            for regret in seeds
        ]
        if arguments.json:
            arguments.json.write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
