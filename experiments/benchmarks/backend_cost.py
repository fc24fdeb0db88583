"""Times one suggestion of each backend against the length of the history, in 4 dimensions.

    python experiments/benchmarks/backend_cost.py [--repeats 7] [--trials 10,50,100,300,1000] [--json]

The space is that of configs/graphrag.yaml: graph_weight, max_hops, top_k and temperature; the objective a smooth
made-up one, the history random points. For each length a fresh instance answers (`cold`: as after
a resume) and then a warm one, which has seen all but the last trial (`warm`: as within a run). The
backends take turns in every repetition; reported is the median, in milliseconds.

Beside them, in the same run: `skopt.Optimizer` told the whole history in one call, and an Optuna
study filled with `add_trials` and asked once, which is what the two backends would cost if they
drove their libraries in the plain way. One thread each. Optimizer and the gp backend are skipped
beyond 300 trials, unless --all.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is loaded

import numpy as np

from tuner.core import registry
from tuner.core.space import Integer, Real, SearchSpace
from tuner.core.trial import Params, Trial, TrialState

SPACE = SearchSpace(
    {
        "graph_weight": Real(0.0, 1.0),
        "max_hops": Integer(1, 5),
        "top_k": Integer(3, 30),
        "temperature": Real(0.01, 1.0, scale="log"),
    }
)
SLOW = ("gp", "skopt.Optimizer")
SLOW_BEYOND = 300


def objective(params: Params) -> float:
    offset = SPACE.encode(params) - np.array([0.63, 0.35, 0.2, 0.7])
    return float(1.0 - (offset**2 * [1.0, 3.0, 0.1, 2.0]).sum())


def make_history(trials: int) -> list[Trial]:
    rng = np.random.default_rng(0)
    points = [SPACE.sample(rng) for _ in range(trials)]
    return [
        Trial(number, "arm", params, TrialState.FINISHED, objective(params))
        for number, params in enumerate(points)
    ]


def backend_timer(kind: str, *, is_warm: bool) -> Callable[[Sequence[Trial], int], float]:
    make = registry.load("backends", kind)

    def timed(history: Sequence[Trial], seed: int) -> float:
        backend = make(5000)
        if is_warm:
            backend.suggest(SPACE, history[:-1], count=1, seed=seed)
        start = time.perf_counter()
        backend.suggest(SPACE, history, count=1, seed=seed)
        return time.perf_counter() - start

    return timed


def skopt_timer(history: Sequence[Trial], seed: int) -> float:
    from skopt import Optimizer
    from skopt import space as dimensions

    columns = [
        dimensions.Real(
            parameter.low,
            parameter.high,
            prior="log-uniform" if parameter.scale == "log" else "uniform",
        )
        if isinstance(parameter, Real)
        else dimensions.Integer(parameter.low, parameter.high)  # type: ignore[union-attr]
        for parameter in SPACE.parameters.values()
    ]
    points = [list(trial.params.values()) for trial in history]
    losses = [-float(trial.objective or 0.0) for trial in history]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        optimizer = Optimizer(columns, acq_func="EI", random_state=seed, n_initial_points=10)
        optimizer.tell(points, losses)
        optimizer.ask()
        return time.perf_counter() - start


def optuna_timer(history: Sequence[Trial], seed: int) -> float:
    import optuna
    from optuna.distributions import FloatDistribution, IntDistribution

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    distributions: dict[str, Any] = {
        name: FloatDistribution(parameter.low, parameter.high, log=parameter.scale == "log")
        if isinstance(parameter, Real)
        else IntDistribution(parameter.low, parameter.high)  # type: ignore[union-attr]
        for name, parameter in SPACE.parameters.items()
    }
    start = time.perf_counter()
    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=0)
    )
    study.add_trials(
        [
            optuna.trial.create_trial(
                params=trial.params, distributions=distributions, value=trial.objective
            )
            for trial in history
        ]
    )
    study.ask(distributions)
    return time.perf_counter() - start


def measure(
    lengths: Sequence[int], repeats: int, *, with_slow: bool
) -> dict[str, dict[int, float]]:
    timers: dict[str, Callable[[Sequence[Trial], int], float]] = {}
    for kind in registry.kinds("backends"):
        timers[f"{kind} cold"] = backend_timer(kind, is_warm=False)
        timers[f"{kind} warm"] = backend_timer(kind, is_warm=True)
    timers["skopt.Optimizer"] = skopt_timer
    timers["Optuna add_trials"] = optuna_timer
    found: dict[str, dict[int, float]] = {name: {} for name in timers}
    for length in lengths:
        history = make_history(length)
        taken: dict[str, list[float]] = {name: [] for name in timers}
        for repeat in range(repeats + 1):  # The first round pays for imports and is dropped.
            for name, timer in timers.items():
                if length > SLOW_BEYOND and name.startswith(SLOW) and not with_slow:
                    continue
                taken[name].append(timer(history, repeat))
        for name, seconds in taken.items():
            if seconds:
                found[name][length] = 1000.0 * statistics.median(seconds[1:])
    return found


def show(found: dict[str, dict[int, float]], lengths: Sequence[int]) -> None:
    print("milliseconds a suggestion, by trials in the history (4 dimensions, median)")
    print(f"{'':20}" + "".join(f"{length:>10,}" for length in lengths))
    for name, row in found.items():
        cells = [f"{row[length]:10.2f}" if length in row else f"{'-':>10}" for length in lengths]
        print(f"{name:20}" + "".join(cells))
    print("ratios")
    for ours, theirs in (
        ("gp cold", "skopt.Optimizer"),
        ("tpe cold", "Optuna add_trials"),
        ("tpe warm", "Optuna add_trials"),
    ):
        cells = [
            f"{found[ours][length] / found[theirs][length]:10.2f}"
            if length in found[ours] and length in found[theirs]
            else f"{'-':>10}"
            for length in lengths
        ]
        print(f"{ours + ' / ' + theirs:30}"[:30] + "".join(cells))


def main() -> None:
    parser = argparse.ArgumentParser(description="Time one suggestion of each backend.")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--trials", default="10,50,100,300,1000", help="lengths of the history")
    parser.add_argument("--all", action="store_true", help="the slow ones beyond 300 trials too")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    lengths = [int(part) for part in options.trials.split(",")]
    found = measure(lengths, options.repeats, with_slow=options.all)
    if not options.json:
        show(found, lengths)
        return
    versions = {
        package: importlib.metadata.version(package)
        for package in ("numpy", "scikit-optimize", "scikit-learn", "optuna")
    }
    record = {
        "python": platform.python_version(),
        "versions": versions,
        "repeats": options.repeats,
        "milliseconds": found,
    }
    print(json.dumps(record, indent=2))


if __name__ == "__main__":
    main()
