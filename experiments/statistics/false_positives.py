"""How often does a study deploy a configuration that is no better? All are equally good here.

    python experiments/statistics/false_positives.py [--repetitions 3000] [--json FILE] [DATASET …]

Each repetition draws n queries and what 100 configurations get for them, all with the same true mean
(`populations.py`), and does what `tuner run` does: the first half chooses the winner
(`choose_winner`), the second half decides (`decide`). Under 60 queries nothing is held out and the
bias-corrected gain decides (`decide_without_holdout`). Beside it what is usually done: the best of
all on all n queries, compared with the baseline on those same queries.

The search itself is a fixed list of random configurations: whatever a search looks at, it sees tune
queries only. Queries are independent draws, so that the first half is as good a split as any.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

import numpy as np
from populations import ATLAS, BASELINE, as_trials, equalised, measure_population, shuffled
from scipy import stats

from tuner.study.few_queries import decide_without_holdout
from tuner.study.verdict import ALPHA, Measured, decide
from tuner.study.winner import choose_winner

QUERIES = (60, 100, 200, 500)
FEW_QUERIES = (30, 50)
ROUNDING = 1e-12
DRAWS = {"equalised": equalised, "shuffled": shuffled}


def held_out(values, tokens):
    """Return the verdict's outcome, and whether it was clear that the winner is worse."""
    half = values.shape[1] // 2
    tune, holdout = values[:, :half], values[:, half:]
    trials = as_trials(tune, tokens)
    winner = choose_winner(trials, dict(enumerate(tune)))
    verdict = decide(
        Measured({"row": winner.number}, holdout[winner.number]),
        Measured({"row": BASELINE}, holdout[BASELINE]),
        permutations=0,
        resamples=0,
    )
    found = verdict.comparison
    is_clear = found.p_value is not None and found.p_value < ALPHA
    return verdict.outcome, is_clear and found.mean_difference < 0


def naive(values):
    """Return whether the best on all queries is higher there, and significantly (Student's t)."""
    best = int(values.mean(axis=1).argmax())
    difference = values[best] - values[BASELINE]
    is_higher = bool(difference.mean() > 0)
    if np.ptp(difference) < ROUNDING:
        return is_higher, is_higher
    return is_higher, is_higher and bool(stats.ttest_1samp(difference, 0.0).pvalue < ALPHA)


def rates(draw, tokens, *, queries, repetitions, seed):
    """Return one row of the table: shares of the repetitions."""
    random = np.random.default_rng([seed, queries])
    counts = Counter()
    for _ in range(repetitions):
        values = draw(random, queries)
        outcome, is_worse = held_out(values, tokens)
        is_higher, is_significant = naive(values)
        counts.update(
            {
                outcome: 1,
                "significantly worse": is_worse,
                "naive higher": is_higher,
                "naive significant": is_significant,
            }
        )
    return {name: count / repetitions for name, count in counts.items()}


def few_rates(draw, tokens, *, queries, repetitions, seed):
    """Return the shares of the verdicts by the corrected gain, where no queries are held out."""
    random = np.random.default_rng([seed, queries])
    counts = Counter()
    for repetition in range(repetitions):
        values = draw(random, queries)
        is_higher, is_significant = naive(values)
        winner = choose_winner(as_trials(values, tokens), dict(enumerate(values)))
        verdict = decide_without_holdout(
            values - values[BASELINE],
            {},
            is_baseline=winner.number == BASELINE,
            seed=repetition,
        )
        counts.update(
            {
                verdict.outcome: 1,
                "naive higher": is_higher,
                "naive significant": is_significant,
            }
        )
    return {name: count / repetitions for name, count in counts.items()}


def error(rate, repetitions):
    """Return twice the standard error of a simulated rate."""
    return 2.0 * (rate * (1.0 - rate) / repetitions) ** 0.5


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", default=[ATLAS])
    parser.add_argument("--repetitions", type=int, default=3_000)
    parser.add_argument("--few-repetitions", type=int, default=2_000, help="without a holdout")
    parser.add_argument("--configurations", type=int, default=100)
    parser.add_argument("--queries", type=int, nargs="+", default=QUERIES)
    parser.add_argument("--few-queries", type=int, nargs="*", default=FEW_QUERIES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    for path in arguments.datasets:
        population = measure_population(
            path, configurations=arguments.configurations, seed=arguments.seed
        )
        print(f"\n## {population.name}: {arguments.configurations} equal configurations\n")
        print("| values | queries | deploy | significantly worse | naive: significant | higher |")
        print("| --- | ---: | ---: | ---: | ---: | ---: |")
        for kind, make in DRAWS.items():
            draw = make(population)
            for queries in sorted({*arguments.few_queries, *arguments.queries}):
                is_few = queries in arguments.few_queries
                repetitions = arguments.few_repetitions if is_few else arguments.repetitions
                if is_few:
                    found = few_rates(
                        draw,
                        population.tokens,
                        queries=queries,
                        repetitions=repetitions,
                        seed=arguments.seed,
                    )
                else:
                    found = rates(
                        draw,
                        population.tokens,
                        queries=queries,
                        repetitions=repetitions,
                        seed=arguments.seed,
                    )
                deploy, worse = found.get("deploy", 0.0), found.get("significantly worse", 0.0)
                print(
                    f"| {kind} | {queries}{', none held out' if is_few else ''} "
                    f"| {100 * deploy:.1f} ± {100 * error(deploy, repetitions):.1f} % "
                    f"| {'' if is_few else f'{100 * worse:.1f} %'} "
                    f"| {100 * found['naive significant']:.1f} % "
                    f"| {100 * found['naive higher']:.1f} % |",
                    flush=True,
                )
                rows.append(
                    {
                        "dataset": population.name,
                        "values": kind,
                        "queries": queries,
                        "is_held_out": not is_few,
                        "repetitions": repetitions,
                        **found,
                    }
                )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
