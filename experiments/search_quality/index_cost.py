"""How few indexes a search can do with: ways to search where a new index costs far more than a trial.

    python experiments/search_quality/index_cost.py run OUT.jsonl FOLDER [--seeds 20] [--only "tpe;random"]
    python experiments/search_quality/index_cost.py show OUT.jsonl

`run` searches the surfaces recorded in `FOLDER` (`index_surfaces.py`) and those made up, one trial
after another, and appends a line for each search; what `OUT.jsonl` has is not searched again.
`show` prints the tables: how many indexes and trials it took to come within 1 % of the optimum, and the
regret, in thousandths, after so much cost: a trial costs 1, a new index 10, 100 or 1,000.

Each way is a pure function of the history, as a backend is. Nothing is measured in seconds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import warnings
from collections import defaultdict
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from index_surfaces import MADE_UP, recorded

from tuner.backends import by_index
from tuner.backends.gp import _around, _Model
from tuner.backends.index_levels import Levels, moved
from tuner.backends.points import point_of, points_of
from tuner.core import registry
from tuner.core.space import SearchSpace
from tuner.core.trial import Trial, TrialState

WITHIN = 0.01
INITIAL = 10
TRIALS = 120
COSTS = (10, 100, 1000)
# Costs at which the regret is told, in trials, by what a new index costs.
BUDGETS = {10: (200, 400), 100: (1000, 2000), 1000: (10_000, 20_000)}
# Plain search gets more, to see when it comes there; the Gaussian process's are slow to suggest.
TRIALS_OF = {"tpe": 240, "gp": 80, "two levels, gp": 80, "per cost 10": 80, "per cost 100": 80}


def joint(kind):
    """Return plain search: index parameters are like any other."""
    backend = registry.load("backends", kind)(1000)

    def suggest(space, history, seed):
        joined = SearchSpace(space.parameters, space.constraints)
        return backend.suggest(joined, history, count=1, seed=seed)[0]

    return suggest


def two_levels(kind, most=None):
    """Return what the product does."""
    backend = registry.load("backends", kind)(1000)

    def suggest(space, history, seed):
        return by_index.suggest(backend, space, history, most=most, count=1, seed=seed)[0]

    return suggest


def per_cost(ratio):
    """Return improvement per cost: the joint Gaussian process's, by 1 + ratio for a new index."""

    def suggest(space, history, seed):
        if len(history) < INITIAL:
            return joint("gp")(space, history, seed)
        rng = np.random.default_rng([seed, len(history)])
        levels = Levels.of(space)
        built = {levels.key(trial.params): levels.setting(trial.params) for trial in history}
        by_worth = sorted(history, key=lambda trial: -trial.worth)
        best = [trial.params for trial in by_worth[:3]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # On length scales at their bounds.
            model = _Model.fit(space, history, 0.01)
        model.condition([])
        points = [space.decode(row) for row in rng.random((400, len(space.names)))]
        points += _around(space, [space.encode(params) for params in best], 200, 0.1, rng)
        for setting in list(
            {levels.key(t.params): built[levels.key(t.params)] for t in by_worth}.values()
        )[:12]:
            points += _asked_of(levels, setting, best, rng, 0.1, 40, spread=40)
        found, value = None, -1.0
        for step in (0.1, 0.03, 0.0):
            points = [p for p in points if point_of(p) not in points_of(history)]
            price = np.array([1.0 if levels.key(p) in built else 1.0 + ratio for p in points])
            worth = model.improvement(points) / price
            if worth.max() > value:
                found, value = points[int(worth.argmax())], worth.max()
            points = _asked_of(levels, levels.setting(found), [found], rng, step or 0.01, 60)
        return found

    return suggest


def _asked_of(levels, setting, near, rng, step, number, spread=0):
    inner = levels.inside(setting)
    rows = [moved(params, inner) for params in near]
    found = rows + _around(inner, [inner.encode(row) for row in rows], number, step, rng)
    found += [inner.decode(row) for row in rng.random((spread, len(inner.names)))]
    return [levels.joined(setting, params) for params in found]


def halving(number, trials, *, carries):
    """Return successive halving: ``number`` spread indexes, of which the better third goes on.

    Each round takes the same number of trials, all of ``trials`` together; the last index is asked from
    then on. TPE searches inside; with ``carries`` it knows the trials of all indexes.
    """
    inside = registry.load("backends", "tpe")(1000)
    rounds = round(math.log(number, 3)) + 1

    def suggest(space, history, seed):
        levels = Levels.of(space)
        spread = registry.load("backends", "random")(1000)
        settings = spread.suggest(levels.outer, [], count=number, seed=seed)
        begin, left = 0, settings
        for _ in range(rounds - 1):
            if len(history) < begin + trials // rounds:
                break
            begin += trials // rounds
            worth = defaultdict(lambda: -math.inf)
            for trial in history[:begin]:
                key = levels.key(trial.params)
                worth[key] = max(worth[key], trial.worth)
            left = sorted(left, key=lambda s: -worth[point_of(s)])[: max(1, len(left) // 3)]
        setting = left[(len(history) - begin) % len(left)]
        inner = levels.inside(setting)
        mine = [t for t in history if levels.key(t.params) == point_of(setting)]
        known = [
            Trial(t.number, "", moved(t.params, inner), t.state, t.objective)
            for t in (history if carries else mine)
        ]
        if carries and history and not mine:
            best = max(history, key=lambda trial: trial.worth)
            return levels.joined(setting, moved(best.params, inner))
        return levels.joined(setting, inside.suggest(inner, known, count=1, seed=seed)[0])

    return suggest


WAYS = {
    "tpe": joint("tpe"),
    "gp": joint("gp"),
    "two levels, tpe": two_levels("tpe"),
    "two levels, tpe, 10 indexes": two_levels("tpe", 10),
    "two levels, gp": two_levels("gp"),
    "per cost 10": per_cost(10),
    "per cost 100": per_cost(100),
    "halving, 9 indexes": halving(9, 60, carries=True),
    "halving, 9 indexes, nothing carried": halving(9, 60, carries=False),
    "halving, 27 indexes": halving(27, 108, carries=True),
    "random": joint("random"),
    "random, by index": two_levels("random"),
}


def search(surface, suggest, trials, seed):
    """Return how many indexes there were, and the best value, after each trial."""
    space = surface.space.with_index(surface.index)
    levels = Levels.of(space)
    history, indexes, path, best = [], set(), [], -math.inf
    for number in range(trials):
        params = suggest(space, history, seed)
        value = float(surface.value(params))
        history.append(Trial(number, "", params, TrialState.FINISHED, value))
        indexes.add(levels.key(params))
        best = max(best, value)
        path.append([len(indexes), round(best, 6)])
    return path


def run(out, folder, seeds, only, on):
    surfaces = [recorded(path) for path in sorted(folder.glob("*.npz"))] + [
        make() for make in MADE_UP
    ]
    done = set()
    if out.exists():
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        done = {(line["surface"], line["way"], line["seed"]) for line in lines}
    for seed in range(seeds):
        for surface in surfaces:
            if on and surface.name not in on:
                continue
            for way, suggest in WAYS.items():
                if (only and way not in only) or (surface.name, way, seed) in done:
                    continue
                path = search(surface, suggest, TRIALS_OF.get(way, TRIALS), seed)
                line = {
                    "surface": surface.name,
                    "way": way,
                    "seed": seed,
                    "optimum": surface.optimum,
                }
                with out.open("a") as stream:
                    stream.write(json.dumps({**line, "path": path}) + "\n")


def show(out):
    found = defaultdict(list)
    for text in out.read_text().splitlines():
        line = json.loads(text)
        found[line["surface"], line["way"]].append(line)
    print(
        "| surface | way | seeds | came within 1 % | indexes until then | trials until then |",
        end="",
    )
    for cost, budgets in BUDGETS.items():
        for budget in budgets:
            print(f" regret at {budget} (index {cost}) |", end="")
    print("\n| --- | --- |" + " ---: |" * (4 + sum(map(len, BUDGETS.values()))))
    order = list(WAYS)
    for (surface, way), lines in sorted(
        found.items(), key=lambda item: (item[0][0], order.index(item[0][1]))
    ):
        reached = [_reached(line) for line in lines]
        came = sum(one is not None for one in reached)
        medians = [
            _shown(np.median([math.inf if one is None else one[part] for one in reached]))
            for part in (0, 1)
        ]
        cells = [surface, way, str(len(lines)), f"{100 * came / len(lines):.0f} %", *medians]
        for cost, budgets in BUDGETS.items():
            for budget in budgets:
                regrets = [_regret(line, cost, budget) for line in lines]
                cells.append("–" if None in regrets else f"{np.mean(regrets):.1f}")
        print("| " + " | ".join(cells) + " |")


def _reached(line):
    """Return the indexes and trials until within 1 % of the optimum; None: never."""
    goal = line["optimum"] * (1 - WITHIN)
    for number, (indexes, best) in enumerate(line["path"], 1):
        if best >= goal:
            return indexes, number
    return None


def _regret(line, cost, budget):
    """Return 1,000 times the optimum less the best that the budget buys; None: nothing."""
    bought = [
        best for n, (indexes, best) in enumerate(line["path"], 1) if n + cost * indexes <= budget
    ]
    return 1000 * (line["optimum"] - bought[-1]) if bought else None


def _shown(median):
    return "–" if math.isinf(median) else f"{median:g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("run", "show"))
    parser.add_argument("out", type=Path)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", help="ways, with semicolons between them")
    parser.add_argument("--on", help="surfaces, with semicolons between them")
    arguments = parser.parse_args()
    if arguments.what == "show":
        show(arguments.out)
    else:
        only, on = (text.split(";") if text else [] for text in (arguments.only, arguments.on))
        run(arguments.out, arguments.folder, arguments.seeds, only, on)


if __name__ == "__main__":
    main()
