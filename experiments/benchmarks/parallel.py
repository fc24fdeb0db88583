"""How much faster two workers are than one, over the whole loop of a study.

    python experiments/benchmarks/parallel.py [--trials 40] [--json]

Every figure is the wall time of a whole study (random search; ask, evaluate, journal with fsync)
with one worker over that with two, measured one after the other in this run, worker processes'
start included. Evaluations differ in length, as real ones do: 50 to 200 ms, by their params. They
either sleep, as one that waits for a server, or sort numbers in numpy, which needs a core and frees
Python's lock. ``at least`` is what the project promises.

The second table compares ways to keep two workers busy, on sleeping evaluations in threads with a
suggestion that takes 10 ms: the slots that the tuner uses, joblib pulling a lazy input, and rounds
of n trials. ``stale`` is the largest number of results that a suggestion had to do without.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from tuner.backends.random import Random
from tuner.core.space import Real, SearchSpace
from tuner.core.study_record import ArmRecord, StudyHeader
from tuner.core.trial import Outcome, Params, Trial
from tuner.evaluation.objective import Objective
from tuner.execution.base import Execution
from tuner.execution.local.processes import Processes
from tuner.execution.local.threads import Threads
from tuner.study.arms import Arm
from tuner.study.loop import run_study
from tuner.study.spec import StudySpec
from tuner.study.study import Study

AT_LEAST = 1.8
SHORTEST_S, LONGEST_S = 0.05, 0.2
SUGGEST_S = 0.01
SPACE = SearchSpace({"weight": Real(0.0, 1.0)})
OBJECTIVE = Objective({"score": 1.0}, {}, {})


def length_s(params: Params) -> float:
    return SHORTEST_S + (LONGEST_S - SHORTEST_S) * float(params["weight"])  # type: ignore[arg-type]


@dataclass(frozen=True)
class Sleeping:
    def __call__(self, params: Params) -> Outcome:
        time.sleep(length_s(params))
        return Outcome({"score": float(params["weight"])})  # type: ignore[arg-type]


@dataclass(frozen=True)
class Computing:
    """Sorts one array again and again; ``sorts_per_s`` is measured beforehand, alone."""

    sorts_per_s: float

    def __call__(self, params: Params) -> Outcome:
        sort(round(self.sorts_per_s * length_s(params)))
        return Outcome({"score": float(params["weight"])})  # type: ignore[arg-type]


def sort(times: int) -> None:
    numbers = np.random.default_rng(0).random(200_000)
    for _ in range(times):
        np.sort(numbers)


def sorts_per_s() -> float:
    sort(5)
    start = time.perf_counter()
    sort(60)
    return 60 / (time.perf_counter() - start)


def study_s(execution: Execution, evaluate: Callable[[Params], Outcome], trials: int) -> float:
    header = StudyHeader(
        study_id="parallel",
        name="parallel",
        created_at=time.time(),
        seed=1,
        arms=(ArmRecord("random", "random", trials),),
        space=SPACE.to_mapping(),
        objective=OBJECTIVE.to_mapping(),
    )
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        spec = StudySpec([Arm("random", Random(budget=trials), trials)], SPACE, OBJECTIVE)
        study = Study.create(header, spec, Path(folder) / "journal.jsonl")
        state = run_study(study, execution, evaluate)
        study.close()
        elapsed_s = time.perf_counter() - start
    if state != "finished":
        raise SystemExit(f"the study ended as {state}")
    return elapsed_s


def measure_kinds(trials: int) -> list[dict[str, Any]]:
    work = {"sleep": Sleeping(), "numpy": Computing(sorts_per_s())}
    rows = []
    for name, evaluate in work.items():
        for kind in (Threads, Processes):
            one_s = study_s(kind(1), evaluate, trials)
            two_s = study_s(kind(2), evaluate, trials)
            rows.append(
                {
                    "evaluation": name,
                    "kind": kind.__name__.lower(),
                    "one_worker_s": round(one_s, 3),
                    "two_workers_s": round(two_s, 3),
                    "speed_up": round(one_s / two_s, 3),
                    "at_least": AT_LEAST,
                }
            )
    return rows


class Source:
    """Trials whose suggestion takes a while, and a count of the results that it came without."""

    def __init__(self, trials: int) -> None:
        rng = np.random.default_rng(1)
        self._trials = [Trial(i, "a", {"weight": rng.random()}) for i in range(trials)]
        self.consumed = 0
        self.stale = 0

    def __iter__(self) -> Iterator[Trial]:
        for trial in self._trials:
            self.stale = max(self.stale, trial.number - self.consumed)
            time.sleep(SUGGEST_S)
            yield trial


Way = Callable[[Source], Iterable[object]]


def slots(workers: int) -> Way:
    return lambda source: Threads(workers).run(Sleeping(), source)


def lazy(ahead: int) -> Way:
    parallel = Parallel(
        2, backend="threading", return_as="generator_unordered", batch_size=1, pre_dispatch=ahead
    )
    return lambda source: parallel(delayed(Sleeping())(trial.params) for trial in source)


def rounds(size: int) -> Way:
    def run(source: Source) -> Iterator[object]:
        trials = iter(source)
        with Parallel(2, backend="threading", batch_size=1, pre_dispatch="all") as parallel:
            while batch := [trial for _, trial in zip(range(size), trials, strict=False)]:
                yield from parallel(delayed(Sleeping())(trial.params) for trial in batch)

    return run


def measure_ways(trials: int) -> list[dict[str, Any]]:
    ways = {
        "slots": slots(2),
        "joblib, lazy, 2 ahead": lazy(2),
        "joblib, lazy, 3 ahead": lazy(3),
        "rounds of 2": rounds(2),
        "rounds of 4": rounds(4),
        "rounds of 6": rounds(6),
    }

    def run_s(way: Way) -> tuple[float, int]:
        source = Source(trials)
        start = time.perf_counter()
        for _ in way(source):
            source.consumed += 1
        return time.perf_counter() - start, source.stale

    one_s, _ = run_s(slots(1))
    rows = []
    for name, way in ways.items():
        elapsed_s, stale = run_s(way)
        rows.append({"way": name, "speed_up": round(one_s / elapsed_s, 3), "stale": stale})
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    widths = {key: max(len(key), *(len(str(row[key])) for row in rows)) for key in rows[0]}
    for row in [{key: key for key in rows[0]}, *rows]:
        print("  ".join(f"{row[key]!s:<{width}}" for key, width in widths.items()))
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]  # it has one
    parser.add_argument("--trials", type=int, default=40, help="trials of each study")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    result = {
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "trials": options.trials,
        "kinds": measure_kinds(options.trials),
        "ways": measure_ways(options.trials),
    }
    if options.json:
        print(json.dumps(result))
        return
    print(f"{result['cores']} cores, {result['trials']} trials a study, evaluations of 50-200 ms\n")
    show(result["kinds"])
    show(result["ways"])


if __name__ == "__main__":
    main()
