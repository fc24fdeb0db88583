"""What racing saves and what it costs: work against regret, beside other rules for stopping early.

    python experiments/racing/racing.py builtin:atlas path/to/set … [--seeds 20]

For every data set and seed a study of a grid of 60 and 40 TPE trials with a baseline is run once for
each rule, on half of the queries, with the same seeds. *Saved* is the share of query evaluations that were not made. *Loss*
is the objective of the best trial without racing less that of the best trial under the rule, both
over all of the tune queries: what was not found. The others look after the rungs of the first.

- paired: ours, z < -1.5 of the paired differences to the best trial so far, rungs of 10, 20, 30, 50
  and 70 % of the queries
- paired, two rungs: z < -1 after 20 and 50 %
- unpaired: stops where the mean over the queries asked is below the best trial's mean over all
- wilcoxon: Optuna's WilcoxonPruner (p < 0.1) after the same rungs
- wilcoxon every 5: the same after every 5 queries, from 10 on
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from dataclasses import dataclass

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import optuna

from tuner.backends.grid import Grid
from tuner.backends.tpe import Tpe
from tuner.core.space import SearchSpace
from tuner.core.study_record import ArmRecord, StudyHeader
from tuner.core.trial import Race
from tuner.datasets import open_dataset, split_queries
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.objective import Objective
from tuner.evaluation.racing import Racing
from tuner.execution.inline import Inline
from tuner.retrieval.hybrid import Hybrid
from tuner.study.arms import Arm
from tuner.study.loop import run_study
from tuner.study.study import Study
from tuner.systems import cache_dir

SPACE = SearchSpace.from_mapping(
    {
        "graph_weight": {"type": "real", "low": 0.0, "high": 1.0},
        "max_hops": {"type": "integer", "low": 1, "high": 5},
        "top_k": {"type": "integer", "low": 5, "high": 30},
        "temperature": {"type": "real", "low": 0.01, "high": 1.0, "scale": "log"},
    }
)
OBJECTIVE = Objective(
    {"recall@10": 0.5, "mrr@10": 0.3, "ndcg@10": 0.2}, {"context_tokens_per_1000": 0.005}
)
BASELINE = {"graph_weight": 0.5, "max_hops": 2, "top_k": 10, "temperature": 0.1}
TWO_RUNGS = {"shares": (0.2, 0.5), "stop_below": -1.0}


@dataclass(frozen=True, eq=False)
class Unpaired(Racing):
    def _behind(self, values, rival, asked):
        mine = self.objective.by_query({name: array[asked] for name, array in values.items()})
        mean = float(np.nanmean(mine))
        return None if mean >= np.nanmean(rival) else Race(len(asked), mean, mean, mean)


@dataclass(frozen=True, eq=False)
class Wilcoxon(Racing):
    def _behind(self, values, rival, asked):
        if len(asked) < 10:
            return None
        mine = self.objective.by_query({name: array[asked] for name, array in values.items()})
        theirs = rival[asked]
        study = optuna.create_study(direction="maximize")
        study.add_trial(_trial("COMPLETE", theirs, float(np.nanmean(rival))))
        pruner = optuna.pruners.WilcoxonPruner(p_threshold=0.1, n_startup_steps=2)
        if not pruner.prune(study, _trial("RUNNING", mine, None)):
            return None
        estimate = float(np.nanmean(rival) + np.nanmean(mine - theirs))
        return Race(len(asked), estimate, estimate, estimate)


def _trial(state, values, value):
    defined = {step: float(v) for step, v in enumerate(values) if not np.isnan(v)}
    return optuna.trial.create_trial(
        state=optuna.trial.TrialState[state], value=value, intermediate_values=defined
    )


def options_of(rule, queries):
    if rule == "wilcoxon every 5":
        return {"shares": tuple(n / queries for n in range(10, queries, 5))}
    return TWO_RUNGS if rule == "paired, two rungs" else {}


RULES = {
    "paired": Racing,
    "paired, two rungs": Racing,
    "unpaired": Unpaired,
    "wilcoxon": Wilcoxon,
    "wilcoxon every 5": Wilcoxon,
}


def one_study(rule, make, queries, seed):
    """Return the best objective, the share of query evaluations made, and the trials stopped."""
    header = StudyHeader(
        "racing", "racing", 0.0, seed, (ArmRecord("grid", "grid", 60), ArmRecord("tpe", "tpe", 40)),
        SPACE.to_mapping(), OBJECTIVE.to_mapping(), BASELINE,
    )  # fmt: skip
    if rule is None:
        evaluate = make(queries)
    else:
        evaluate = RULES[rule].build(
            make,
            queries,
            OBJECTIVE,
            stratify_by=["query_type", "difficulty"],
            seed=seed,
            **options_of(rule, len(queries)),
        )
    study = Study.create(
        header,
        arms=[Arm("grid", Grid(60), 60), Arm("tpe", Tpe(40), 40)],
        space=SPACE,
        objective=OBJECTIVE,
        by_query=None if rule is None else OBJECTIVE.by_query,
    )
    assert run_study(study, Inline(), evaluate) == "finished"
    own = [trial for trial in study.trials if trial.shared_from is None]
    asked = [trial.race.queries if trial.race else len(queries) for trial in own]
    return (
        study.best.objective,
        sum(asked) / (len(queries) * len(own)),
        sum(trial.race is not None for trial in own),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--json")
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    found = []
    print("| | rule | saved | mean loss | largest loss | losses above .001 | trials stopped |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for path in options.datasets:
        dataset = open_dataset(path)
        retriever = Hybrid.build(dataset.corpus, cache_dir=cache_dir())
        retriever.prepare(dataset.queries)
        by_id = {query.id: query for query in dataset.queries}
        rows = {rule: [] for rule in RULES}
        for seed in range(options.seeds):
            tune, _ = split_queries(
                dataset.queries, holdout=0.5, stratify_by=["query_type", "difficulty"], seed=seed
            )
            queries = [by_id[id_] for id_ in tune]

            def make(part, retriever=retriever, dataset=dataset):
                return Evaluator.build(retriever, part, dataset.qrels, NAMES)

            best, _, _ = one_study(None, make, queries, seed)
            for rule in RULES:
                reached, made, stopped = one_study(rule, make, queries, seed)
                rows[rule].append((1 - made, best - reached, stopped))
        for rule, values in rows.items():
            saved, loss, stopped = np.array(values).T
            print(
                f"| {dataset.name} ({len(queries)} queries) | {rule} | {saved.mean():.1%} "
                f"| {loss.mean():+.4f} | {loss.max():.4f} | {(loss > 0.001).sum()} of {len(loss)} "
                f"| {stopped.mean():.1f} of 101 |",
                flush=True,
            )
            found.append({"dataset": dataset.name, "rule": rule, "rows": np.array(values).tolist()})
    if options.json:
        with open(options.json, "w", encoding="utf-8") as stream:
            json.dump(found, stream, indent=1)


NAMES = list(OBJECTIVE.metric_names)

if __name__ == "__main__":
    main()
