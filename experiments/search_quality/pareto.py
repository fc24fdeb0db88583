"""Searching for a front: each backend's hypervolume beside Optuna's samplers.

    python experiments/search_quality/pareto.py run OUT.jsonl builtin:atlas path/to/set … [--seeds 20]
    python experiments/search_quality/pareto.py show OUT.jsonl [--seeds 20] [--against "optuna gp"]

`run` appends a line for each search, with the goals of each of its 60 trials; what `OUT.jsonl` has is
not searched again. Each set is searched for two goals (composite, context tokens) and for three
(composite, recall@5, context tokens), on one half of its queries. Optuna's Gaussian process needs
torch; without it, that search is left out.

The searches `gp, free`, `tpe, free` and `random, free` are asked for `max_hops` and `temperature` alone;
from each answer they have a front over `graph_weight` and `top_k`.

`show` prints how much of the hypervolume is missing after 20, 40 and 60 trials, in thousandths of
that of the front of all points that any search of the set found. The reference point is the worst
of 512 evenly spread points of the space in each goal; or a tenth worse than the baseline in each, so
that only what one would use counts. Differences are paired by set and seed, with a 95 % t interval.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections import defaultdict
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import optuna
from optuna.distributions import FloatDistribution, IntDistribution
from scipy import stats
from surfaces import BASELINE, FOUR, OBJECTIVE

from tuner.backends.front import hypervolume, is_efficient
from tuner.backends.points import quasi_random
from tuner.core import registry
from tuner.core.space import SearchSpace
from tuner.core.study_record import ArmRecord, StudyHeader
from tuner.core.trial import Trial, TrialState
from tuner.datasets import open_dataset, split_queries
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.free.asking import FreeEvaluator
from tuner.evaluation.objective import Objective
from tuner.execution.local.inline import Inline
from tuner.retrieval.hybrid import Hybrid
from tuner.run.systems import cache_dir
from tuner.study.arms import Arm
from tuner.study.loop import run_study
from tuner.study.pareto import points_of, swept
from tuner.study.spec import StudySpec
from tuner.study.study import Study

SPACE = SearchSpace.from_mapping(FOUR)
WEIGHTS = OBJECTIVE.weights
GOALS = {
    "2": ("composite", "context_tokens"),
    "3": ("composite", "recall@5", "context_tokens"),
}
FREE = ("top_k", "graph_weight")
TRIALS, SHOWN, SPREAD = 60, (5, 20, 40, 60), 512
METRICS = (*WEIGHTS, "recall@5", "context_tokens")


def ours(kind):
    """Return a search with a backend of the project."""

    def search(objective, evaluate, seed):
        backend = registry.load("backends", kind)(budget=TRIALS)
        history, seconds = [], 0.0
        for number in range(TRIALS):
            begin = time.process_time()
            told = swept(history, objective.goals, seed=seed)
            params = backend.suggest(SPACE, told, count=1, seed=seed)[0]
            seconds += time.process_time() - begin
            metrics = evaluate(params)
            value = objective.score(metrics).objective
            one = Trial(number, kind, params, TrialState.FINISHED, value, metrics=metrics)
            history.append(one)
        return [objective.goals(trial.metrics) for trial in history], seconds

    return search


def with_free(kind):
    """Return a search with a backend of the project that asks for what is not free."""

    def search(objective, evaluate, seed):
        free = evaluate.freely(objective)
        header = StudyHeader(
            study_id="front",
            name="front",
            created_at=0.0,
            seed=seed,
            arms=(ArmRecord(kind, kind, TRIALS),),
            space=SPACE.to_mapping(),
            objective=objective.to_mapping(),
            ahead=0,
        )
        arm = Arm(kind, registry.load("backends", kind)(budget=TRIALS), TRIALS)
        spec = StudySpec([arm], SPACE, objective, goals=objective.goals, free=FREE)
        study = Study.create(header, spec)
        begin, before = time.process_time(), free.seconds
        assert run_study(study, Inline(), free) == "finished"
        seconds = time.process_time() - begin - (free.seconds - before)
        found = [
            [objective.goals(point.metrics) for point in points_of([trial])]
            for trial in study.trials
        ]
        return found, seconds

    return search


def optunas(sampler):
    """Return a search with a sampler of Optuna."""
    kinds = {
        "graph_weight": FloatDistribution(0.0, 1.0),
        "max_hops": IntDistribution(1, 5),
        "top_k": IntDistribution(3, 30),
        "temperature": FloatDistribution(0.01, 1.0, log=True),
    }

    def search(objective, evaluate, seed):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Some samplers are experimental.
            study = optuna.create_study(
                sampler=sampler(seed=seed), directions=["maximize"] * len(objective.pareto)
            )
        found, seconds = [], 0.0
        for _ in range(TRIALS):
            begin = time.process_time()
            trial = study.ask(kinds)
            seconds += time.process_time() - begin
            found.append(objective.goals(evaluate(SPACE.canonical(trial.params))))
            study.tell(trial, found[-1])
        return found, seconds

    return search


SEARCHES = {
    "gp": ours("gp"),
    "tpe": ours("tpe"),
    "grid": ours("grid"),
    "random": ours("random"),
    "gp, free": with_free("gp"),
    "tpe, free": with_free("tpe"),
    "random, free": with_free("random"),
    "optuna tpe": optunas(optuna.samplers.TPESampler),
    "optuna nsga-ii": optunas(optuna.samplers.NSGAIISampler),
    "optuna gp": optunas(optuna.samplers.GPSampler),
}


class Measured:
    """Measures params on one half of a set's queries, each once."""

    def __init__(self, dataset):
        retriever = Hybrid.build(dataset.corpus, cache_dir=cache_dir()).telling_legs()
        ids, _ = split_queries(
            dataset.queries, holdout=0.5, stratify_by=["query_type", "difficulty"], seed=42
        )
        chosen = set(ids)
        queries = [query for query in dataset.queries if query.id in chosen]
        retriever.prepare(queries)
        self.evaluate = Evaluator.build(retriever, queries, dataset.qrels, METRICS)
        self.knobs = retriever.free_knobs({}, SPACE.names)
        self.known = {}
        self.free = {}

    def __call__(self, params):
        key = json.dumps(params)
        if key not in self.known:
            self.known[key] = self.evaluate(params).metrics
        return self.known[key]

    def freely(self, objective):
        """Return what evaluates with free parameters, for these goals."""
        if objective.pareto not in self.free:
            self.free[objective.pareto] = Freely(
                FreeEvaluator(self.evaluate, objective, SPACE, self.knobs)
            )
        return self.free[objective.pareto]


class Freely:
    """Evaluates what is asked, each once, and adds up the processor time."""

    def __init__(self, evaluate):
        self.evaluate, self.known, self.seconds = evaluate, {}, 0.0

    def __call__(self, params):
        key = json.dumps(params, sort_keys=True)
        if key not in self.known:
            begin = time.process_time()
            self.known[key] = self.evaluate(params)
            self.seconds += time.process_time() - begin
        return self.known[key]


def opened(path):
    """Return a set's name, and what measures params on one half of its queries."""
    dataset = open_dataset(path)
    return dataset.name, Measured(dataset)


def run(out, paths, seeds, only):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    lines = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    done = {(line["set"], line["goals"], line["search"], line["seed"]) for line in lines}

    def write(**line):
        with out.open("a") as stream:
            stream.write(json.dumps(line) + "\n")

    sets = [opened(path) for path in paths]
    for name, evaluate in sets:
        for goals, names in GOALS.items():
            if (name, goals, "spread", 0) in done:
                continue
            objective = Objective(WEIGHTS, pareto=names)
            points = [BASELINE, *islice(quasi_random(SPACE, seed=0), SPREAD)]
            found = [objective.goals(evaluate(params)) for params in points]
            write(set=name, goals=goals, search="spread", seed=0, found=found, seconds=0.0)
    for seed in range(seeds):
        for name, evaluate in sets:
            for goals, names in GOALS.items():
                for search in only or SEARCHES:
                    if search == "optuna gp" and find_spec("torch") is None:
                        continue
                    if (name, goals, search, seed) not in done:
                        objective = Objective(WEIGHTS, pareto=names)
                        found, seconds = SEARCHES[search](objective, evaluate, seed)
                        key = {"set": name, "goals": goals, "search": search, "seed": seed}
                        write(**key, found=found, seconds=round(seconds, 3))


def volumes(points, reference):
    return hypervolume(points[is_efficient(points)], reference)


def points_in(found):
    """Return the goals of trials, of which each tells of one point, or of several; a row each."""
    return np.vstack([np.atleast_2d(one) for one in found])


def missing(lines):
    """Return the missing hypervolume by reference, goals, search, trials, set and seed."""
    found = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    groups = defaultdict(list)
    for line in lines:
        groups[line["set"], line["goals"]].append(line)
    for (name, goals), group in groups.items():
        spread = next(np.array(line["found"]) for line in group if line["search"] == "spread")
        scale = spread.max(axis=0) - spread.min(axis=0)
        everything = np.vstack([points_in(line["found"]) for line in group]) / scale
        everything = everything[is_efficient(everything)]
        near = spread[0] - 0.1 * np.abs(spread[0])
        for kind, reference in {"worst": spread.min(axis=0), "baseline": near}.items():
            most = hypervolume(everything, reference / scale)
            for line in group:
                for trials in SHOWN:
                    points = points_in(line["found"][:trials]) / scale
                    share = volumes(points, reference / scale) / most
                    table = found[kind, goals][line["search"]][trials]
                    table[name, line["seed"]] = 1000 * (1 - share)
    return found


def show(out, against, seeds):
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    lines = [line for line in lines if line["seed"] < seeds]
    found = missing(lines)
    seconds = defaultdict(list)
    for line in lines:
        seconds[line["search"], line["goals"]].append(1000 * line["seconds"] / TRIALS)
    sets = sorted({line["set"] for line in lines})
    print("| goals | reference | search | runs |", end="")
    print("".join(f" missing at {n} |" for n in SHOWN), end="")
    print("".join(f" {name} at 60 |" for name in sets), end="")
    print("".join(f" at {n} less {against} |" for n in SHOWN), end=" ms a suggestion |\n")
    print("| --- | --- | --- |" + " ---: |" * (2 * len(SHOWN) + len(sets) + 2))
    for (kind, goals), searches in found.items():
        for search in (name for name in SEARCHES if name in searches):
            table = searches[search]
            cells = [", ".join(GOALS[goals]), kind, search, str(len(table[60]))]
            cells += [f"{by_set(table[trials], sets).mean():.1f}" for trials in SHOWN]
            cells += [f"{one:.1f}" for one in by_set(table[60], sets)]
            cells += [difference(table[n], searches[against][n]) for n in SHOWN]
            cells.append(f"{np.mean(seconds[search, goals]):.0f}")
            print("| " + " | ".join(cells) + " |")


def by_set(table, sets):
    return np.array([np.mean([v for (n, _), v in table.items() if n == name]) for name in sets])


def difference(mine, theirs):
    both = [mine[key] - theirs[key] for key in mine if key in theirs]
    if len(both) < 2 or not np.any(both):
        return ""
    half = stats.t.ppf(0.975, len(both) - 1) * np.std(both, ddof=1) / np.sqrt(len(both))
    return f"{np.mean(both):+.1f} [{np.mean(both) - half:+.1f}, {np.mean(both) + half:+.1f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("run", "show"))
    parser.add_argument("out", type=Path)
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", type=lambda text: text.split(";"), default=None)
    parser.add_argument("--against", default="optuna gp")
    arguments = parser.parse_args()
    if arguments.what == "run":
        run(arguments.out, arguments.paths, arguments.seeds, arguments.only)
    else:
        show(arguments.out, arguments.against, arguments.seeds)


if __name__ == "__main__":
    main()
