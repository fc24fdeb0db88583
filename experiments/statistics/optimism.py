"""How much better does the best of many configurations look than it is? The truth is known here.

    python experiments/statistics/optimism.py [--repetitions 2000] [--json FILE] [--png FILE] [DATASET …]

Each repetition draws n queries and what 100 configurations get for them (`populations.py`), and asks
for the gain over the baseline that the chosen configuration has on new queries. Three answers:

- naive: choose the best on all n queries, and report its gain on those same queries;
- holdout (what `tuner run` does): choose on one half, report the gain on the other;
- corrected (BBC-CV, what `tuner run` does for few queries): choose on all n by the winner's rule, which
  prefers the cheaper of those that cannot be told from the best; report the bootstrap's out-of-bag gain
  of that rule. *Covered*: its 95 % interval holds the true gain of what was chosen.

Bias is the mean of reported less true gain of the configuration that was chosen; the error is the
root mean square of the same. On ``real`` values configurations differ as they do; on ``equalised``
and ``shuffled`` ones every true gain is 0. Also shown: what is lost by choosing on half the queries.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from populations import (
    ATLAS,
    BASELINE,
    as_trials,
    equalised,
    measure_population,
    real,
    shuffled,
)

from tuner.stats import bootstrap_corrected
from tuner.verdict.winner import choose_winner, winner_rule

QUERIES = (30, 50, 100, 200, 500)
DRAWS = {"real": real, "equalised": equalised, "shuffled": shuffled}


def gains_of(values):
    """Return each configuration's gain over the baseline, shape (configurations,)."""
    means = values.mean(axis=1)
    return means - means[BASELINE]


def simulate(draw, true_gain, tokens, *, queries, repetitions, corrected_repetitions, seed):
    """Return reported and true gains by answer, each a list with one value a repetition.

    And how often the interval of the corrected gain holds the true one.
    """
    covered = []
    random = np.random.default_rng([seed, queries])
    reported = {"naive": [], "holdout": [], "corrected": []}
    truth = {"naive": [], "holdout": [], "corrected": []}
    half = queries // 2
    for repetition in range(repetitions):
        values = draw(random, queries)
        gains = gains_of(values)
        best = int(gains.argmax())
        reported["naive"].append(gains[best])
        truth["naive"].append(true_gain[best])
        chosen = int(gains_of(values[:, :half]).argmax())
        reported["holdout"].append(gains_of(values[:, half:])[chosen])
        truth["holdout"].append(true_gain[chosen])
        if repetition < corrected_repetitions:
            trials = as_trials(values, tokens)
            found = bootstrap_corrected(
                values - values[BASELINE],
                seed=repetition,
                choose=winner_rule(trials),
                winner=choose_winner(trials, dict(enumerate(values))).number,
                resamples=500,
            )
            reported["corrected"].append(found.estimate)
            truth["corrected"].append(true_gain[found.winner])
            low, high = found.interval
            covered.append(low <= true_gain[found.winner] <= high)
    return reported, truth, float(np.mean(covered))


def draw_figure(rows, path):
    """Draw bias against the number of queries, one panel for each kind of values."""
    import matplotlib  # comes with MLflow; only needed here

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(DRAWS), sharey=True, figsize=(9, 3), squeeze=False)
    for panel, kind in zip(panels[0], DRAWS, strict=True):
        shown = [row for row in rows if row["values"] == kind]
        for name, style in (("naive", "o-"), ("holdout", "s--"), ("corrected", "^:")):
            queries = [row["queries"] for row in shown]
            panel.plot(queries, [row["bias"][name] for row in shown], style, label=name)
        panel.axhline(0.0, color="grey", linewidth=0.8)
        panel.set(title=kind, xlabel="queries", xscale="log")
        panel.set_xticks(queries, labels=[str(number) for number in queries])
        panel.set_xticks([], minor=True)
    panels[0][0].set_ylabel("reported - true gain")
    panels[0][-1].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=100)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", default=[ATLAS])
    parser.add_argument("--repetitions", type=int, default=2_000)
    parser.add_argument("--corrected-repetitions", type=int, default=500)
    parser.add_argument("--configurations", type=int, default=100)
    parser.add_argument("--queries", type=int, nargs="+", default=QUERIES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--png", type=Path, help="of the first data set's biases")
    arguments = parser.parse_args()
    rows = []
    for path in arguments.datasets:
        population = measure_population(
            path, configurations=arguments.configurations, seed=arguments.seed
        )
        real_gain = gains_of(population.values)
        print(f"\n## {population.name}: the best of all gains {real_gain.max():+.3f}\n")
        print(
            "| values | queries | true gain, chosen on all | on half | naive bias | holdout "
            "| corrected | naive error | holdout | corrected | covered |"
        )
        print("| --- |" + " ---: |" * 10)
        for kind, make in DRAWS.items():
            true_gain = real_gain if kind == "real" else np.zeros_like(real_gain)
            for queries in arguments.queries:
                reported, truth, covered = simulate(
                    make(population),
                    true_gain,
                    population.tokens,
                    queries=queries,
                    repetitions=arguments.repetitions,
                    corrected_repetitions=min(
                        arguments.corrected_repetitions, arguments.repetitions
                    ),
                    seed=arguments.seed,
                )
                off = {name: np.subtract(reported[name], truth[name]) for name in reported}
                row = {
                    "dataset": population.name,
                    "values": kind,
                    "queries": queries,
                    "covered": covered,
                    "true gain": {name: float(np.mean(truth[name])) for name in truth},
                    "bias": {name: float(error.mean()) for name, error in off.items()},
                    "error": {name: float(np.sqrt(np.mean(e**2))) for name, e in off.items()},
                    "standard error of bias": {
                        name: float(error.std() / np.sqrt(error.size))
                        for name, error in off.items()
                    },
                }
                rows.append(row)
                cells = [f"{row['true gain'][name]:+.3f}" for name in ("naive", "holdout")]
                cells += [f"{row['bias'][name]:+.4f}" for name in off]
                cells += [f"{row['error'][name]:.3f}" for name in off]
                cells.append(f"{100 * covered:.0f} %")
                print(f"| {kind} | {queries} | {' | '.join(cells)} |", flush=True)
    if arguments.png:
        first = rows[0]["dataset"]
        draw_figure([row for row in rows if row["dataset"] == first], arguments.png)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
