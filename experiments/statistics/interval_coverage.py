"""Does the 95 % interval hold the true difference in 95 % of samples? The truth is known here.

    python experiments/statistics/interval_coverage.py [--repetitions 20000] [--json FILE] [DATASET …]

Differences per query between two real configurations of the built-in engine (many ties, skewed)
are the population; n of them are drawn with replacement, and the interval either holds their mean
or does not. Five pairs are shown one by one, for the t interval (`compare_paired`) and the BCa
bootstrap (`bca_interval`), and normal differences as a control; then the t interval over pairs of
configurations drawn at random.

"Misses above" are samples whose interval lies above the truth (a gain that is not there), "below"
those under it. A sample whose differences are all the same counts as a miss unless they are the truth.
The last table sorts the random pairs by how many of the queries can be expected to differ at all.
"""

from __future__ import annotations

import argparse
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
from populations import ATLAS, BASELINE, measure_population
from scipy import stats

from tuner.stats import bca_interval, compare_paired

QUERIES = (30, 50, 100, 200)
CONFIDENCE = 0.95
TEXT_ONLY = 1
DRAWN_AT_ONCE = 2_000_000
DIFFERING = (0, 10, 20, 40, 80, 1_000)


def degrees_by_row(sample):
    """Return `tuner.stats.degrees_of_freedom` of each row of ``sample``, shape (samples, n)."""
    n = sample.shape[1]
    squares = (sample - sample.mean(axis=1, keepdims=True)) ** 2
    second = squares.mean(axis=1)
    is_flat = second < 1e-18
    kurtosis = (squares**2).mean(axis=1) / np.where(is_flat, 1.0, second) ** 2
    degrees = 2.0 / (np.maximum(kurtosis - 1.0, 0.0) / n + 2.0 / (n * (n - 1)))
    return np.minimum(degrees, n - 1)


def t_misses(differences, *, queries, repetitions, random):
    """Return the shares of samples whose t interval lies above, and below, the truth."""
    truth = differences.mean()
    above = below = 0
    step = max(1, DRAWN_AT_ONCE // queries)
    for start in range(0, repetitions, step):
        size = (min(step, repetitions - start), queries)
        sample = differences[random.integers(0, differences.size, size=size)]
        mean = sample.mean(axis=1)
        critical = stats.t.ppf(0.5 + CONFIDENCE / 2, degrees_by_row(sample))
        half = critical * sample.std(axis=1, ddof=1) / np.sqrt(queries)
        above += int(np.count_nonzero(mean - half > truth))
        below += int(np.count_nonzero(mean + half < truth))
    return above / repetitions, below / repetitions


def bca_misses(differences, *, queries, repetitions, resamples, random):
    """Return the same of the BCa interval, one sample at a time."""
    truth = differences.mean()
    above = below = 0
    for repetition in range(repetitions):
        sample = differences[random.integers(0, differences.size, size=queries)]
        interval = bca_interval(sample, seed=repetition, confidence=CONFIDENCE, resamples=resamples)
        low, high = (sample[0], sample[0]) if interval is None else interval
        above += low > truth
        below += high < truth
    return above / repetitions, below / repetitions


def check_against_library(differences, random):
    """Fail where the vectorised t interval is not the one that `compare_paired` reports."""
    sample = random.choice(differences, size=50)
    while np.ptp(sample) == 0.0:
        sample = random.choice(differences, size=50)
    low, high = compare_paired(
        sample, np.zeros(50), seed=0, confidence=CONFIDENCE, permutations=0, resamples=0
    ).interval
    (degrees,) = degrees_by_row(sample[None, :])
    half = stats.t.ppf(0.5 + CONFIDENCE / 2, degrees) * sample.std(ddof=1) / np.sqrt(50)
    np.testing.assert_allclose([low, high], [sample.mean() - half, sample.mean() + half])


def chosen_pairs(population):
    """Return the named pairs: rows whose share of ties goes from few to nearly all."""
    values = population.values
    order = np.argsort(values.mean(axis=1))
    best = int(order[-1])
    ties = np.mean(np.abs(values - values[best]) < 1e-12, axis=1)
    closest = int(np.argmax(np.where(np.ptp(values - values[best], axis=1) > 0, ties, -1.0)))
    return {
        "best, default": values[best] - values[BASELINE],
        "best, text only": values[best] - values[TEXT_ONLY],
        "default, text only": values[BASELINE] - values[TEXT_ONLY],
        "best, worst": values[best] - values[int(order[0])],
        "best, the one most like it": values[best] - values[closest],
        "control: normal": stats.norm.ppf((np.arange(10_000) + 0.5) / 10_000),
    }


def random_pairs(population, *, count, random):
    """Return differences of pairs of rows drawn at random, shape (``count``, queries)."""
    rows = population.values.shape[0]
    first = random.integers(0, rows, size=count)
    second = (first + random.integers(1, rows, size=count)) % rows
    differences = population.values[first] - population.values[second]
    return differences[np.ptp(differences, axis=1) > 0]


def shape_of(differences):
    """Return the share of ties and the skewness of a pair's differences."""
    ties = float(np.mean(np.abs(differences) < 1e-12))
    return ties, float(stats.skew(differences))


def one_by_one(population, arguments):
    """Print coverage of the chosen pairs; return the rows for --json."""
    rows = []
    print("| pair | ties | skew | queries | t | misses above, below | BCa | misses above, below |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for number, (name, differences) in enumerate(chosen_pairs(population).items()):
        ties, skew = shape_of(differences)
        for queries in arguments.queries:
            random = np.random.default_rng([arguments.seed, number, queries])
            check_against_library(differences, random)
            by_t = t_misses(
                differences, queries=queries, repetitions=arguments.repetitions, random=random
            )
            by_bca = bca_misses(
                differences,
                queries=queries,
                repetitions=arguments.bca_repetitions,
                resamples=arguments.resamples,
                random=random,
            )
            cells = [
                f"{100 * (1 - sum(misses)):.1f} % | {100 * misses[0]:.1f}, {100 * misses[1]:.1f}"
                for misses in (by_t, by_bca)
            ]
            print(
                f"| {name} | {100 * ties:.0f} % | {skew:+.1f} | {queries} | {' | '.join(cells)} |",
                flush=True,
            )
            rows.append(
                {
                    "pair": name,
                    "ties": ties,
                    "skew": skew,
                    "queries": queries,
                    "t_misses": by_t,
                    "bca_misses": [float(share) for share in by_bca],
                }
            )
    return rows


def at_random(population, arguments):
    """Print how the t interval's coverage spreads over random pairs; return rows for --json."""
    random = np.random.default_rng(arguments.seed)
    pairs = random_pairs(population, count=arguments.pairs, random=random)
    rows = []
    print(f"\n{len(pairs)} random pairs: coverage of the t interval\n")
    print(
        "| queries | mean | lowest tenth | median | pairs within 94 to 96 % | expected to differ |"
    )
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for queries in arguments.queries:
        covered = np.array(
            [
                1.0
                - sum(
                    t_misses(
                        pair, queries=queries, repetitions=arguments.repetitions, random=random
                    )
                )
                for pair in pairs
            ]
        )
        moved = queries * np.mean(np.abs(pairs) >= 1e-12, axis=1)
        tenth, median = np.quantile(covered, [0.1, 0.5])
        is_within = (covered >= 0.94) & (covered <= 0.96)
        print(
            f"| {queries} | {100 * covered.mean():.1f} % | {100 * tenth:.1f} % "
            f"| {100 * median:.1f} % | {100 * is_within.mean():.0f} % "
            f"| {np.median(moved):.0f} of {queries} |",
            flush=True,
        )
        rows.append(
            {
                "queries": queries,
                "covered": covered.tolist(),
                "moved": moved.tolist(),
                "skew": [shape_of(pair)[1] for pair in pairs],
            }
        )
    return rows


def by_differing(rows):
    """Print coverage by how many queries differ, over all random pairs and sizes."""
    covered = np.concatenate([row["covered"] for row in rows])
    moved = np.concatenate([row["moved"] for row in rows])
    skew = np.concatenate([row["skew"] for row in rows])
    print("\n| queries that differ | pairs | mean | lowest tenth | with skew over 2 |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for low, high in pairwise(DIFFERING):
        is_in = (moved >= low) & (moved < high)
        if not is_in.any():
            continue
        is_skewed = is_in & (np.abs(skew) > 2)
        skewed = f"{100 * covered[is_skewed].mean():.1f} %" if is_skewed.any() else "–"
        print(
            f"| {low} to {high - 1} | {is_in.sum()} | {100 * covered[is_in].mean():.1f} % "
            f"| {100 * np.quantile(covered[is_in], 0.1):.1f} % | {skewed} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", default=[ATLAS])
    parser.add_argument("--repetitions", type=int, default=20_000)
    parser.add_argument("--bca-repetitions", type=int, default=4_000)
    parser.add_argument("--resamples", type=int, default=999, help="of each BCa interval")
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--configurations", type=int, default=100)
    parser.add_argument("--queries", type=int, nargs="+", default=QUERIES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    everything = {}
    for path in arguments.datasets:
        population = measure_population(
            path, configurations=arguments.configurations, seed=arguments.seed
        )
        print(f"\n## {population.name}\n")
        everything[population.name] = {
            "one by one": one_by_one(population, arguments),
            "at random": at_random(population, arguments),
        }
        by_differing(everything[population.name]["at random"])
    if arguments.json:
        arguments.json.write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
