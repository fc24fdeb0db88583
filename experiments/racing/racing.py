"""What racing saves and what it costs: work against regret, beside other rules for stopping early.

    python experiments/racing/racing.py builtin:atlas path/to/set … [--seeds 20] [--prices 0 0.02]
        [--space whole|depth] [--rules paired wilcoxon …]

For every data set, price and seed a study of a grid of 60 and 40 TPE trials with a baseline is run
once for each rule, on half of the queries, with the same seeds. The price is that of 1,000 tokens.

- *saved*: the share of query evaluations that were not made
- *loss*: the objective of the best trial without racing less that of the best trial under the rule,
  both over all of the tune queries: what was not found
- *missed*: the objective of the best trial that the rule stopped, evaluated whole, less that of the
  best trial it let through, where that is above 0: what was held in hand and let go
- *covered*: the share of stopped trials whose objective over all queries lies in their interval

The rules, after rungs of 10, 20, 30, 50 and 70 % of the queries where nothing else is said:

- paired: ours, z < -1 of the paired differences to the best trial so far, their standard error
  counting one more query that differs
- paired, two rungs: the same after 20 and 50 %
- plain error: z < -1.5 by the plain standard error
- plain error, 5 differ: the same where at least 5 of the queries asked differ before prices
- unpaired: stops where the mean over the queries asked is below the best trial's mean over all
- wilcoxon: Optuna's WilcoxonPruner (p < 0.1)
- wilcoxon every 5: the same after every 5 queries, from 10 on
"""

from __future__ import annotations

import argparse
import json
import math
import os
import warnings
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import optuna
from scipy.stats import t as student

from tuner.backends.grid import Grid
from tuner.backends.tpe import Tpe
from tuner.core.space import SearchSpace
from tuner.core.study_record import ArmRecord, StudyHeader
from tuner.core.trial import Race
from tuner.datasets import open_dataset, split_queries
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.objective import Objective
from tuner.evaluation.racing import Racing, standing
from tuner.execution.local.inline import Inline
from tuner.retrieval.hybrid import Hybrid
from tuner.run.systems import cache_dir
from tuner.study.arms import Arm
from tuner.study.loop import run_study
from tuner.study.spec import StudySpec
from tuner.study.study import Study

SPACE = SearchSpace.from_mapping(
    {
        "graph_weight": {"type": "real", "low": 0.0, "high": 1.0},
        "max_hops": {"type": "integer", "low": 1, "high": 5},
        "top_k": {"type": "integer", "low": 5, "high": 30},
        "temperature": {"type": "real", "low": 0.01, "high": 1.0, "scale": "log"},
    }
)
WEIGHTS = {"recall@10": 0.5, "mrr@10": 0.3, "ndcg@10": 0.2}
# What changes few answers among the first ten, and the tokens of all: there a price can mislead.
DEPTH = SearchSpace.from_mapping(
    {
        "graph_weight": {"type": "real", "low": 0.4, "high": 0.6},
        "max_hops": {"type": "integer", "low": 2, "high": 3},
        "top_k": {"type": "integer", "low": 10, "high": 50},
    }
)
SPACES = {"whole": SPACE, "depth": DEPTH}
BASELINE = {"graph_weight": 0.5, "max_hops": 2, "top_k": 10, "temperature": 0.1}


@dataclass(frozen=True, eq=False)
class Plain(Racing):
    fewest_different: ClassVar[int] = 0

    def _behind(self, values, rival, asked):
        mine = standing(self.objective, {name: array[asked] for name, array in values.items()})
        difference, relevance = mine - rival[:, asked]
        relevance, difference = relevance[~np.isnan(difference)], difference[~np.isnan(difference)]
        mean, error = difference.mean(), difference.std(ddof=1) / math.sqrt(difference.size)
        few = np.count_nonzero(np.abs(relevance) > 1e-12) < self.fewest_different
        if few or mean >= -1.5 * error:
            return None
        estimate = float(np.nanmean(rival[0]) + mean)
        margin = float(student.ppf(0.975, difference.size - 1) * error)
        return Race(len(asked), estimate, estimate - margin, estimate + margin)


@dataclass(frozen=True, eq=False)
class FiveDiffer(Plain):
    fewest_different: ClassVar[int] = 5


@dataclass(frozen=True, eq=False)
class Unpaired(Racing):
    def _behind(self, values, rival, asked):
        mine = self.objective.by_query({name: array[asked] for name, array in values.items()})
        mean = float(np.nanmean(mine))
        return None if mean >= np.nanmean(rival[0]) else Race(len(asked), mean, mean, mean)


@dataclass(frozen=True, eq=False)
class Wilcoxon(Racing):
    def _behind(self, values, rival, asked):
        if len(asked) < 10:
            return None
        mine = self.objective.by_query({name: array[asked] for name, array in values.items()})
        theirs = rival[0, asked]
        study = optuna.create_study(direction="maximize")
        study.add_trial(_trial("COMPLETE", theirs, float(np.nanmean(rival[0]))))
        pruner = optuna.pruners.WilcoxonPruner(p_threshold=0.1, n_startup_steps=2)
        if not pruner.prune(study, _trial("RUNNING", mine, None)):
            return None
        estimate = float(np.nanmean(rival[0]) + np.nanmean(mine - theirs))
        return Race(len(asked), estimate, estimate, estimate)


def _trial(state, values, value):
    defined = {step: float(v) for step, v in enumerate(values) if not np.isnan(v)}
    return optuna.trial.create_trial(
        state=optuna.trial.TrialState[state], value=value, intermediate_values=defined
    )


def options_of(rule, queries):
    if rule == "wilcoxon every 5":
        return {"shares": tuple(n / queries for n in range(10, queries, 5))}
    return {"shares": (0.2, 0.5)} if rule == "paired, two rungs" else {}


RULES = {
    "paired": Racing,
    "paired, two rungs": Racing,
    "plain error": Plain,
    "plain error, 5 differ": FiveDiffer,
    "unpaired": Unpaired,
    "wilcoxon": Wilcoxon,
    "wilcoxon every 5": Wilcoxon,
}


def one_study(rule, make, queries, space, objective, seed):
    """Return the best objective, and of the race: saved, missed, stopped, covered."""
    header = StudyHeader(
        "racing", "racing", 0.0, seed, (ArmRecord("grid", "grid", 60), ArmRecord("tpe", "tpe", 40)),
        space.to_mapping(), objective.to_mapping(), BASELINE,
    )  # fmt: skip
    if rule is None:
        evaluate = make(queries)
    else:
        evaluate = RULES[rule].build(
            make,
            queries,
            objective,
            stratify_by=["query_type", "difficulty"],
            seed=seed,
            **options_of(rule, len(queries)),
        )
    spec = StudySpec(
        [Arm("grid", Grid(60), 60), Arm("tpe", Tpe(40), 40)],
        space,
        objective,
        by_query=None if rule is None else partial(standing, objective),
    )
    study = Study.create(header, spec)
    assert run_study(study, Inline(), evaluate) == "finished"
    own = [trial for trial in study.trials if trial.shared_from is None]
    asked = [trial.race.queries if trial.race else len(queries) for trial in own]
    stopped = [trial for trial in own if trial.race is not None]
    whole = [objective.score(evaluate.whole(trial.params).metrics).objective for trial in stopped]
    best = study.best.objective
    return best, (
        1.0 - sum(asked) / (len(queries) * len(own)),
        max([best, *whole]) - best,
        len(stopped),
        sum(t.race.low <= value <= t.race.high for t, value in zip(stopped, whole, strict=True)),
    )


COLUMNS = (
    "saved", "mean loss", "largest loss", "losses above .001", "mean missed", "largest missed",
    "covered", "trials stopped",
)  # fmt: skip


def race_rules(dataset, retriever, price, options):
    """Return by rule a row for each seed: loss, saved, missed, stopped, covered."""
    space = SPACES[options.space]
    objective = Objective(WEIGHTS, {"context_tokens_per_1000": price})
    by_id = {query.id: query for query in dataset.queries}
    rows = {rule: [] for rule in options.rules}

    def make(part):
        return Evaluator.build(retriever, part, dataset.qrels, objective.metric_names)

    for seed in range(options.seeds):
        tune, _ = split_queries(
            dataset.queries, holdout=0.5, stratify_by=["query_type", "difficulty"], seed=seed
        )
        queries = [by_id[id_] for id_ in tune]
        best, _ = one_study(None, make, queries, space, objective, seed)
        for rule in options.rules:
            reached, race = one_study(rule, make, queries, space, objective, seed)
            rows[rule].append((best - reached, *race))
    return rows


def print_row(label, rule, values):
    loss, saved, missed, stopped, covered = values
    has_interval = not rule.startswith(("unpaired", "wilcoxon"))
    share = f"{covered.sum() / stopped.sum():.1%}" if has_interval else "–"
    print(
        f"| {label} | {saved.mean():.1%} | {loss.mean():+.4f} | {loss.max():.4f} "
        f"| {(loss > 0.001).sum()} of {len(loss)} | {missed.mean():.4f} | {missed.max():.4f} "
        f"| {share} | {stopped.mean():.1f} of 101 |",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--prices", type=float, nargs="+", default=[0.0, 0.02])
    parser.add_argument("--space", choices=SPACES, default="whole")
    parser.add_argument("--rules", nargs="+", choices=RULES, default=list(RULES))
    parser.add_argument("--json")
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    found = []
    print(f"| | price | rule | {' | '.join(COLUMNS)} |")
    print(f"| --- | --- | --- |{' ---: |' * len(COLUMNS)}")
    for path in options.datasets:
        dataset = open_dataset(path)
        retriever = Hybrid.build(dataset.corpus, cache_dir=cache_dir())
        retriever.prepare(dataset.queries)
        for price in options.prices:
            rows = race_rules(dataset, retriever, price, options)
            for rule, values in rows.items():
                print_row(f"{dataset.name} | {price:g} | {rule}", rule, np.array(values).T)
                cell = {"dataset": dataset.name, "price": price, "rule": rule}
                found.append({**cell, "rows": np.array(values).tolist()})
    if options.json:
        with open(options.json, "w", encoding="utf-8") as stream:
            json.dump(found, stream, indent=1)


if __name__ == "__main__":
    main()
