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
SEARCHES = ("gp", "tpe")
TRIALS = {False: 40, True: 20}
CHECKED = 25


def search(kind, evaluate, seed, space, free):
    """Return the best objective after each trial; with the parameters that ``free`` names computed."""
    budget = TRIALS[bool(free)]
    header = StudyHeader(
        study_id="free",
        name="free",
        created_at=0.0,
        seed=seed,
        arms=(ArmRecord(kind, kind, budget),),
        space=space.to_mapping(),
        objective=OBJECTIVE.to_mapping(),
        ahead=0,
    )
    arm = Arm(kind, registry.load("backends", kind)(budget=budget), budget)
    study = Study.create(header, StudySpec([arm], space, OBJECTIVE))
    if free:
        study.let_free(free)
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


def heading():
    print(
        "| data set | tune queries | search | free | regret @2 | @5 | @10 | @20 | @40 | within 1 % | "
        "median trials | median query evaluations |"
    )
    print("| --- | ---: | --- | --- |" + " ---: |" * 8)


def report(name, free, best_known, *, checked, seeds, only_free=False):
    """Search with the free parameters of an evaluator computed and without, and print a row for each.

    ``best_known`` finds the best that is known of what the remembered evaluator computes.
    """
    queries = len(free.whole.queries)
    whole, computed = remembered(free.whole), remembered(free)
    found = {
        (kind, is_free): [
            search(
                kind,
                computed if is_free else whole,
                seed,
                free.space,
                free.free.names if is_free else (),
            )
            for seed in range(seeds)
        ]
        for kind in SEARCHES
        for is_free in ((True,) if only_free else (False, True))
    }
    tops = (curve[-1] for curves in found.values() for curve in curves)
    best = max(best_known(computed), *tops)
    for (kind, is_free), curves in found.items():
        first = reached(curves, best)
        cells = [
            f"{1000 * np.median([best - curve[min(at, len(curve)) - 1] for curve in curves]):.1f}"
            if at <= TRIALS[is_free]
            else "–"
            for at in (2, 5, 10, 20, 40)
        ]
        median = float(np.median(first))
        asked = median * queries + checked * is_free
        shown = [f"{median:g}", f"{asked:,.0f}"] if np.isfinite(median) else ["–", "–"]
        share = f"{np.isfinite(first).mean():.0%}".replace("%", " %")
        row = [name, str(queries), kind, "yes" if is_free else "no", *cells, share, *shown]
        print(f"| {' | '.join(row)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only-free", action="store_true")
    given = parser.parse_args()
    heading()
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
        free = FreeEvaluator(whole, OBJECTIVE, SPACE, retriever.free_knobs({}, SPACE.names))
        name = Path(path.partition(":")[2] or path).name
        report(
            name,
            free,
            best_known,
            checked=CHECKED,
            seeds=given.seeds,
            only_free=given.only_free,
        )


if __name__ == "__main__":
    main()
