"""How many queries a search asks to come within 1 % of the best, with free parameters and without.

    python experiments/search_quality/free_knobs.py builtin:atlas path/to/set … [--seeds 5] [--only-free]

Space and objective of `configs/graphrag.yaml`, on the half of the queries that is tuned on (seed 42),
one trial at a time; its bound on latency is left out, as a matter of the clock. The best known is that of
5 x 21 places of max_hops and temperature, for each of which the best graph_weight and top_k are
exact, or what any search found. Query evaluations count the trials, and for free parameters the 25
queries of the check; a trial asks each tune query once. Regret is in thousandths of the objective.
With `--only-free` the searches over all four parameters are left out.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from surfaces import FOUR, OBJECTIVE

from tuner.core import registry
from tuner.core.space import SearchSpace
from tuner.core.study_record import ArmRecord, StudyHeader
from tuner.datasets import open_dataset, split_queries
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.free.asking import FreeEvaluator
from tuner.execution.local.inline import Inline
from tuner.retrieval.hybrid import Hybrid
from tuner.run.systems import cache_dir
from tuner.study.arms import Arm
from tuner.study.loop import run_study
from tuner.study.spec import StudySpec
from tuner.study.study import Study

SPACE = SearchSpace.from_mapping(FOUR)
FREE = ("top_k", "graph_weight")
SEARCHES = ("gp", "tpe")
TRIALS = {False: 40, True: 20}
CHECKED = 25


def search(kind, evaluate, seed, *, is_free):
    """Return the best objective after each trial."""
    budget = TRIALS[is_free]
    header = StudyHeader(
        study_id="free",
        name="free",
        created_at=0.0,
        seed=seed,
        arms=(ArmRecord(kind, kind, budget),),
        space=SPACE.to_mapping(),
        objective=OBJECTIVE.to_mapping(),
        ahead=0,
    )
    arm = Arm(kind, registry.load("backends", kind)(budget=budget), budget)
    study = Study.create(header, StudySpec([arm], SPACE, OBJECTIVE))
    if is_free:
        study.let_free(FREE)
    assert run_study(study, Inline(), evaluate) == "finished"
    return np.maximum.accumulate([trial.objective for trial in study.trials])


def remembered(evaluate):
    """Return the same function, which computes each answer once: searches begin with the same points."""
    known = {}

    def evaluated(params):
        key = json.dumps(params, sort_keys=True)
        if key not in known:
            known[key] = evaluate(params)
        return known[key]

    return evaluated


def best_known(free):
    """Return the best over a dense table of what is asked, the rest exact."""
    hops = range(1, 6)
    return max(
        OBJECTIVE.score(free({"max_hops": h, "temperature": float(t)}).metrics).objective
        for h in hops
        for t in np.geomspace(0.01, 1.0, 21)
    )


def reached(curves, best):
    """Return for each search the first trial within 1 % of the best; infinite where there is none."""
    firsts = []
    for curve in curves:
        places = np.flatnonzero(curve >= best - 0.01 * abs(best))
        firsts.append(float(places[0]) + 1 if places.size else np.inf)
    return np.array(firsts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only-free", action="store_true")
    given = parser.parse_args()
    print(
        "| data set | tune queries | search | free | regret @2 | @5 | @10 | @20 | @40 | within 1 % | "
        "median trials | median query evaluations |"
    )
    print("| --- | ---: | --- | --- |" + " ---: |" * 8)
    for path in given.sets:
        dataset = open_dataset(path)
        retriever = Hybrid.build(dataset.corpus, cache_dir=cache_dir()).telling_legs()
        retriever.prepare(dataset.queries)
        ids, _ = split_queries(
            dataset.queries, holdout=0.5, stratify_by=["query_type", "difficulty"], seed=42
        )
        by_id = {query.id: query for query in dataset.queries}
        queries = [by_id[id_] for id_ in ids]
        whole = Evaluator.build(retriever, queries, dataset.qrels, OBJECTIVE.metric_names)
        free = remembered(
            FreeEvaluator(whole, OBJECTIVE, SPACE, retriever.free_knobs({}, SPACE.names))
        )
        found = {
            (kind, is_free): [
                search(kind, free if is_free else whole, seed, is_free=is_free)
                for seed in range(given.seeds)
            ]
            for kind in SEARCHES
            for is_free in ((True,) if given.only_free else (False, True))
        }
        tops = (curve[-1] for curves in found.values() for curve in curves)
        best = max(best_known(free), *tops)
        for (kind, is_free), curves in found.items():
            first = reached(curves, best)
            cells = [
                f"{1000 * np.median([best - curve[min(at, len(curve)) - 1] for curve in curves]):.1f}"
                if at <= TRIALS[is_free]
                else "–"
                for at in (2, 5, 10, 20, 40)
            ]
            median = float(np.median(first))
            asked = median * len(queries) + CHECKED * is_free
            shown = [f"{median:g}", f"{asked:,.0f}"] if np.isfinite(median) else ["–", "–"]
            name = Path(path.partition(":")[2] or path).name
            share = f"{np.isfinite(first).mean():.0%}".replace("%", " %")
            row = [name, str(len(queries)), kind, "yes" if is_free else "no", *cells, share, *shown]
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
