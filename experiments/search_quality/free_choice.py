"""Which setting of free parameters to take of all that one answer tells: held-out loss of six rules.

    python experiments/search_quality/free_choice.py builtin:atlas path/to/set … [--seeds 5 --places 8]

For each data set, split and place (max_hops and temperature by chance) one answer to the tune half
gives the objective for every `graph_weight` and `top_k`; each rule takes one setting, which is then
evaluated on the other half. Tables: what is held out, less what the highest on the tune half gives
there, in thousandths; mean over places, with a 95 % t interval over sets and splits.
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import stats

from tuner.datasets import open_dataset, split_queries
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.free.choice import paired_errors
from tuner.evaluation.free.mixture import lines_of, worth_of
from tuner.evaluation.free.sweep import sweep
from tuner.evaluation.objective import Objective
from tuner.retrieval.hybrid import Hybrid
from tuner.run.systems import cache_dir

OBJECTIVE = Objective(
    {"recall@10": 0.5, "mrr@10": 0.3, "ndcg@10": 0.2}, {"context_tokens_per_1000": 0.02}
)
DEPTHS = range(3, 11)
WEIGHTS = np.linspace(0.005, 0.995, 100)
DRAWS = 200


def highest(table):
    place = np.unravel_index(table.objective.argmax(), table.objective.shape)
    return int(place[0]), int(place[1])


def smoothed(width):
    """The highest of means over a window of weights."""

    def rule(table):
        kernel = np.ones(width) / width
        padded = np.pad(table.objective, [(0, 0), (width // 2, width // 2)], mode="edge")
        means = np.array([np.convolve(row, kernel, mode="valid") for row in padded])
        place = np.unravel_index(means.argmax(), means.shape)
        return int(place[0]), int(place[1])

    return rule


def within_one_error(table):
    best = highest(table)
    errors = paired_errors(table.values, table.values[best])
    return table.objective >= table.objective[best] - np.nan_to_num(errors)


def cheapest(table):
    """As winners are chosen: of those within one standard error the fewest tokens, then the best."""
    is_good = within_one_error(table)
    depth = int(np.flatnonzero(is_good.any(axis=1))[0])
    return depth, int(np.where(is_good[depth], table.objective[depth], -np.inf).argmax())


def plateau(table):
    """The middle of the widest range of weights within one standard error, at the best depth."""
    depth, _ = highest(table)
    return depth, _widest_middle(within_one_error(table)[depth])


def _widest_middle(is_good):
    edges = np.flatnonzero(np.diff(np.concatenate([[0], is_good.astype(int), [0]])))
    starts, ends = edges[::2], edges[1::2]
    widest = int((ends - starts).argmax())
    return int((starts[widest] + ends[widest] - 1) // 2)


def resampled(table):
    """The median weight of those that are best when queries are drawn anew, at the usual depth."""
    values = table.values.reshape(-1, table.values.shape[-1])
    values = values[:, ~np.isnan(values[0])]
    n = values.shape[1]
    drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=DRAWS)
    depths, weights = np.unravel_index((drawn @ values.T).argmax(axis=1), table.objective.shape)
    depth = int(np.bincount(depths).argmax())
    return depth, int(np.median(weights[depths == depth]))


RULES = {
    "highest": highest,
    "smoothed .05": smoothed(5),
    "smoothed .15": smoothed(15),
    "smoothed .25": smoothed(25),
    "plateau": plateau,
    "resampled": resampled,
    "cheapest": cheapest,
}


class Table:
    """The objective of one answer at each depth and weight: mean, and by query."""

    def __init__(self, evaluate, free, params):
        worth = worth_of(evaluate, OBJECTIVE)
        asked = {**params, "graph_weight": 0.5, "top_k": max(DEPTHS)}
        rankings = evaluate.retriever.retrieve(evaluate.queries, asked)
        lines = lines_of(
            evaluate, free.mixing, rankings, asked, "graph_weight", (0.0, 1.0), needs_tokens=True
        )
        steps = sweep(lines, worth, list(DEPTHS), 10)
        self.objective = np.array(
            [[one.objective[one.step_at(weight)] for weight in WEIGHTS] for one in steps]
        )
        self.values = np.array([[one.by_query(weight) for weight in WEIGHTS] for one in steps])


def halves(dataset, retriever, seed):
    by_id = {query.id: query for query in dataset.queries}
    for ids in split_queries(
        dataset.queries, holdout=0.5, stratify_by=["query_type", "difficulty"], seed=seed
    ):
        queries = [by_id[id_] for id_ in ids]
        yield Evaluator.build(retriever, queries, dataset.qrels, OBJECTIVE.metric_names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--places", type=int, default=8)
    given = parser.parse_args()
    found = defaultdict(list)
    print("| data set | " + " | ".join(RULES) + " |")
    print("| --- |" + " ---: |" * len(RULES))
    for path in given.sets:
        dataset = open_dataset(path)
        retriever = Hybrid.build(dataset.corpus, cache_dir=cache_dir()).telling_legs()
        retriever.prepare(dataset.queries)
        free = retriever.free_knobs({}, ["graph_weight", "top_k"])
        of_set = defaultdict(list)
        for seed in range(given.seeds):
            tune, held_out = halves(dataset, retriever, seed)
            rng = np.random.default_rng(seed)
            gains = defaultdict(list)
            for _ in range(given.places):
                params = {
                    "max_hops": int(rng.integers(1, 6)),
                    "temperature": float(10 ** rng.uniform(-2, 0)),
                }
                seen, unseen = Table(tune, free, params), Table(held_out, free, params)
                reference = unseen.objective[highest(seen)]
                for name, rule in RULES.items():
                    gains[name].append(1000 * (unseen.objective[rule(seen)] - reference))
            for name, values in gains.items():
                of_set[name].append(float(np.mean(values)))
                found[name].append(float(np.mean(values)))
        row = " | ".join(f"{np.mean(of_set[name]):+.2f}" for name in RULES)
        print(f"| {Path(path.partition(':')[2] or path).name} | {row} |", flush=True)
    cells = []
    for name in RULES:
        values = np.array(found[name])
        half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
        cells.append(f"{values.mean():+.2f} ± {half:.2f}")
    print("| all | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
