"""How far one driver and a Dask cluster go together.

    python experiments/benchmarks/scale.py [--workers 1 2 4 8] [--trials 40] [--json]

Starts a scheduler and worker processes of one thread each on this machine, and runs whole studies
on them (random search; ask, evaluate, journal with fsync, no MLflow). Every study is timed from the
moment when each worker has evaluated twice, so that the start of processes is not counted.

The first table: evaluations that sleep 100 ms. ``efficiency`` is the speed-up over the cluster of
one worker, divided by the number of workers. The second: evaluations of 0 ms, so that nothing but
the driver, the scheduler and the workers' own work is left; the best rate is the driver's limit,
here on a machine that it shares with all of them. The third follows from that: up to how many
workers one driver keeps busy with evaluations of a given length.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuner.backends.random import Random
from tuner.core.space import Real, SearchSpace
from tuner.core.study_record import ArmRecord, StudyHeader
from tuner.core.trial import Outcome, Params
from tuner.evaluation.objective import Objective
from tuner.execution.cluster.dask import Dask
from tuner.study.arms import Arm
from tuner.study.loop import Event, run_study
from tuner.study.spec import StudySpec
from tuner.study.study import Study

AT_LEAST = 0.9
SLEEP_S = 0.1
LENGTHS_S = (0.1, 1.0, 10.0)
START_TIMEOUT_S = 120.0
SPACE = SearchSpace({"weight": Real(0.0, 1.0)})
OBJECTIVE = Objective({"score": 1.0}, {}, {})


@dataclass(frozen=True)
class Sleeping:
    sleep_s: float

    def __call__(self, params: Params) -> Outcome:
        time.sleep(self.sleep_s)
        return Outcome({"score": float(params["weight"])})  # type: ignore[arg-type]


@contextlib.contextmanager
def cluster(workers: int) -> Iterator[str]:
    """Run a scheduler and workers as processes; yield the scheduler's address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    place = ["--host", "127.0.0.1", "--port", str(port)]
    size = ["--nworkers", str(workers), "--nthreads", "1"]
    scheduler = start("scheduler", *place)
    worker = start("worker", address, *size)
    try:
        wait_for(address, workers)
        yield address
    finally:
        for process in (worker, scheduler):
            process.terminate()
            process.wait()


def start(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "dask", *arguments, "--no-dashboard"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def wait_for(address: str, workers: int) -> None:
    from distributed import Client

    with Client(address, timeout=START_TIMEOUT_S) as client:
        client.wait_for_workers(workers, timeout=START_TIMEOUT_S)


def trials_per_s(address: str, workers: int, sleep_s: float, trials: int) -> float:
    """Run a study of so many trials a worker; return its rate once all workers are at work."""
    budget = trials * workers
    header = StudyHeader(
        study_id="scale",
        name="scale",
        created_at=time.time(),
        seed=1,
        arms=(ArmRecord("random", "random", budget),),
        space=SPACE.to_mapping(),
        objective=OBJECTIVE.to_mapping(),
    )
    told_at: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        spec = StudySpec([Arm("random", Random(budget=budget), budget)], SPACE, OBJECTIVE)
        study = Study.create(header, spec, Path(folder) / "journal.jsonl")

        def note(event: Event) -> None:
            if event.kind == "told":
                told_at.append(time.perf_counter())

        state = run_study(study, Dask(workers, address=address), Sleeping(sleep_s), on_event=note)
        errors = {trial.error for trial in study.trials if trial.error}
        study.close()
    if state != "finished" or errors:
        raise SystemExit(f"the study ended as {state}: {errors}")
    first = 2 * workers
    return (len(told_at) - first) / (told_at[-1] - told_at[first - 1])


def measure(counts: list[int], trials: int) -> dict[str, Any]:
    sleeping, empty = [], []
    for workers in counts:
        with cluster(workers) as address:
            rate = trials_per_s(address, workers, SLEEP_S, trials)
            sleeping.append({"workers": workers, "trials_per_s": round(rate, 2)})
            rate = trials_per_s(address, workers, 0.0, 5 * trials)
            empty.append({"workers": workers, "trials_per_s": round(rate, 1)})
    one = sleeping[0]["trials_per_s"] / counts[0]
    for row in sleeping:
        row["speed_up"] = round(row["trials_per_s"] / one, 2)
        row["efficiency"] = round(row["speed_up"] / row["workers"], 3)
        row["at_least"] = AT_LEAST
    limit = max(row["trials_per_s"] for row in empty)
    busy = [{"evaluation_s": s, "workers_of_one_driver": int(limit * s)} for s in LENGTHS_S]
    return {
        "cores": os.cpu_count(),
        "trials_a_worker": trials,
        "sleeping": sleeping,
        "empty": empty,
        "limit_trials_per_s": limit,
        "saturation": busy,
    }


def show(title: str, rows: list[dict[str, Any]]) -> None:
    print(title)
    widths = {key: max(len(key), *(len(str(row[key])) for row in rows)) for key in rows[0]}
    for row in [{key: key for key in rows[0]}, *rows]:
        print("  ".join(f"{row[key]!s:<{width}}" for key, width in widths.items()))
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]  # it has one
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--trials", type=int, default=40, help="trials of each worker")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    result = measure(options.workers, options.trials)
    if options.json:
        print(json.dumps(result))
        return
    print(f"{result['cores']} cores, {options.trials} trials a worker\n")
    show(f"evaluations that sleep {1000 * SLEEP_S:.0f} ms", result["sleeping"])
    show("evaluations of 0 ms", result["empty"])
    show("one driver keeps busy", result["saturation"])


if __name__ == "__main__":
    main()
