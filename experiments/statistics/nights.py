"""A year of nightly tuning on one holdout: how often is the champion replaced by nothing better?

    python experiments/statistics/nights.py [--years 1000] [--power-years 400] [--json FILE]

A year draws its tune and held-out queries once (`populations.py`). Every night a search looks at 40
of 100 configurations and, as it is warm-started, at yesterday's challenger; the best on the tune
queries, measured with a little noise, is tonight's challenger. It meets the champion on the held-out
queries: naively at 5 % every night, or at the level of `alpha_of_look` or `levels_of_looks`. A
promotion counts where `decide` says *deploy*; the p-values of all looks are computed at once, by the
same formula, and `decide` is asked where one is small enough.

Without an improvement: `equalised` and `shuffled` configurations all have the champion's true mean;
`best` are the real values, and the champion is the one with the highest true mean. Nights differ in
how new their challengers are. `again`: the 100 configurations are all there is, so that a pair comes
again, which is no new look. `new`: each night's challenger has a tenth of the queries of its own, as
another point of a continuous space has, so that there are 365 looks, and each is like the last.

With an improvement: from one night on a configuration is there that is better by .03 or .05, since
on some queries it does as well as the best of all.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from populations import (
    ATLAS,
    BASELINE,
    OWN,
    equalised,
    measure_population,
    real,
    shuffled,
)
from scipy import stats

from tuner.stats import alpha_of_look, levels_of_looks
from tuner.verdict.measured import Measured
from tuner.verdict.verdict import ALPHA, decide

NIGHTS = 365
CANDIDATES = 40
NOISE = 0.01  # standard deviation of a mean over the tune queries, from night to night
FIRST_NIGHTS = (1, 30, 180)
EFFECTS = (0.03, 0.05)
KINDS = {"equalised": equalised, "shuffled": shuffled, "best": real}
COLUMNS_FOR_TRUTH = 20_000
DRAWS = 10_000  # of `levels_of_looks`, whose own are more: so that many years can be simulated
JOINT = "levels_of_looks"
RULES = ("5 % every night", "alpha_of_look", JOINT)


@dataclass(frozen=True, eq=False)
class Year:
    """The looks of a year.

    Attributes:
        champion: values of the held-out queries, shape (queries,).
        challengers: the same of each look's challenger, shape (looks, queries).
        nights: when each look was taken, from 1, shape (looks,).
        is_better: whether it is the planted improvement, shape (looks,).
    """

    champion: np.ndarray
    challengers: np.ndarray
    nights: np.ndarray
    is_better: np.ndarray


def p_values(differences):
    """Return the two-sided p of each row as `compare_paired` has it, shape (rows,)."""
    n = differences.shape[1]
    centred = differences - differences.mean(axis=1, keepdims=True)
    second, fourth = (centred**2).mean(axis=1), (centred**4).mean(axis=1)
    is_flat = second < 1e-24
    second = np.where(is_flat, 1.0, second)
    kurtosis = fourth / second**2
    degrees = np.minimum(2.0 / ((kurtosis - 1.0) / n + 2.0 / (n * (n - 1))), n - 1)
    t = differences.mean(axis=1) / np.sqrt(second / (n - 1))
    return np.where(is_flat, 1.0, 2.0 * stats.t.sf(np.abs(t), degrees))


def chosen_each_night(random, means, champion, *, planted=None, first_night=1):
    """Return the row of each night's challenger; the champion's own where nothing looks better."""
    measured = means + NOISE * random.standard_normal((NIGHTS, means.size))
    is_seen = random.random(measured.shape) < CANDIDATES / means.size
    is_seen[:, champion] = True
    if planted is not None:
        is_seen[: first_night - 1, planted] = False
        is_seen[first_night - 1 :, planted] = True
    chosen = np.empty(NIGHTS, dtype=int)
    yesterday = champion
    for night in range(NIGHTS):
        is_seen[night, yesterday] = True
        scores = np.where(is_seen[night], measured[night], -np.inf)
        yesterday = chosen[night] = int(scores.argmax())
    return chosen


def one_year(random, values, champion, *, is_new, share=0.0, first_night=1):
    """Return the looks of a year at ``values``, shape (configurations, tune + held-out queries).

    ``share``: of the queries on which the planted configuration does as well as the best; 0: none
    is planted.
    """
    rows, both = values.shape
    is_lifted = random.random(both) < share
    highest = values.max(axis=0)
    planted = None
    if share:
        base = values[int(random.integers(1, rows))]
        values = np.vstack([values, np.where(is_lifted, highest, base)])
        planted = rows
    half = both // 2
    holdout = values[:, half:]
    chosen = chosen_each_night(
        random,
        values[:, :half].mean(axis=1),
        champion,
        planted=planted,
        first_night=first_night,
    )
    nights = np.flatnonzero(chosen != champion)
    if not is_new:
        _, firsts = np.unique(chosen[nights], return_index=True)
        nights = nights[np.sort(firsts)]
    challengers = holdout[chosen[nights]]
    is_better = chosen[nights] == planted if share else np.zeros(nights.size, dtype=bool)
    if is_new:
        is_own = random.random(challengers.shape) < OWN
        others = random.integers(1, rows, size=challengers.shape)
        own = holdout[others, np.arange(half)]
        lifted = is_lifted[half:] & is_better[:, None]
        own = np.where(lifted, highest[half:], own)
        challengers = np.where(is_own, own, challengers)
    return Year(holdout[champion], challengers, nights + 1, is_better)


def first_promotion(year, alphas, counted=True):
    """Return the first look, of those that count, that says *deploy* at its own level, or None."""
    differences = year.challengers - year.champion
    is_clear = (p_values(differences) < alphas) & (differences.mean(axis=1) > 0) & counted
    for look in np.flatnonzero(is_clear):
        verdict = decide(
            Measured({"row": 1}, year.challengers[look]),
            Measured({"row": 0}, year.champion),
            alpha=float(alphas[look]),
            draws=0,
        )
        if verdict.outcome == "deploy":
            return int(look)
    return None


def levels(year):
    """Return the levels of the looks by rule, each of shape (looks,)."""
    looks = year.nights.size
    shares = np.array([alpha_of_look(number, alpha=ALPHA) for number in range(1, looks + 1)])
    joint = levels_of_looks(year.challengers - year.champion, shares, draws=DRAWS)
    return {"5 % every night": np.full(looks, ALPHA), "alpha_of_look": shares, JOINT: joint}


def champion_of(kind, population):
    """Return the row of the champion: nothing is truly better."""
    return int(population.values.mean(axis=1).argmax()) if kind == "best" else BASELINE


def without_improvement(population, kind, *, is_new, queries, years, seed):
    """Return one row of the first table."""
    random = np.random.default_rng([seed, queries, is_new])
    draw = KINDS[kind](population)
    champion = champion_of(kind, population)
    looks, lowest, alike, last = [], [], [], []
    promoted = dict.fromkeys(RULES, 0)
    for _ in range(years):
        year = one_year(random, draw(random, 2 * queries), champion, is_new=is_new)
        looks.append(year.nights.size)
        if not year.nights.size:
            continue
        found = levels(year)
        for rule in RULES:
            promoted[rule] += first_promotion(year, found[rule]) is not None
        differences = year.challengers - year.champion
        lowest.append(p_values(differences)[differences.mean(axis=1) > 0].min(initial=1.0))
        last.append(found[JOINT][-1])
        if year.nights.size > 1:
            alike.append(np.corrcoef(differences[[0, -1]])[0, 1])
    return {
        "values": kind,
        "challengers": "new" if is_new else "again",
        "queries": queries,
        "years": years,
        "looks": float(np.median(looks)),
        "alike": float(np.nanmean(alike)),
        **{rule: count / years for rule, count in promoted.items()},
        "last level": float(np.median(last)),
        # The level, the same every night, at which 5 % of these years would promote.
        "level that would do": float(np.quantile(lowest, ALPHA)),
    }


def share_for(draw, effect, *, seed):
    """Return on which share of the queries to do as well as the best, to be better by ``effect``."""
    values = draw(np.random.default_rng([seed, 1]), COLUMNS_FOR_TRUTH)
    return effect / float(values.max(axis=0).mean() - values[1:].mean())


def with_improvement(population, kind, *, effect, first_night, is_new, queries, years, seed):
    """Return one row of the second table: shares of the years by rule, and nights until promoted."""
    random = np.random.default_rng([seed, queries, first_night, is_new])
    draw = KINDS[kind](population)
    share = share_for(draw, effect, seed=seed)
    once = 0
    waits = {rule: [] for rule in RULES}
    for _ in range(years):
        year = one_year(
            random,
            draw(random, 2 * queries),
            BASELINE,
            is_new=is_new,
            share=share,
            first_night=first_night,
        )
        for rule, found in levels(year).items():
            promoted = first_promotion(year, found, year.is_better)
            if promoted is not None:
                waits[rule].append(int(year.nights[promoted]) - first_night)
                if rule == RULES[0]:
                    once += promoted == int(np.flatnonzero(year.is_better)[0])
    return {
        "values": kind,
        "challengers": "new" if is_new else "again",
        "queries": queries,
        "years": years,
        "effect": effect,
        "first night": first_night,
        "one look at 5 %": once / years,
        **{rule: len(found) / years for rule, found in waits.items()},
        "within 30 nights": sum(wait < 30 for wait in waits[JOINT]) / years,
        "median nights": float(np.median(waits[JOINT])) if waits[JOINT] else None,
    }


def shown(rate, years):
    """Return a rate in percent, with twice the standard error of the simulation."""
    return f"{100 * rate:.1f} ± {200 * (rate * (1.0 - rate) / years) ** 0.5:.1f} %"


def print_without(population, arguments):
    """Print the table of years without an improvement, and return its rows."""
    print(
        f"| values | challengers | held out | looks | alike | {' | '.join(RULES)} | last level | level that would do |"
    )
    print("| --- | --- |" + " ---: |" * 8)
    rows = []
    for kind in KINDS:
        for is_new in (False, True):
            for queries in arguments.queries:
                row = without_improvement(
                    population,
                    kind,
                    is_new=is_new,
                    queries=queries,
                    years=arguments.years,
                    seed=arguments.seed,
                )
                rates = " | ".join(shown(row[rule], arguments.years) for rule in RULES)
                print(
                    f"| {kind} | {row['challengers']} | {queries} | {row['looks']:.0f} "
                    f"| {row['alike']:.2f} | {rates} | {row['last level']:.4f} "
                    f"| {row['level that would do']:.4f} |",
                    flush=True,
                )
                rows.append(row)
    return rows


def print_with(population, arguments):
    """Print the table of years with an improvement, and return its rows."""
    print(
        f"| values | challengers | better by | from night | one look at 5 % | {' | '.join(RULES)} | within 30 nights | nights |"
    )
    print("| --- | --- |" + " ---: |" * 8)
    rows = []
    for kind in ("equalised", "shuffled"):
        for is_new in (False, True):
            for effect in EFFECTS:
                for first_night in FIRST_NIGHTS:
                    row = with_improvement(
                        population,
                        kind,
                        effect=effect,
                        first_night=first_night,
                        is_new=is_new,
                        queries=arguments.power_queries,
                        years=arguments.power_years,
                        seed=arguments.seed,
                    )
                    columns = ("one look at 5 %", *RULES, "within 30 nights")
                    rates = " | ".join(f"{100 * row[name]:.0f} %" for name in columns)
                    nights = row["median nights"]
                    print(
                        f"| {kind} | {row['challengers']} | {effect} | {first_night} | {rates} "
                        f"| {'–' if nights is None else f'{nights:.0f}'} |",
                        flush=True,
                    )
                    rows.append(row)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", nargs="?", default=ATLAS)
    parser.add_argument("--years", type=int, default=1_000)
    parser.add_argument("--power-years", type=int, default=200)
    parser.add_argument("--configurations", type=int, default=100)
    parser.add_argument("--queries", type=int, nargs="*", default=(100, 200), help="held out")
    parser.add_argument("--power-queries", type=int, default=200, help="held out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    population = measure_population(
        arguments.dataset, configurations=arguments.configurations, seed=arguments.seed
    )
    print(f"\n## {population.name}, {NIGHTS} nights, seed {arguments.seed}\n\nNo improvement:\n")
    rows = print_without(population, arguments)
    if arguments.power_years:
        print("\nAn improvement from one night on:\n")
        rows += print_with(population, arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
