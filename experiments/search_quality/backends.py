"""How good each search backend is: its regret by trials, its processor time, on many surfaces.

    python experiments/search_quality/backends.py run OUT.csv builtin:atlas path/to/set … [--ways gp random]
    python experiments/search_quality/backends.py show OUT.csv

`run` lets each backend search each surface alone, one trial after another, once for every seed, and
appends a line for each search; what `OUT.csv` has is not searched again, so that a run can be killed
and goes on. `show` prints the tables: regret in thousandths of the objective, the share of
searches that came within 1 % of the best value known, and the processor time of a suggestion.

A way to search is a kind of backend, with options where there are some: `gp`, `gp:initial=5`. With
`+baseline` before it, the search is told first what the baseline is worth, as in a study. `hebo`, `optuna gp` and
`optuna tpe` are searches of other packages (`peers.py`).
`surfaces.py` makes the surfaces.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections import defaultdict
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import yaml
from peers import PEERS
from surfaces import named, surfaces

from tuner.core import registry
from tuner.core.trial import Trial, TrialState

TRIALS = 40
SHOWN = (10, 20, 40)
WITHIN = 0.01
COLUMNS = ("surface", "way", "seed", "best_known", "cpu_ms", "objectives")


def backend_of(way, trials):
    """Return the backend that a way names, made for so many trials."""
    kind, _, text = way.removeprefix("+baseline ").partition(":")
    pairs = (part.partition("=") for part in text.split(",") if part)
    options = {name: yaml.safe_load(value) for name, _, value in pairs}
    return registry.load("backends", kind)(trials, **options)


def search(surface, way, seed, trials):
    """Return the objective of each trial, and the processor time of a suggestion in ms."""
    if way in PEERS:
        objectives, seconds = PEERS[way](surface.space, surface.value, seed, trials)
        return objectives, 1000 * seconds / len(objectives)
    backend = backend_of(way, trials)
    history = []
    if way.startswith("+baseline "):
        value = surface.value(surface.baseline)
        history.append(Trial(0, "baseline", surface.baseline, TrialState.FINISHED, value))
    given, seconds = len(history), 0.0
    while len(history) < given + trials:
        begin = time.process_time()
        points = backend.suggest(surface.space, history, count=1, seed=seed)
        seconds += time.process_time() - begin
        if not points:
            break
        value = surface.value(points[0])
        history.append(Trial(len(history), "arm", points[0], TrialState.FINISHED, value))
    objectives = [trial.objective for trial in history[given:]]
    return objectives, 1000 * seconds / len(objectives)


def run(out, paths, ways, seeds, trials, on):
    done = set()
    if out.exists():
        with out.open(newline="") as stream:
            done = {(row["surface"], row["way"], row["seed"]) for row in csv.DictReader(stream)}
    else:
        out.write_text(",".join(COLUMNS) + "\n")
    made = {}
    for seed in range(seeds):
        for name in named(paths, on):
            for way in ways:
                if (name, way, str(seed)) in done:
                    continue
                if name not in made:
                    made.update(surfaces(name, out.parent))
                found, cpu_ms = search(made[name], way, seed, trials)
                values = " ".join(f"{value:.6f}" for value in found)
                row = (name, way, seed, f"{made[name].optimum:.6f}", f"{cpu_ms:.3f}", values)
                with out.open("a", newline="") as stream:
                    csv.writer(stream, lineterminator="\n").writerow(row)


def read(out):
    """Return the searches by surface and way: bests after each trial, and processor times."""
    rows = []
    for path in out:
        with path.open(newline="") as stream:
            rows += list(csv.DictReader(stream))
    found, optimum = defaultdict(dict), defaultdict(lambda: -np.inf)
    for row in rows:
        values = np.array([float(value) for value in row["objectives"].split()])
        optimum[row["surface"]] = max(
            optimum[row["surface"]], float(row["best_known"]), values.max()
        )
        bests = np.maximum.accumulate(values)
        bests = np.concatenate([bests, np.full(max(TRIALS - len(bests), 0), bests[-1])])
        found[row["surface"], row["way"]][int(row["seed"])] = (bests, float(row["cpu_ms"]))
    return found, optimum


def measures(searches, optimum):
    """Return the figures of one way on one surface."""
    bests = np.array([bests[:TRIALS] for bests, _ in searches.values()])
    regret = 1000 * (optimum - bests)
    is_near = bests >= optimum - WITHIN * abs(optimum)
    first = np.where(is_near.any(axis=1), is_near.argmax(axis=1) + 1.0, np.inf)
    return {
        "searches": len(bests),
        "mean": [regret[:, number - 1].mean() for number in SHOWN],
        "median": [np.median(regret[:, number - 1]) for number in SHOWN],
        "area": regret.mean(),
        "reached": np.isfinite(first).mean(),
        "first": first,
        "cpu_ms": np.median([cpu for _, cpu in searches.values()]),
    }


def row_of(cells):
    print("| " + " | ".join(cells) + " |")


def shown_first(first):
    median = np.median(first)
    return f"{median:g}" if np.isfinite(median) else f"> {TRIALS}"


def show(out, ways, on):
    found, optimum = read(out)
    names = [name for name in sorted({name for name, _ in found}) if not on or name in on]
    ways = ways or sorted({way for _, way in found})
    groups = defaultdict(list)
    for name in names:
        groups[group_of(name)].append(name)
    for group, members in [*groups.items(), *((name, [name]) for name in names)]:
        print(f"\n### {group.split('/')[-1]}\n")
        heading()
        for way in ways:
            every = [
                measures(found[name, way], optimum[name])
                for name in members
                if (name, way) in found
            ]
            if len(every) == len(members):
                figures(way, every)


def group_of(name):
    """Return what kind of surface it is."""
    if name.endswith(".npz"):
        return "indexes"
    if name == "lightrag":
        return name
    return f"all {name.partition('#')[2]}" if "#" in name else "made up"


def heading():
    columns = [f"@{number}" for number in SHOWN] + [
        "median @40",
        "area",
        "within 1 %",
        "median trial",
    ]
    row_of(["way", "searches", *columns, "ms a suggestion"])
    print("| --- |" + " ---: |" * (len(columns) + 2))


def figures(way, every):
    """Print the means over surfaces."""
    first = np.concatenate([one["first"] for one in every])
    mean = {
        key: np.mean([one[key] for one in every], axis=0)
        for key in ("mean", "median", "area", "reached", "cpu_ms")
    }
    cells = [f"{value:.1f}" for value in (*mean["mean"], mean["median"][-1], mean["area"])]
    cells += [f"{100 * mean['reached']:.0f} %", shown_first(first), f"{mean['cpu_ms']:.3g}"]
    row_of([way, str(sum(one["searches"] for one in every)), *cells])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("run", "show"))
    parser.add_argument("out", type=Path, help="the file of results")
    parser.add_argument(
        "paths", nargs="*", help="data sets; `made-up`, `lightrag`, files of recorded surfaces"
    )
    parser.add_argument("--ways", nargs="*", default=None)
    parser.add_argument("--on", nargs="*", default=None, help="surfaces, by name")
    parser.add_argument("--also", nargs="*", type=Path, default=[], help="more files to show")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=TRIALS)
    arguments = parser.parse_args()
    if arguments.what == "show":
        show([arguments.out, *arguments.also], arguments.ways, arguments.on)
    else:
        ways = arguments.ways or ["grid", "random", "tpe", "gp"]
        run(arguments.out, arguments.paths, ways, arguments.seeds, arguments.trials, arguments.on)


if __name__ == "__main__":
    main()
