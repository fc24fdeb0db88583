"""When to stop a search: rules, tried on searches of 200 trials that were recorded to their end.

    python experiments/search_quality/stopping.py run OUT.jsonl builtin:atlas path/to/set … [--seeds 10]
    python experiments/search_quality/stopping.py show OUT.jsonl

`run` searches, for each data set, the query half of `configs/graphrag.yaml` over its four parameters
and over the engine's nine, and two made-up surfaces; it appends a line for each search, and does not
search again what `OUT.jsonl` has. `show` replays every rule on every search, and prints how many
stop too early: the trials that are left would have gained more than `gain_below`; and how many
trials are saved. Searches of `random` are orders of one pool: its trials can be shuffled.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from surfaces import FOUR, NINE, OBJECTIVE, SEED

from tuner.core import registry
from tuner.core.space import SearchSpace
from tuner.core.study_record import ArmRecord, StudyHeader
from tuner.core.trial import Outcome
from tuner.datasets import open_dataset, split_queries
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.objective import Objective
from tuner.retrieval.hybrid import Hybrid
from tuner.run.systems import cache_dir
from tuner.study.arms import Arm
from tuner.study.spec import StudySpec
from tuner.study.stopping import likely_gain
from tuner.study.study import Study

TRIALS = 200
SPACES = {"four": FOUR, "nine": NINE}
PLAIN = Objective({"value": 1.0})
# Two arms share the trials. A pool of random draws is as long as two searches.
ARMS = {"random": ("random",), "tpe": ("tpe",), "gp": ("gp",), "gp+tpe": ("gp", "tpe")}
POOL = 2 * TRIALS
FEWEST = 30


def hills(dimensions):
    """Return a made-up surface of one broad and one narrow hill; few parameters matter much."""
    rng = np.random.default_rng(dimensions)
    centres = rng.random((2, dimensions))
    weights = 2.0 ** -np.arange(dimensions)
    weights /= weights.sum()
    space = {f"x{i}": {"type": "real", "low": 0.0, "high": 1.0} for i in range(dimensions)}

    def value(params):
        x = np.array(list(params.values()))
        near = [float((weights * (x - centre) ** 2).sum()) for centre in centres]
        return 0.7 + 0.1 * np.exp(-near[0] / 0.02) + 0.07 * np.exp(-near[1] / 0.2)

    return space, value


def surfaces(path):
    """Yield (name, space, evaluate, objective) of a data set, or of what is made up."""
    if path == "made-up":
        for dimensions in (4, 10):
            space, value = hills(dimensions)
            yield f"hills {dimensions}", space, lambda p, f=value: Outcome({"value": f(p)}), PLAIN
        return
    dataset = open_dataset(path)
    retriever = Hybrid.build(dataset.corpus, cache_dir=cache_dir())
    tune, _ = split_queries(
        dataset.queries, holdout=0.5, stratify_by=["query_type", "difficulty"], seed=SEED
    )
    queries = [query for query in dataset.queries if query.id in set(tune)]
    retriever.prepare(queries)
    evaluate = Evaluator.build(retriever, queries, dataset.qrels, OBJECTIVE.metric_names)
    for name, space in SPACES.items():
        yield f"{dataset.name} {name}", space, evaluate, OBJECTIVE


def search(kinds, space, evaluate, objective, seed, trials):
    """Search as the product does, and return every trial's arm, parameters and objective."""
    each = trials // len(kinds)
    arms = [Arm(kind, registry.load("backends", kind)(each), each) for kind in kinds]
    header = StudyHeader("s", "s", 0.0, seed, tuple(ArmRecord(k, k, each) for k in kinds), {}, {})
    parsed = SearchSpace.from_mapping(space)
    study = Study.create(header, StudySpec(arms, parsed, objective))
    while asked := study.ask(1):
        study.tell(asked[0], Outcome(dict(evaluate(asked[0].params).metrics)))
    return [{"arm": t.arm, "params": t.params, "objective": t.objective} for t in study.trials]


def run(out, paths, seeds, only):
    """Search what ``out`` lacks; the cheap searches of all sets come first."""
    done = set()
    if out.exists():
        done = {(r["surface"], r["search"], r["seed"]) for r in read(out)}
    known = [one for path in paths for one in surfaces(path)]
    for seed in range(seeds):
        for kind in only:
            for name, space, evaluate, objective in known:
                if (name, kind, seed) in done or (kind == "random" and seed):
                    continue
                trials = search(
                    ARMS[kind],
                    space,
                    evaluate,
                    objective,
                    seed,
                    POOL if kind == "random" else TRIALS,
                )
                record = {
                    "surface": name,
                    "search": kind,
                    "seed": seed,
                    "space": space,
                    "trials": trials,
                }
                with out.open("a") as file:
                    file.write(json.dumps(record) + "\n")


def read(path):
    """Return the searches of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def studies(path, of_each):
    """Return (surface, search, values) of each search; of a pool of draws, so many orders of it."""
    found = []
    for record in read(path):
        values = np.array([trial["objective"] for trial in record["trials"]])
        if record["search"] != "random":
            found.append((record["surface"], record["search"], values[:TRIALS]))
            continue
        for seed in range(of_each):
            drawn = np.random.default_rng(seed).permutation(values)[:TRIALS]
            found.append((record["surface"], "random", drawn))
    return found


def patience(trials):
    """Stop after so many trials without a gain of ``gain_below``."""
    return lambda v, n, gain: n > trials and v[:n].max() - v[: n - trials].max() < gain


def patience_share(share):
    """Stop where this last part of all trials gained less than ``gain_below``."""
    return lambda v, n, gain: v[:n].max() - v[: math.ceil(n * (1 - share))].max() < gain


def shuffled(v, n, gain):
    """Stop by how much a random half of the trials would have lost, times the doublings to come."""
    ranked = np.sort(v[:n])[::-1]
    half = n // 2
    chance, lost = half / n, ranked[0]
    for place in range(n - half + 1):
        lost -= chance * ranked[place]
        chance *= (n - half - place) / (n - place - 1) if n > place + 1 else 0.0
    return lost * math.log2(TRIALS / n) < gain


def spread(caution):
    """Stop by how far the best 10 lie apart, without looking at what was gained of late."""

    def rule(v, n, gain):
        ranked = np.unique(v[:n])[::-1]
        excess = (ranked[:10] - ranked[10]).mean() if len(ranked) > 10 else math.inf
        return excess * math.log1p(caution * (TRIALS - n) / n) < gain

    return rule


RULES = {
    "30 trials without a gain": patience(30),
    "60 trials without a gain": patience(60),
    "half of the trials without a gain": patience_share(0.5),
    "orders of the trials": shuffled,
    "spread of the best 10 as drawn": spread(1),
    "spread of the best 10 twentyfold": spread(20),
    "the product's": lambda v, n, gain: likely_gain(v[:n], TRIALS - n) < gain,
    "who knows the future": lambda v, n, gain: v.max() - v[:n].max() <= gain,
}


def stopped(rule, values, gain):
    """Return after how many trials a rule stops."""
    return next((n for n in range(FEWEST, TRIALS) if rule(values, n, gain)), TRIALS)


def show(path, gains, of_each):
    """Print, for each gain and rule, how many searches stop too early and what share is saved."""
    found = studies(path, of_each)
    kinds = sorted({search for _, search, _ in found})
    counts = {kind: sum(search == kind for _, search, _ in found) for kind in kinds}
    print("gain_below,rule,search,searches,too_early,saved,mean_loss")
    for gain in gains:
        for name, rule in RULES.items():
            rows = {kind: [] for kind in kinds}
            for _, search, values in found:
                stop = stopped(rule, values, gain)
                rows[search].append((values.max() - values[:stop].max(), 1 - stop / TRIALS))
            for kind, pairs in rows.items():
                lost, saved = np.array(pairs).T
                early = (lost > gain).mean()
                print(
                    f"{gain},{name},{kind},{counts[kind]},{early:.3f},{saved.mean():.3f},"
                    f"{lost.mean():.5f}",
                    flush=True,
                )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("run", "show"))
    parser.add_argument("out", type=Path)
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", nargs="+", default=list(ARMS), choices=list(ARMS))
    parser.add_argument("--gains", nargs="+", type=float, default=[0.002, 0.005, 0.01])
    given = parser.parse_args()
    if given.what == "run":
        run(given.out, given.paths, given.seeds, given.only)
    else:
        show(given.out, given.gains, of_each=6)


if __name__ == "__main__":
    main()
