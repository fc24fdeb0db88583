"""What tuning is worth: text only, default, and each backend's best, on queries that were held out.

    python experiments/search_quality/search_quality.py builtin:atlas path/to/set … [--seeds 5]

For every data set and seed the queries are split in two halves; each backend tunes on the one, and
its best configuration is measured on the other. Differences to the baselines are paired by query,
averaged over seeds; the 95 % interval is a t interval over the queries of all holdouts (a query
that is held out under several seeds counts once, by its mean difference). Also: after how many trials each
backend was within 1 % of the best objective that any backend saw under that seed.
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
from scipy import stats

from tuner.core import registry
from tuner.core.space import SearchSpace
from tuner.core.trial import Trial, TrialState
from tuner.datasets import open_dataset, split_queries
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.objective import Objective
from tuner.retrieval.hybrid import Hybrid
from tuner.run.systems import cache_dir

SPACE = SearchSpace.from_mapping(
    {
        "graph_weight": {"type": "real", "low": 0.0, "high": 1.0},
        "max_hops": {"type": "integer", "low": 1, "high": 5},
        "top_k": {"type": "integer", "low": 5, "high": 30},
        "temperature": {"type": "real", "low": 0.01, "high": 1.0, "scale": "log"},
    }
)
OBJECTIVE = Objective({"ndcg@10": 0.5, "recall@5": 0.5}, {"context_tokens_per_1000": 0.005})
DEFAULT = {"graph_weight": 0.5, "max_hops": 2, "top_k": 10, "temperature": 0.1}
TEXT_ONLY = {**DEFAULT, "graph_weight": 0.0}
GRAPH_ONLY = {**DEFAULT, "graph_weight": 1.0}
BUDGETS = {"grid": 60, "gp": 40, "tpe": 40, "random": 40}
METRICS = ("ndcg@10", "recall@5", "context_tokens")
SHOWN = ("ndcg@10", "recall@5")


def search(kind, evaluate, seed):
    """Run one backend alone, one trial at a time; return its trials."""
    backend = registry.load("backends", kind)(budget=BUDGETS[kind])
    history = []
    while len(history) < BUDGETS[kind]:
        points = backend.suggest(SPACE, history, count=1, seed=seed)
        if not points:
            break
        metrics = evaluate(points[0]).metrics
        history.append(
            Trial(
                number=len(history),
                arm=kind,
                params=points[0],
                state=TrialState.FINISHED,
                objective=OBJECTIVE.score(metrics).objective,
                metrics=metrics,
            )
        )
    return history


def one_seed(dataset, retriever, seed):
    """Return per configuration its params, tune means, and per-query holdout values."""
    tune_ids, holdout_ids = split_queries(
        dataset.queries, holdout=0.5, stratify_by=["query_type", "difficulty"], seed=seed
    )
    by_id = {query.id: query for query in dataset.queries}
    tune, holdout = (
        Evaluator.build(retriever, [by_id[i] for i in ids], dataset.qrels, METRICS)
        for ids in (tune_ids, holdout_ids)
    )
    arms = {kind: search(kind, tune, seed) for kind in BUDGETS}
    best_seen = max(trial.objective for trials in arms.values() for trial in trials)
    chosen = {"text only": TEXT_ONLY, "graph only": GRAPH_ONLY, "default": DEFAULT}
    needed = {}
    for kind, trials in arms.items():
        chosen[kind] = max(trials, key=lambda trial: trial.objective).params
        near = [t.number + 1 for t in trials if t.objective >= best_seen - 0.01 * abs(best_seen)]
        needed[kind] = near[0] if near else None
    results = {}
    for name, params in chosen.items():
        on_tune, on_holdout = tune(params), holdout(params)
        results[name] = {
            "params": params,
            "tune": {metric: on_tune.metrics[metric] for metric in SHOWN},
            "holdout": {metric: on_holdout.metrics[metric] for metric in SHOWN},
            "per_query": {
                metric: dict(zip(holdout_ids, on_holdout.per_query[metric], strict=True))
                for metric in SHOWN
            },
        }
    return results, needed


def paired(seeds, name, reference, metric):
    """Return mean difference and 95 % interval over distinct held-out queries."""
    differences = defaultdict(list)
    for results in seeds:
        ours, theirs = (results[which]["per_query"][metric] for which in (name, reference))
        for query, value in ours.items():
            if not np.isnan(value):
                differences[query].append(value - theirs[query])
    means = np.array([np.mean(values) for values in differences.values()])
    half = stats.t.ppf(0.975, len(means) - 1) * means.std(ddof=1) / np.sqrt(len(means))
    return means.mean(), means.mean() - half, means.mean() + half


def report(dataset_name, seeds, needed):
    """Print one data set's tables; return them for --json."""
    rows = []
    print(f"\n## {dataset_name}\n")
    print(
        "| | tune nDCG@10 | holdout nDCG@10 | tune recall@5 | holdout recall@5 "
        "| nDCG@10 less text only | less graph only | less default | trials to 1 % |"
    )
    print("| --- | " + "---: | " * 8)
    for name in seeds[0]:
        row = {"name": name}
        for metric in SHOWN:
            for part in ("tune", "holdout"):
                row[f"{part} {metric}"] = float(np.mean([r[name][part][metric] for r in seeds]))
        for reference in ("text only", "graph only", "default"):
            row[f"less {reference}"] = (
                None
                if name == reference
                else [float(x) for x in paired(seeds, name, reference, "ndcg@10")]
            )
            row[f"recall@5 less {reference}"] = (
                None
                if name == reference
                else [float(x) for x in paired(seeds, name, reference, "recall@5")]
            )
        row["trials"] = [one.get(name) for one in needed] if name in BUDGETS else None
        row["params"] = [r[name]["params"] for r in seeds]
        rows.append(row)
        cells = [
            f"{row[f'{part} {metric}']:.3f}" for metric in SHOWN for part in ("tune", "holdout")
        ]
        for reference in ("text only", "graph only", "default"):
            cells.append(shown(row[f"less {reference}"]))
        trials = (
            ""
            if row["trials"] is None
            else ", ".join("–" if t is None else str(t) for t in row["trials"])
        )
        print(f"| {name} | " + " | ".join(cells) + f" | {trials} |")
    return rows


def shown(difference):
    if difference is None:
        return ""
    mean, low, high = difference
    return f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    everything = {}
    for path in arguments.paths:
        dataset = open_dataset(path)
        retriever = Hybrid.build(dataset.corpus, cache_dir=cache_dir())
        retriever.prepare(dataset.queries)
        runs = [one_seed(dataset, retriever, seed) for seed in range(arguments.seeds)]
        everything[dataset.name] = report(
            dataset.name, [results for results, _ in runs], [needed for _, needed in runs]
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
