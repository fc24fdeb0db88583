"""Times the whole loop around evaluations that cost nothing: tuner against Optuna with MLflow.

    pip install '.[bench]' && python experiments/benchmarks/overhead.py [--trials 200] [--json]

A made-up function of four parameters, computed at once, so that all time is the tuner's own: the
suggestion, the durable record, and the view in MLflow, until the last run is written. Random and
TPE search, one worker. Each contender has a store of its own on the same disk.

What is counted:
- tuner: a study with a journal (fsync at every told trial) and its view in an MLflow sqlite store:
  parent, arm, and for each trial a run with 4 params, 5 metrics of its own, objective, violation,
  time and tags; until ``finish`` has returned. The clock starts once the writer's process has
  imported MLflow and made the study's run, as the others import MLflow in the warm-up.
- tuner, writer in a thread: the same with ``in_thread=True``, MLflow imported in the warm-up, and
  the clock started before the tracker; so making the study's run counts here.
- tuner without view: no tracker. The loop's time with a view, less this, is what the view adds to
  the loop's critical path (the wait in ``finish`` comes after the loop).
- Optuna, sqlite storage + MLflowCallback: ``study.optimize`` with its own sqlite storage (the
  durable record) and one MLflow run a trial with 4 params, 1 metric and tags, in a sqlite store.
- Optuna, in memory + MLflowCallback: the same without a durable record.

Stores are created, and libraries imported, in a short warm-up that is not counted. The contenders
take turns in every repetition, so that a busy machine slows all of them; reported is the median.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is loaded
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # for all of them alike

import optuna  # noqa: E402

from tuner.backends.random import Random  # noqa: E402
from tuner.backends.tpe import Tpe  # noqa: E402
from tuner.core.space import Integer, Real, SearchSpace  # noqa: E402
from tuner.core.study_record import ArmRecord, StudyHeader, StudySummary  # noqa: E402
from tuner.core.trial import Outcome, Params  # noqa: E402
from tuner.evaluation.objective import Objective  # noqa: E402
from tuner.execution.local.inline import Inline  # noqa: E402
from tuner.study.arms import Arm  # noqa: E402
from tuner.study.loop import run_study  # noqa: E402
from tuner.study.spec import StudySpec  # noqa: E402
from tuner.study.study import Study  # noqa: E402
from tuner.tracking.mlflow.quiet import Timeouts  # noqa: E402
from tuner.tracking.mlflow.tracker import Mlflow  # noqa: E402

LARGEST_SHARE = 1 / 3
LARGEST_ADDED_MS = 3.0
WARM_UP_TRIALS = 12
BASELINE = "optuna sqlite + mlflow"
SPACE = SearchSpace(
    {
        "graph_weight": Real(0.0, 1.0),
        "max_hops": Integer(1, 5),
        "top_k": Integer(3, 30),
        "temperature": Real(0.01, 1.0, scale="log"),
    }
)


@dataclass(frozen=True)
class Time:
    """Seconds of one run: until the last trial was told, and until everything was written."""

    loop_s: float
    total_s: float


Contender = Callable[[str, int, int, Path], Time]


def value(graph_weight: float, max_hops: int, top_k: int, temperature: float) -> float:
    return 1.0 - (graph_weight - 0.6) ** 2 - 0.01 * (max_hops - 2) ** 2 - temperature / (10 + top_k)


def evaluate(params: Params) -> Outcome:
    score = value(**params)  # type: ignore[arg-type]  # the space's own types
    names = ("recall@10", "recall@5", "mrr@10", "ndcg@10", "context_tokens")
    return Outcome(metrics={name: score / (i + 1) for i, name in enumerate(names)})


def tuner(search: str, trials: int, seed: int, folder: Path) -> Time:
    return _tuner(search, trials, seed, folder, _tracker(folder, in_thread=False))


def tuner_in_thread(search: str, trials: int, seed: int, folder: Path) -> Time:
    return _tuner(search, trials, seed, folder, _tracker(folder, in_thread=True))


def tuner_without_view(search: str, trials: int, seed: int, folder: Path) -> Time:
    return _tuner(search, trials, seed, folder, None)


def _tracker(folder: Path, *, in_thread: bool) -> Mlflow:
    name = "thread" if in_thread else "process"
    store = f"sqlite:///{folder / f'tuner-{name}-mlflow.db'}"
    return Mlflow(store, "overhead", in_thread=in_thread, timeouts=Timeouts(finish_s=600.0))


def _tuner(search: str, trials: int, seed: int, folder: Path, tracker: Mlflow | None) -> Time:
    run_dir = Path(tempfile.mkdtemp(prefix="run-", dir=folder))
    backend = Random(trials) if search == "random" else Tpe(trials)
    objective = Objective({"recall@10": 0.5, "mrr@10": 0.3, "ndcg@10": 0.2})
    header = StudyHeader(
        study_id=run_dir.name,
        name="overhead",
        created_at=time.time(),
        seed=seed,
        arms=(ArmRecord(search, search, trials),),
        space={},
        objective=objective.to_mapping(),
    )
    is_in_process = tracker is not None and not tracker.in_thread
    if tracker is not None and is_in_process:
        tracker.start(header, run_dir)
        while tracker.run_id is None:
            time.sleep(0.01)
    began = time.perf_counter()
    spec = StudySpec([Arm(search, backend, trials)], SPACE, objective)
    study = Study.create(header, spec, run_dir / "journal.jsonl")
    if tracker is not None and not is_in_process:
        tracker.start(header, run_dir)
    state = run_study(study, Inline(), evaluate, tracker=tracker)
    loop_s = time.perf_counter() - began
    if tracker is not None:
        tracker.finish(StudySummary(state, None, None, (), trials, 0, 0, loop_s))
    study.close()
    total_s = time.perf_counter() - began
    if tracker is not None and (tracker.status.written, state) != (trials, "finished"):
        raise SystemExit(f"the view is not whole: {tracker.status}")
    return Time(loop_s, total_s)


def optuna_sqlite(search: str, trials: int, seed: int, folder: Path) -> Time:
    return _optuna(search, trials, seed, folder, f"sqlite:///{folder / 'optuna.db'}")


def optuna_in_memory(search: str, trials: int, seed: int, folder: Path) -> Time:
    return _optuna(search, trials, seed, folder, None)


def _optuna(search: str, trials: int, seed: int, folder: Path, storage: str | None) -> Time:
    sampler = (
        optuna.samplers.RandomSampler(seed=seed)
        if search == "random"
        else optuna.samplers.TPESampler(seed=seed)
    )

    def objective(trial: optuna.Trial) -> float:
        return value(
            trial.suggest_float("graph_weight", 0.0, 1.0),
            trial.suggest_int("max_hops", 1, 5),
            trial.suggest_int("top_k", 3, 30),
            trial.suggest_float("temperature", 0.01, 1.0, log=True),
        )

    name = "sqlite" if storage else "memory"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # deprecated, and still what people use
        callback = optuna.integration.MLflowCallback(
            tracking_uri=f"sqlite:///{folder / f'optuna-{name}-mlflow.db'}",
            metric_name="objective",
        )
    began = time.perf_counter()
    study = optuna.create_study(
        study_name=f"{search}-{seed}-{trials}",
        storage=storage,
        sampler=sampler,
        direction="maximize",
    )
    study.optimize(objective, n_trials=trials, callbacks=[callback])
    seconds = time.perf_counter() - began
    return Time(seconds, seconds)


CONTENDERS: dict[str, Contender] = {
    "tuner": tuner,
    "tuner, writer in a thread": tuner_in_thread,
    "tuner without view": tuner_without_view,
    BASELINE: optuna_sqlite,
    "optuna in memory + mlflow": optuna_in_memory,
}


def measure(search: str, trials: int, repetitions: int, folder: Path) -> dict[str, Any]:
    """Time every contender in turns; ms a trial, medians."""
    times: dict[str, list[Time]] = {name: [] for name in CONTENDERS}
    for run in CONTENDERS.values():
        run(search, WARM_UP_TRIALS, 0, folder)
    for repetition in range(repetitions):
        for name, run in CONTENDERS.items():
            times[name].append(run(search, trials, repetition + 1, folder))
    total_ms = {
        name: 1000 * statistics.median(run.total_s for run in runs) / trials
        for name, runs in times.items()
    }
    added_ms = {
        name: statistics.median(
            1000 * (with_view.loop_s - without.loop_s) / trials
            for with_view, without in zip(times[name], times["tuner without view"], strict=True)
        )
        for name in ("tuner", "tuner, writer in a thread")
    }
    return {
        "ms_per_trial": total_ms,
        "share_of_baseline": total_ms["tuner"] / total_ms[BASELINE],
        "share_of_in_memory": total_ms["tuner"] / total_ms["optuna in memory + mlflow"],
        "added_to_loop_ms": added_ms["tuner"],
        "added_to_loop_by_thread_ms": added_ms["tuner, writer in a thread"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=200, help="trials in each run")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    os.environ["MLFLOW_LOGGING_LEVEL"] = "WARNING"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        os.chdir(folder)  # MLflow's fluent calls put artifacts where the process is
        results = {
            search: measure(search, arguments.trials, arguments.repetitions, folder)
            for search in ("random", "tpe")
        }
        os.chdir(Path(__file__).parent)
    report = {
        "trials": arguments.trials,
        "repetitions": arguments.repetitions,
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
        "versions": {
            package: importlib.metadata.version(package)
            for package in ("mlflow", "optuna", "optuna-integration")
        },
        "results": results,
        "targets": {"share_of_baseline": LARGEST_SHARE, "added_to_loop_ms": LARGEST_ADDED_MS},
        "is_met": all(
            result["share_of_baseline"] <= LARGEST_SHARE
            and result["added_to_loop_ms"] <= LARGEST_ADDED_MS
            for result in results.values()
        ),
    }
    if arguments.json:
        print(json.dumps(report, indent=2))
        return
    for search, result in results.items():
        print(f"{search}: ms a trial, {arguments.trials} trials, 0 ms evaluations")
        for name, ms in result["ms_per_trial"].items():
            print(f"  {name:28} {ms:8.2f}")
        print(f"  share of '{BASELINE}': {result['share_of_baseline']:.2f} (target: 0.33)")
        print(f"  share of 'optuna in memory + mlflow': {result['share_of_in_memory']:.2f}")
        print(f"  added to the loop by the view: {result['added_to_loop_ms']:.2f} ms (target: 3)")
        print(f"    by a writer in a thread: {result['added_to_loop_by_thread_ms']:.2f} ms")


if __name__ == "__main__":
    main()
