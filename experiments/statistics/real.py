"""What would the verdict say, tuned against default, had the queries been split otherwise?

    python experiments/statistics/real.py [builtin:atlas path/to/set …] [--seeds 20] [--json FILE]

For each seed the queries are split in two halves (stratified), grid and TPE tune the built-in engine
on one half, `choose_winner` takes the cheapest of those as good as the best, and `decide` compares
it with the default on the other half. Space, objective and search are those of
`search_quality.py`. The splits of one data set share their queries: their shares say how much a
verdict hangs on the split, they are not independent studies.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from populations import ATLAS, BASELINE_ARM, DEFAULT, METRICS, OBJECTIVE, SPACE
from search_quality import search

from tuner.core.rankings import FloatArray
from tuner.core.trial import Outcome, Trial, TrialState
from tuner.datasets import open_dataset, split_queries
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.objective import composite_values
from tuner.evaluation.system_metrics import CONTEXT_TOKENS
from tuner.metrics.base import mean_defined
from tuner.retrieval.hybrid import Hybrid
from tuner.run.systems import cache_dir
from tuner.verdict.measured import Measured
from tuner.verdict.verdict import decide
from tuner.verdict.winner import choose_winner

KINDS = ("grid", "tpe")
OUTCOMES = ("deploy", "keep the baseline", "not enough queries")


@dataclass(frozen=True, eq=False)
class Answers:
    """Values of every query, asked once for each set of parameters; a split only picks columns."""

    evaluate: Evaluator
    known: dict[str, dict[str, FloatArray]]

    def of(self, params):
        """Return every query's values by metric."""
        key = SPACE.key(params)
        if key not in self.known:
            self.known[key] = dict(self.evaluate(params).per_query)
        return self.known[key]


def utility(per_query):
    """Return the objective of each query: the composite less the price of its tokens."""
    price = OBJECTIVE.price["context_tokens_per_1000"] / 1_000
    return composite_values(per_query, OBJECTIVE.weights) - price * per_query[CONTEXT_TOKENS]


def found_by(answers, seen, seed):
    """Return the trials of grid and TPE on some queries, the baseline first, and their winner."""

    def evaluate(params):
        per_query = answers.of(params)
        return Outcome({name: mean_defined(per_query[name][seen])[0] for name in METRICS})

    found = [trial for kind in KINDS for trial in search(kind, evaluate, seed)]
    metrics = dict(evaluate(DEFAULT).metrics)
    baseline = Trial(
        number=0,
        arm=BASELINE_ARM,
        params=DEFAULT,
        state=TrialState.FINISHED,
        objective=OBJECTIVE.score(metrics).objective,
        metrics=metrics,
    )
    trials = [baseline, *(replace(one, number=n) for n, one in enumerate(found, start=1))]
    utilities = {trial.number: utility(answers.of(trial.params))[seen] for trial in trials}
    return trials, choose_winner(trials, utilities)


def one_split(dataset, answers, seed):
    """Return the verdict under one split, the tune gain of its winner, and the queries held out."""
    tune_ids, holdout_ids = split_queries(
        dataset.queries, holdout=0.5, stratify_by=["query_type", "difficulty"], seed=seed
    )
    place = {query.id: column for column, query in enumerate(dataset.queries)}
    tune, holdout = (np.array([place[id_] for id_ in ids]) for ids in (tune_ids, holdout_ids))
    _, winner = found_by(answers, tune, seed)
    sides = {"winner": winner.params, "baseline": DEFAULT}
    composite = {
        name: composite_values(answers.of(params), OBJECTIVE.weights)
        for name, params in sides.items()
    }
    pair = [
        Measured(
            params,
            composite[name][holdout],
            objective=utility(answers.of(params))[holdout],
            costs={CONTEXT_TOKENS: float(answers.of(params)[CONTEXT_TOKENS][holdout].mean())},
        )
        for name, params in sides.items()
    ]
    verdict = decide(*pair, draws=0)
    tune_gain = float(np.nanmean((composite["winner"] - composite["baseline"])[tune]))
    tokens = [
        float(answers.of(params)[CONTEXT_TOKENS].mean()) for params in (winner.params, DEFAULT)
    ]
    return verdict, tune_gain, tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", default=[ATLAS])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    print(
        "| data set | held out | deploy | keep the baseline | not enough queries | gain on the tune "
        "half | on the holdout | half the interval | tokens, default | winner | more queries |"
    )
    print("| --- |" + " ---: |" * 10)
    for path in arguments.datasets:
        dataset = open_dataset(path)
        retriever = Hybrid.build(dataset.corpus, cache_dir=cache_dir())
        retriever.prepare(dataset.queries)
        answers = Answers(
            Evaluator.build(retriever, list(dataset.queries), dataset.qrels, METRICS), {}
        )
        splits = [one_split(dataset, answers, seed) for seed in range(arguments.seeds)]
        verdicts = [verdict for verdict, _, _ in splits]
        counts = Counter(verdict.outcome for verdict in verdicts)
        gains = [verdict.comparison.mean_difference for verdict in verdicts]
        halves = [
            (verdict.comparison.interval[1] - verdict.comparison.interval[0]) / 2
            for verdict in verdicts
        ]
        more = [verdict.more_queries for verdict in verdicts if verdict.more_queries is not None]
        tokens = np.mean([both for _, _, both in splits], axis=0)
        tune_gains = [gain for _, gain, _ in splits]
        print(
            f"| {dataset.name} | {verdicts[0].comparison.n} | "
            + " | ".join(f"{counts[outcome]}" for outcome in OUTCOMES)
            + f" | {np.mean(tune_gains):+.3f} | {np.mean(gains):+.3f} | {np.mean(halves):.3f} "
            f"| {tokens[1]:.0f} | {tokens[0]:.0f} | {f'{np.median(more):.0f}' if more else '–'} |",
            flush=True,
        )
        rows.append(
            {
                "dataset": dataset.name,
                "verdicts": [verdict.to_record() for verdict in verdicts],
                "tune_gains": tune_gains,
                "tokens": [both for _, _, both in splits],
            }
        )
    for row in rows:
        first = row["verdicts"][0]
        print(f"\n{row['dataset']}, first split: {first['sentence']}\n    {first['winner']}")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
