"""Times recall@10 + mrr@10 + ndcg@10 side by side: tuner, pytrec_eval, ranx and ir-measures.

    pip install '.[bench]' && python experiments/benchmarks/metrics_speed.py [--json]

Made-up input with a fixed seed: 1,000 and 10,000 queries, 100 retrieved documents each with
distinct scores (so that every library has the same order), 20 judgements of grade 0 to 3 a query,
half of them retrieved. Everybody starts from the same two dictionaries and ends with one value for
each query and metric; the agreement of the values is checked before anything is timed.

What is counted:
- tuner arrays: judging the rankings (positions of documents, checks included) and three metrics,
  with `Qrels` made beforehand and judging down to the deepest cut-off, as for every trial of a
  study. A second line judges all 100 ranks (which these metrics do not need).
- tuner arrays, prepared each time: all 100 ranks, plus `Qrels.build` from the dictionary.
- tuner dicts: `evaluate_run_metrics(qrels, run, ...)`.
- pytrec_eval: `RelevanceEvaluator(qrels, measures)` and `.evaluate(run)`; a third line, for what
  it is worth, without the construction. It has no mrr@10: recip_rank is taken.
- ranx: `Qrels(dict)`, `Run(dict)` and `evaluate(..., return_mean=False)`; compiled in a run before.
  Without the conversion: a line of its own.
- ir-measures: `iter_calc` from dictionaries, read to its end.

One thread each. The libraries take turns in every repetition, so that a busy machine slows all of
them; reported is the median.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy and numba are loaded

import ir_measures  # noqa: E402
import numpy as np  # noqa: E402
import pytrec_eval  # noqa: E402
import ranx  # noqa: E402

from tuner.core.rankings import Rankings  # noqa: E402
from tuner.metrics import Qrels, depth_needed, parse  # noqa: E402
from tuner.scoring.evaluate_run import evaluate_run_metrics  # noqa: E402

METRICS = ["recall@10", "mrr@10", "ndcg@10"]
RETRIEVED = 100
JUDGED = 20
DOCUMENTS = 50_000
BASELINE = "pytrec_eval"


@dataclass(frozen=True)
class Workload:
    """The same judgements and answers in each form."""

    qrels: dict[str, dict[str, int]]
    run: dict[str, dict[str, float]]
    rankings: Rankings
    prepared: Qrels


def make_workload(queries: int, *, seed: int) -> Workload:
    generator = np.random.default_rng(seed)
    document_ids = tuple(f"passage-{number:07d}" for number in range(DOCUMENTS))
    query_ids = tuple(f"query-{number:06d}" for number in range(queries))
    qrels, run = {}, {}
    documents = np.empty((queries, RETRIEVED), dtype=np.int64)
    for row, query_id in enumerate(query_ids):
        drawn = generator.choice(DOCUMENTS, RETRIEVED + JUDGED // 2, replace=False)
        documents[row] = drawn[:RETRIEVED]
        judged = np.append(
            generator.permutation(drawn[:RETRIEVED])[: JUDGED // 2], drawn[RETRIEVED:]
        )
        grades = generator.integers(0, 4, JUDGED)
        grades[0] = 3
        qrels[query_id] = {
            document_ids[place]: int(grade) for place, grade in zip(judged, grades, strict=True)
        }
        # Steps of at least .01: distinct in float32 too, so no library sees a tie.
        scores = np.cumsum(generator.uniform(0.01, 0.3, RETRIEVED))[::-1].tolist()
        # Not sorted in the dictionary: ordering is part of everybody's work.
        run[query_id] = {
            document_ids[documents[row, place]]: scores[place]
            for place in generator.permutation(RETRIEVED)
        }
    rankings = Rankings(query_ids, document_ids, documents)
    return Workload(qrels, run, rankings, Qrels.build(qrels, document_ids=document_ids))


def contenders(work: Workload) -> dict[str, Callable[[], Any]]:
    metrics = [parse(name) for name in METRICS]
    measures = {"recall.10", "recip_rank", "ndcg_cut.10"}
    ranx_metrics = ["recall@10", "mrr@10", "ndcg@10"]
    ir_metrics = [ir_measures.parse_measure(name) for name in ("R@10", "RR@10", "nDCG@10")]
    evaluator = pytrec_eval.RelevanceEvaluator(work.qrels, measures)
    ranx_qrels, ranx_run = ranx.Qrels(work.qrels), ranx.Run(work.run)

    def arrays(prepared: Qrels, depth: int | None) -> dict[str, Any]:
        judged = prepared.judge(work.rankings, depth=depth)
        return {metric.name: metric.per_query(judged) for metric in metrics}

    def prepare_and_judge() -> dict[str, Any]:
        qrels = Qrels.build(work.qrels, document_ids=work.rankings.document_ids)
        return arrays(qrels, None)

    return {
        "tuner arrays": lambda: arrays(work.prepared, depth_needed(metrics)),
        "tuner arrays, whole depth judged": lambda: arrays(work.prepared, None),
        "tuner arrays, prepared each time": prepare_and_judge,
        "tuner dicts": lambda: evaluate_run_metrics(work.qrels, work.run, METRICS),
        BASELINE: lambda: pytrec_eval.RelevanceEvaluator(work.qrels, measures).evaluate(work.run),
        "pytrec_eval, evaluator kept": lambda: evaluator.evaluate(work.run),
        "ranx": lambda: ranx.evaluate(
            ranx.Qrels(work.qrels), ranx.Run(work.run), ranx_metrics, return_mean=False
        ),
        "ranx, converted before": lambda: ranx.evaluate(
            ranx_qrels, ranx_run, ranx_metrics, return_mean=False
        ),
        "ir-measures": lambda: list(ir_measures.iter_calc(ir_metrics, work.qrels, work.run)),
    }


def check_agreement(calls: dict[str, Callable[[], Any]]) -> None:
    """Compare the means, to be sure that the same thing is timed. mrr is left out for pytrec_eval."""
    mine = {name: float(np.mean(list(v.values()))) for name, v in calls["tuner dicts"]().items()}
    arrays = {name: float(np.mean(values)) for name, values in calls["tuner arrays"]().items()}
    trec = calls[BASELINE]().values()
    theirs = {
        "pytrec_eval": {
            "recall@10": float(np.mean([values["recall_10"] for values in trec])),
            "ndcg@10": float(np.mean([values["ndcg_cut_10"] for values in trec])),
        },
        "tuner arrays": arrays,
        "ranx": {name: float(np.mean(values)) for name, values in calls["ranx"]().items()},
    }
    rows = calls["ir-measures"]()
    for name, measure in zip(METRICS, ("R@10", "RR@10", "nDCG@10"), strict=True):
        values = [row.value for row in rows if str(row.measure) == measure]
        theirs.setdefault("ir-measures", {})[name] = float(np.mean(values))
    for library, means in theirs.items():
        for name, mean in means.items():
            if abs(mean - mine[name]) > 1e-9:
                raise SystemExit(f"{library} has {name} {mean}, tuner {mine[name]}")


def measure(calls: dict[str, Callable[[], Any]], repetitions: int) -> dict[str, float]:
    """Return the median seconds of each call; all take turns in each repetition."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repetitions):
        for name, call in calls.items():
            gc.collect()
            started = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(values) for name, values in seconds.items()}


def targets(seconds: dict[str, float]) -> dict[str, bool]:
    """Say which of the promised ratios hold."""
    return {
        "arrays at most .05 of pytrec_eval": seconds["tuner arrays"] <= 0.05 * seconds[BASELINE],
        "dicts at most 1.0 of pytrec_eval": seconds["tuner dicts"] <= seconds[BASELINE],
        "dicts faster than ranx": seconds["tuner dicts"] < seconds["ranx"],
        "dicts faster than ir-measures": seconds["tuner dicts"] < seconds["ir-measures"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()

    libraries = ("pytrec-eval-terrier", "ranx", "ir-measures", "numpy")
    report: dict[str, Any] = {
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in libraries},
        "metrics": METRICS,
        "retrieved": RETRIEVED,
        "judged": JUDGED,
        "repetitions": options.repetitions,
        "results": [],
    }
    for queries in options.queries:
        work = make_workload(queries, seed=options.seed)
        calls = contenders(work)
        check_agreement(calls)  # also warms up what compiles on its first call
        for call in calls.values():
            call()
        seconds = measure(calls, options.repetitions)
        report["results"].append(
            {
                "queries": queries,
                "milliseconds": {name: value * 1e3 for name, value in seconds.items()},
                "of_pytrec_eval": {n: value / seconds[BASELINE] for n, value in seconds.items()},
                "targets": targets(seconds),
            }
        )
    if options.json:
        print(json.dumps(report, indent=2))
        return
    for result in report["results"]:
        print(f"\n{result['queries']:,} queries x {RETRIEVED} retrieved, {' + '.join(METRICS)}")
        print(f"{'':34}{'ms':>10}  of pytrec_eval")
        for name, value in result["milliseconds"].items():
            print(f"{name:34}{value:10.2f}{result['of_pytrec_eval'][name]:12.3f}")
        for target, is_met in result["targets"].items():
            print(f"  {'met' if is_met else 'MISSED'}: {target}")


if __name__ == "__main__":
    main()
