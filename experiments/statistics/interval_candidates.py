"""Is there a better interval than Student's t for few queries, ties and skew? Seven others, tried.

    python experiments/statistics/interval_candidates.py [--repetitions 4000] [--json FILE] [DATASET …]

Populations are the per-query differences of random pairs of configurations (`populations.py`) and a
few made-up ones whose mean is known. From each, n differences are drawn with replacement; an
interval covers where it holds the population's mean. Its width is the median, over samples, of the
multiple of t's.

- *t*: mean -+ t(n - 1) sd / sqrt(n).
- *t, differing*: the same with as many degrees of freedom as there are queries that differ, less 1.
- *t, kurtosis*: degrees of freedom by how uncertain the sample's variance is; what `compare_paired`
  reports and explains.
- *Hall*: t after the cubic transform that takes the skew out (Hall 1992, after Johnson 1978).
- *bootstrap-t*: quantiles of t over resamples (Efron 1979), each side by its own.
- *symmetric bootstrap-t*: one quantile of abs(t) for both sides (Hall 1988); a double bootstrap that
  calibrates the level of t has the same aim.
- *bootstrap Hall*: quantiles of the transformed t over resamples.
- *sign-flip*: the means that the sign-flip test does not reject. Flipping the signs of d - m leaves
  their mean as extreme exactly where the mean of the flipped ones reaches m, so its ends are
  quantiles of the means of random subsets (Hartigan 1969).

Resamples are drawn anew for every block of samples and shared within a block. A resample without any
spread counts as an infinitely large t where its mean is off, and as 0 where it is not.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from interval_coverage import QUERIES, degrees_by_row, random_pairs, shape_of
from populations import ATLAS, measure_population
from scipy import stats

ALPHA = 0.05
BLOCK = 250
SYNTHETIC_SIZE = 100_000
NAMES = (
    "t",
    "t, differing",
    "t, kurtosis",
    "Hall",
    "bootstrap-t",
    "symmetric bootstrap-t",
    "bootstrap Hall",
    "sign-flip",
)


def synthetic(random):
    """Return made-up populations of differences: known mean, from tame to cruel."""
    size = SYNTHETIC_SIZE
    is_rare = random.random(size) < 0.3
    return {
        "normal": stats.norm.ppf((np.arange(size) + 0.5) / size),
        "exponential": stats.expon.ppf((np.arange(size) + 0.5) / size),
        "70 % ties, normal": np.where(is_rare, random.normal(0.1, 0.3, size), 0.0),
        "70 % ties, exponential": np.where(is_rare, random.exponential(0.3, size), 0.0),
        "95 % +.02, 5 % -.4": np.where(random.random(size) < 0.95, 0.02, -0.4),
    }


def hall(t, skew, n):
    """Return t with the skew taken out; ``skew`` is that of the values."""
    a = skew / np.sqrt(n)
    return t + a * t**2 / 3 + a**2 * t**3 / 27 + a / 6


def unhall(value, skew, n):
    """Return the t of which ``hall`` makes ``value``."""
    a = skew / np.sqrt(n)
    a = np.where(np.abs(a) < 1e-9, 1e-9, a)
    return 3 / a * (np.cbrt(1 + a * (value - a / 6)) - 1)


def studentised(offset, variance, n):
    """Return offset / standard error, without a spread infinite or 0."""
    tiny = variance < 1e-18
    error = np.sqrt(np.where(tiny, 1.0, variance) / n)
    t = offset / error
    is_off = tiny & (np.abs(offset) > 1e-12)
    return np.where(is_off, np.copysign(np.inf, offset), np.where(tiny, 0.0, t))


def intervals(sample, *, resamples, random):
    """Return each candidate's (low, high) for each row of ``sample``, shape (samples, n)."""
    n = sample.shape[1]
    mean, sd = sample.mean(axis=1), sample.std(axis=1, ddof=1)
    error = sd / np.sqrt(n)
    centred = sample - mean[:, None]
    m2 = (centred**2).mean(axis=1)
    safe = np.where(m2 > 1e-18, m2, 1.0)
    skew = (centred**3).mean(axis=1) / safe**1.5

    def symmetric(critical):
        return mean - critical * error, mean + critical * error

    def between(low_t, high_t):
        # 0 * inf, a sample without spread, is a point.
        with np.errstate(invalid="ignore"):
            low, high = mean - high_t * error, mean - low_t * error
        return np.where(np.isnan(low), mean, low), np.where(np.isnan(high), mean, high)

    tail = np.array([ALPHA / 2, 1 - ALPHA / 2])
    critical = stats.t.ppf(1 - ALPHA / 2, n - 1)
    differing = np.maximum(np.count_nonzero(np.abs(sample) > 1e-12, axis=1) - 1, 1)
    counts = random.multinomial(n, np.full(n, 1 / n), size=resamples).astype(float)
    # About the sample's mean, where the third moment needs no differences of large numbers.
    first = centred @ counts.T / n
    second = np.maximum(centred**2 @ counts.T / n - first**2, 0.0)
    third = centred**3 @ counts.T / n - 3 * first * (centred**2 @ counts.T / n) + 2 * first**3
    t = studentised(first, second * n / (n - 1), n)
    low_t, high_t = np.quantile(t, tail, axis=1, method="inverted_cdf")
    absolute = np.quantile(np.abs(t), 1 - ALPHA, axis=1, method="inverted_cdf")
    flat = second < 1e-18
    their_skew = np.where(flat, 0.0, third / np.where(flat, 1.0, second) ** 1.5)
    transformed = np.where(flat, t, hall(np.where(flat, 0.0, t), their_skew, n))
    low_h, high_h = np.quantile(transformed, tail, axis=1, method="inverted_cdf")

    is_in = (random.random((resamples, n)) < 0.5).astype(float)
    is_in = is_in[is_in.sum(axis=1) > 0]
    subset_means = sample @ (is_in / is_in.sum(axis=1, keepdims=True)).T
    flip_low, flip_high = np.quantile(subset_means, tail, axis=1)

    return {
        "t": symmetric(critical),
        "t, differing": symmetric(stats.t.ppf(1 - ALPHA / 2, differing)),
        "t, kurtosis": symmetric(stats.t.ppf(1 - ALPHA / 2, degrees_by_row(sample))),
        "Hall": between(unhall(-critical, skew, n), unhall(critical, skew, n)),
        "bootstrap-t": between(low_t, high_t),
        "symmetric bootstrap-t": between(-absolute, absolute),
        "bootstrap Hall": between(
            np.where(np.isinf(low_h), low_h, unhall(low_h, skew, n)),
            np.where(np.isinf(high_h), high_h, unhall(high_h, skew, n)),
        ),
        "sign-flip": (flip_low, flip_high),
    }


def measure(differences, *, queries, repetitions, resamples, random):
    """Return by candidate (coverage, misses above, misses below, width / width of t)."""
    truth = differences.mean()
    above, below, width = ({name: [] for name in NAMES} for _ in range(3))
    for start in range(0, repetitions, BLOCK):
        size = (min(BLOCK, repetitions - start), queries)
        sample = differences[random.integers(0, differences.size, size=size)]
        found = intervals(sample, resamples=resamples, random=random)
        for name, (low, high) in found.items():
            above[name].append(low > truth + 1e-12)
            below[name].append(high < truth - 1e-12)
            width[name].append(high - low)
    by_t = np.concatenate(width["t"])
    has_spread = by_t > 1e-12
    result = {}
    for name in NAMES:
        widths = np.concatenate(width[name])
        over, under = np.mean(np.concatenate(above[name])), np.mean(np.concatenate(below[name]))
        result[name] = {
            "coverage": float(1 - over - under),
            "above": float(over),
            "below": float(under),
            "width": float(np.median(widths[has_spread] / by_t[has_spread])),
            "infinite": float(np.mean(np.isinf(widths))),
        }
    return result


def print_spread(title, rows):
    """Print mean and lowest tenth of the coverage, and the width, over pairs and by size."""
    print(f"\n## {title}\n")
    print("| interval | " + " | ".join(f"n = {n}" for n in rows) + " |")
    print("| --- |" + " ---: |" * len(rows))
    for name in NAMES:
        cells = []
        for found in rows.values():
            covered = np.array([one[name]["coverage"] for one in found])
            is_within = np.mean((covered >= 0.94) & (covered <= 0.96))
            width = np.mean([one[name]["width"] for one in found])
            infinite = np.mean([one[name]["infinite"] for one in found])
            tail = f", {100 * infinite:.1f} % infinite" if infinite > 0.0005 else ""
            cells.append(
                f"{100 * covered.mean():.1f} ({100 * np.quantile(covered, 0.1):.1f}) "
                f"{100 * is_within:.0f} %, x {width:.2f}{tail}"
            )
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", default=[ATLAS])
    parser.add_argument("--repetitions", type=int, default=4_000)
    parser.add_argument("--resamples", type=int, default=999)
    parser.add_argument("--pairs", type=int, default=50)
    parser.add_argument("--configurations", type=int, default=100)
    parser.add_argument("--queries", type=int, nargs="+", default=QUERIES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    everything = {}

    def run(differences, queries, random):
        return measure(
            differences,
            queries=queries,
            repetitions=arguments.repetitions,
            resamples=arguments.resamples,
            random=random,
        )

    random = np.random.default_rng(arguments.seed)
    made_up = synthetic(random)
    everything["made up"] = {}
    for name, differences in made_up.items():
        rows = {n: [run(differences, n, random)] for n in arguments.queries}
        everything["made up"][name] = rows
        print_spread(name, rows)
    for path in arguments.datasets:
        population = measure_population(
            path, configurations=arguments.configurations, seed=arguments.seed
        )
        random = np.random.default_rng(arguments.seed)
        pairs = random_pairs(population, count=arguments.pairs, random=random)
        rows = {n: [run(pair, n, random) for pair in pairs] for n in arguments.queries}
        everything[population.name] = {
            "shapes": [shape_of(pair) for pair in pairs],
            "rows": rows,
        }
        print_spread(f"{population.name}: {len(pairs)} random pairs", rows)
    if arguments.json:
        arguments.json.write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
