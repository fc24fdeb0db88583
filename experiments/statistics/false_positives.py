"""How often does a study deploy a configuration that is no better? All are equally good here.

    python experiments/statistics/false_positives.py [--repetitions 3000] [--json FILE] [DATASET …]

Each repetition draws n queries and what 100 configurations get for them, all with the same true mean
(`populations.py`), and does what `tuner run` does: the first half chooses the winner
(`choose_winner`), the second half decides (`decide`). Under 60 queries nothing is held out and the
bias-corrected gain decides (`decide_without_holdout`). Beside it what is usually done: the best of
all on all n queries, compared with the baseline on those same queries.

With a price there are two ways to a deployment, so both are open here: `equal` configurations have
the same true composite and tokens; `worse` ones halve the tokens, which any price rewards, and lose
exactly `MIN_EFFECT` in the composite, the least that must not be deployed; `rarely worse` ones do so
by a loss of .5 on every fiftieth query and are the baseline on all others.

The search itself is a fixed list of random configurations: whatever a search looks at, it sees tune
queries only. Queries are independent draws, so that the first half is as good a split as any.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

import numpy as np
from populations import (
    ATLAS,
    BASELINE,
    alike,
    as_trials,
    equal_tokens,
    equalised,
    measure_population,
    shuffled,
)
from scipy import stats

from tuner.evaluation.system_metrics import CONTEXT_TOKENS
from tuner.verdict.few_queries import decide_without_holdout
from tuner.verdict.measured import Measured
from tuner.verdict.verdict import ALPHA, MIN_EFFECT, decide
from tuner.verdict.winner import choose_winner

QUERIES = (60, 100, 200, 500)
FEW_QUERIES = (10, 20, 30, 50)
PRICED_QUERIES = (60, 200)
PRICE_PER_1000 = 0.1
RARE_LOSS = 0.5
ROUNDING = 1e-12
DRAWS = {"equalised": equalised, "shuffled": shuffled, "alike": alike}


def held_out(values, tokens):
    """Return the verdict's outcome, and whether it was clear that the winner is worse."""
    half = values.shape[1] // 2
    tune, holdout = values[:, :half], values[:, half:]
    trials = as_trials(tune, tokens)
    winner = choose_winner(trials, dict(enumerate(tune)))
    verdict = decide(
        Measured({"row": winner.number}, holdout[winner.number]),
        Measured({"row": BASELINE}, holdout[BASELINE]),
        draws=0,
    )
    found = verdict.comparison
    is_clear = found.p_value is not None and found.p_value < ALPHA
    return verdict.outcome, is_clear and found.mean_difference < 0


def held_out_with_price(values, tokens):
    """Return the verdict's outcome where each thousand tokens costs ``PRICE_PER_1000``."""
    half = values.shape[1] // 2
    objective = values - PRICE_PER_1000 * tokens / 1000.0
    tune = objective[:, :half]
    trials = as_trials(tune, tokens[:, :half].mean(axis=1))
    winner = choose_winner(trials, dict(enumerate(tune))).number

    def measured(row):
        return Measured(
            {"row": row},
            values[row, half:],
            objective=objective[row, half:],
            costs={CONTEXT_TOKENS: float(tokens[row, half:].mean())},
        )

    return decide(measured(winner), measured(BASELINE), draws=0).outcome


def priced_rates(draw, draw_tokens, *, configurations, queries, repetitions, seed):
    """Return the shares of the outcomes with a price; see the top for ``configurations``."""
    random = np.random.default_rng([seed, queries])
    counts = Counter()
    for _ in range(repetitions):
        values, tokens = draw(random, queries), draw_tokens(random, queries)
        if configurations != "equal":
            is_other = (np.arange(len(values)) != BASELINE)[:, None]
            if configurations == "worse":
                values = values - MIN_EFFECT * is_other
            else:
                is_lost = random.random(values.shape) < MIN_EFFECT / RARE_LOSS
                values = values[BASELINE] - RARE_LOSS * (is_lost & is_other)
            tokens = np.where(is_other, tokens / 2.0, tokens)
        counts[held_out_with_price(values, tokens)] += 1
    return {name: count / repetitions for name, count in counts.items()}


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
        trials = as_trials(values, tokens)
        winner = choose_winner(trials, dict(enumerate(values))).number
        verdict = decide_without_holdout(
            Measured({"row": winner}, values[winner]),
            Measured({"row": BASELINE}, values[BASELINE]),
            values - values[BASELINE],
            trials,
            seed=repetition,
            draws=0,
        )
        # Every configuration's true gain is 0.
        found = verdict.corrected
        counts.update(
            {
                verdict.outcome: 1,
                "estimated": found is not None,
                "covered": found is not None and found.interval[0] <= 0.0 <= found.interval[1],
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
    parser.add_argument("--queries", type=int, nargs="*", default=QUERIES)
    parser.add_argument("--few-queries", type=int, nargs="*", default=FEW_QUERIES)
    parser.add_argument("--priced-queries", type=int, nargs="*", default=PRICED_QUERIES)
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
        rows += with_price(population, arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


def with_price(population, arguments):
    """Print the table of studies with a price, and return its rows."""
    if not arguments.priced_queries:
        return []
    print(f"\nWith a price of {PRICE_PER_1000} for a thousand context tokens:\n")
    print("| values | configurations | queries | deploy | keep | not enough |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    rows = []
    for kind, make in DRAWS.items():
        rarely = ("rarely worse",) if kind == "equalised" else ()  # the same for every kind
        for label in ("equal", "worse", *rarely):
            for queries in arguments.priced_queries:
                found = priced_rates(
                    make(population),
                    equal_tokens(population),
                    configurations=label,
                    queries=queries,
                    repetitions=arguments.repetitions,
                    seed=arguments.seed,
                )
                deploy = found.get("deploy", 0.0)
                print(
                    f"| {kind} | {label} | {queries} | {100 * deploy:.1f} "
                    f"± {100 * error(deploy, arguments.repetitions):.1f} % "
                    f"| {100 * found.get('keep the baseline', 0.0):.1f} % "
                    f"| {100 * found.get('not enough queries', 0.0):.1f} % |",
                    flush=True,
                )
                rows.append(
                    {
                        "dataset": population.name,
                        "values": kind,
                        "configurations": label,
                        "price": PRICE_PER_1000,
                        "queries": queries,
                        "repetitions": arguments.repetitions,
                        **found,
                    }
                )
    return rows


if __name__ == "__main__":
    main()
