"""What good answers depend on: do the intervals hold the truth, and do weights gain by chance?

    python experiments/statistics/answers.py [--only correlation composite discount] [--json FILE]
        [--rows FILE.jsonl]

Real values of metrics, of configurations of the built-in engine on atlas, and made-up answers: what
is true of them is known. Each study draws queries with replacement, configurations at random, and
the answers anew.

- correlation: does each 95 % interval of `correlate_ranks` hold what it estimates, over all queries
  and many answers? And that of `explained_gain`, nDCG against recall?
- composite: how often do weights that were fitted on one half seem to beat equal ones on the other
  (the lower end of the interval is above 0), where equal ones are the best, where the answers go
  with no metric, and where they go with one?
- discount: does each interval of `fit_discount_with_intervals` hold the weight that made the answers?

Answers are `graded` (a number: a metric, the query's own ease, and noise) or `right or wrong` (0 or
1, by chance, more likely right where the metric is high). `--rows` keeps each row, and goes on there.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from populations import ATLAS
from search_quality import DEFAULT, SPACE, TEXT_ONLY

from tuner.backends.random import Random
from tuner.datasets import open_dataset
from tuner.evaluation.evaluator import Evaluator
from tuner.retrieval.hybrid import Hybrid
from tuner.run.systems import cache_dir
from tuner.stats.composite import Halves, compare_taus, fit_weights
from tuner.stats.discount import fit_discount_with_intervals
from tuner.stats.rank_correlation import (
    centred_sums,
    correlate_ranks,
    explained_gain,
    explained_share,
    resampled_interval,
    tau_b,
)

METRICS = (
    "recall@10",
    "precision@10",
    "ndcg@10",
    "mrr@10",
    "context_precision@10",
    "discounted_precision_binary@10",
)
RECALL, NDCG, MRR = 0, 2, 3
CONFIGURATIONS = 8
SIZES = (30, 60, 200)
# So often are the answers to every query made, to know what is true.
TRUTH = 40
CURVES = {
    "U": (1.0, 0.8, 0.6, 0.5, 0.5, 0.6, 0.8, 0.95),
    "log": tuple(1.0 / np.log2(np.arange(2.0, 10.0))),
    "flat": (1.0,) * 8,
}
RANKS = (1, 2, 3, 5, 8)
CORRELATIONS = ("within", "between", "by percentiles", "explained", "gain")


def measured(path, *, configurations, seed):
    """Return the values of every metric, shape (metrics, configurations, queries)."""
    dataset = open_dataset(path)
    retriever = Hybrid.build(dataset.corpus, cache_dir=cache_dir())
    retriever.prepare(dataset.queries)
    scored = Evaluator.build(
        retriever, list(dataset.queries), dataset.qrels, METRICS, scale=dataset.scale
    )
    others = Random(budget=configurations).suggest(SPACE, [], count=configurations - 2, seed=seed)
    found = [
        scored.measure(retriever.retrieve(dataset.queries, params)).per_query
        for params in (DEFAULT, TEXT_ONLY, *others)
    ]
    values = np.array([[one[name] for one in found] for name in METRICS])
    return values[:, :, ~np.isnan(values).any(axis=(0, 1))]


def graded(random, by, ease):
    return 0.6 * by + ease + 0.3 * random.normal(size=by.shape)


def right_or_wrong(random, by, ease):
    return (random.random(by.shape) < 0.1 + 0.6 * by + 0.3 * ease).astype(float)


KINDS = {"graded": graded, "right or wrong": right_or_wrong}


def truths(values, answers, random):
    """Return what is true of one set of configurations: those of ``CORRELATIONS``."""
    ease = np.tile(random.random(values.shape[2]), TRUTH)
    many = np.tile(values, (1, 1, TRUTH))
    quality = answers(random, many[NDCG], ease)
    taus = tau_b(many[NDCG], quality)
    sums = [centred_sums(many[metric], quality).sum(axis=1) for metric in (NDCG, RECALL)]
    one, other = (float(explained_share(part)) for part in sums)
    # The expected answers rise with the metric, so their means are ordered as its means are.
    return float(np.nanmean(taus)), 1.0, 1.0, one, one / other - 1.0


def correlation(values, kept, *, repetitions, seed):
    """Print how often each interval holds the truth; return the rows."""
    rows = []
    print(
        "\n| answers | queries | within | between | between, by percentiles | explained | gain "
        "| width within |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for name, answers in KINDS.items():
        for n in SIZES:
            row = kept.get("correlation", name, n)
            if row is None:
                random = np.random.default_rng([seed, n])
                held, widths = [], []
                for _ in range(repetitions):
                    chosen = random.choice(values.shape[1], size=CONFIGURATIONS, replace=False)
                    true = truths(values[:, chosen], answers, random)
                    columns = random.integers(0, values.shape[2], size=n)
                    sample = values[:, chosen][:, :, columns]
                    quality = answers(random, sample[NDCG], random.random(n))
                    found = correlate_ranks(sample[NDCG], quality, seed=0)
                    gain = explained_gain(sample[NDCG], sample[RECALL], quality, seed=0)
                    ends = (
                        found.within_interval,
                        found.between_interval,
                        _by_percentiles(sample[NDCG], quality),
                        found.explained_interval,
                        gain.interval,
                    )
                    held.append([_holds(end, one) for end, one in zip(ends, true, strict=True)])
                    if found.within_interval is not None:
                        widths.append(found.within_interval[1] - found.within_interval[0])
                shares = np.nanmean(held, axis=0).tolist()
                row = dict(zip(CORRELATIONS, shares, strict=True)) | {
                    "width": float(np.mean(widths))
                }
                row = kept.add("correlation", name, n, row)
            rows.append(row)
            told = " | ".join(f"{100 * row[key]:.1f} %" for key in CORRELATIONS)
            print(f"| {name} | {n} | {told} | {row['width']:.3f} |", flush=True)
    return rows


def _by_percentiles(metric, quality):
    """Return the usual bootstrap interval of tau between configurations, to compare with."""

    def of_means(counts):
        return tau_b(metric @ counts.T, quality @ counts.T)

    return resampled_interval(of_means, np.arange(quality.shape[1]), seed=0)


def _holds(interval, true):
    return float("nan") if interval is None else float(interval[0] <= true <= interval[1])


def composite(values, kept, *, repetitions, seed):
    """Print how often fitted weights seem to beat equal ones; return the rows."""
    rows = []
    print("\n| answers | go with | queries | seem to gain | seem to lose | mean difference |")
    print("| --- | --- | ---: | ---: | ---: | ---: |", flush=True)
    goes_with = {
        "all metrics alike": lambda sample: sample.mean(axis=0),
        "none": lambda sample: np.full(sample.shape[1:], 0.5),
        "mrr@10": lambda sample: sample[MRR],
        "recall@10": lambda sample: sample[RECALL],
    }
    for name, answers in KINDS.items():
        for by, of in goes_with.items():
            for n in (60, 100, 200):
                row = kept.get("composite", f"{name}, {by}", n)
                if row is None:
                    random = np.random.default_rng([seed, n])
                    found = []
                    for _ in range(repetitions):
                        chosen = random.choice(values.shape[1], size=CONFIGURATIONS, replace=False)
                        columns = random.integers(0, values.shape[2], size=n)
                        sample = values[:, chosen][:, :, columns]
                        quality = answers(random, of(sample), random.random(n))
                        found.append(_fitted_less_equal(sample, quality, random))
                    gains, losses, mean = np.nanmean(found, axis=0).tolist()
                    row = {"gains": gains, "losses": losses, "mean": mean}
                    row = kept.add("composite", f"{name}, {by}", n, row)
                rows.append(row)
                print(
                    f"| {name} | {by} | {n} | {100 * row['gains']:.1f} % "
                    f"| {100 * row['losses']:.1f} % | {row['mean']:+.3f} |",
                    flush=True,
                )
    return rows


def _fitted_less_equal(sample, quality, random):
    """Return whether fitted weights seem to gain, to lose, and by how much, on the other half.

    Where no metric helps there are none, and nothing seems to be gained.
    """
    n = quality.shape[1]
    to_fit = Halves.drawn(range(n), seed=int(random.integers(2**32))).is_to_fit
    weights = fit_weights(sample[:, :, to_fit], quality[:, to_fit])
    if weights is None:
        return 0.0, 0.0, float("nan")
    held = sample[:, :, ~to_fit]
    both = np.tensordot(weights, held, 1), held.mean(axis=0)
    compared = compare_taus(*both, quality[:, ~to_fit], range(int((~to_fit).sum())), seed=0)
    low, high = compared.interval or (0.0, 0.0)
    mean = float("nan") if compared.mean_difference is None else compared.mean_difference
    return float(low > 0), float(high < 0), mean


def discount(kept, *, repetitions, seed):
    """Print how often each interval holds its weight; return the rows."""
    rows = []
    print("\n| curve | answers | queries | coverage | above | below | width | no weights |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for curve, weights in CURVES.items():
        for name in KINDS:
            for n in SIZES:
                row = kept.get("discount", f"{curve}, {name}", n)
                if row is None:
                    random = np.random.default_rng([seed, n])
                    found = [
                        _discount(random, np.array(weights), name, n) for _ in range(repetitions)
                    ]
                    shares = np.nanmean(found, axis=0).tolist()
                    row = dict(zip(("above", "below", "width", "none"), shares, strict=True))
                    row = kept.add("discount", f"{curve}, {name}", n, row)
                rows.append(row)
                shares = [1.0 - row["above"] - row["below"], row["above"], row["below"]]
                told = " | ".join(f"{100 * share:.1f} %" for share in shares)
                print(
                    f"| {curve} | {name} | {n} | {told} | {row['width']:.3f} "
                    f"| {100 * row['none']:.1f} % |",
                    flush=True,
                )
    return rows


def _discount(random, weights, name, n):
    """Return how many of the intervals miss on either side, their width, and if there are none.

    Between the ranks that are tried the truth is the line that the weights are on.
    """
    tried = np.array(RANKS) - 1
    true = np.interp(np.arange(1.0, 9.0), RANKS, weights[tried])
    worth, base = random.uniform(0.1, 0.9, size=(n, 1)), random.uniform(0.0, 0.3, size=(n, 1))
    expected = base + np.hstack([np.zeros((n, 1)), 0.7 * worth * weights[tried]])
    if name == "graded":
        quality = expected + 0.2 * random.normal(size=expected.shape)
    else:
        quality = (random.random(expected.shape) < expected).astype(float)
    found = fit_discount_with_intervals(quality[:, 1:] - quality[:, :1], RANKS)
    if not found.weights:
        return float("nan"), float("nan"), float("nan"), 1.0
    low, high = np.array(found.intervals).T[:, tried[1:]]
    true = true[tried[1:]]
    width = np.median(high - low)
    return float((low > true).mean()), float((high < true).mean()), float(width), 0.0


class Kept:
    """Rows that were measured before, a line each; none without a file."""

    def __init__(self, path):
        self.path, self.rows = path, {}
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                self.rows[row["part"], row["case"], row["queries"]] = row

    def get(self, *key):
        return self.rows.get(key)

    def add(self, part, case, queries, figures):
        row = {"part": part, "case": case, "queries": queries, **figures}
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parts = ("correlation", "composite", "discount")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--configurations", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    kept = Kept(options.rows)
    asked = {"repetitions": options.repetitions, "seed": options.seed}
    found = {}
    if {"correlation", "composite"} & set(options.only):
        values = measured(ATLAS, configurations=options.configurations, seed=options.seed)
    if "correlation" in options.only:
        found["correlation"] = correlation(values, kept, **asked)
    if "composite" in options.only:
        found["composite"] = composite(values, kept, **asked)
    if "discount" in options.only:
        found["discount"] = discount(kept, **asked)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
