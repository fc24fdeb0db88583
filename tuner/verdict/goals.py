"""What became of each goal of a study that sought several, and why its winner is that point."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tuner.core.journal import alternative_if_whole, per_query_if_whole
from tuner.core.rankings import FloatArray
from tuner.core.shown import as_percent
from tuner.core.study_record import Standing, StudySummary
from tuner.core.trial import Trial
from tuner.evaluation.objective import COMPOSITE, Objective, composite_values
from tuner.evaluation.system_metrics import is_better_lower, largest_difference
from tuner.stats import compare_paired, standard_error
from tuner.study.pareto import Chance, Point
from tuner.study.results import BASELINE_ARM

# A latency is measured once a trial, on up to 20 queries: less than this share of it may be chance.
LATENCY_CHANCE = 0.25

NOT_COMPARABLE = "not comparable, since trials ran beside each other"


def ran_beside(trials: Sequence[Trial]) -> bool:
    """Say whether a trial was asked for before an earlier one had ended."""
    own = [trial for trial in trials if trial.shared_from is None and trial.told_at is not None]
    until = -float("inf")
    for trial in sorted(own, key=lambda trial: trial.asked_at):
        if trial.asked_at < until:
            return True
        until = max(until, trial.told_at or until)
    return False


def chance_of(objective: Objective, journal: Path, trials: Sequence[Trial]) -> Chance:
    """Return by how much each goal of two points may differ by chance.

    One standard error of the paired difference where a goal is known by query; a quarter of a
    latency, and any latency where trials ran beside each other; else nothing.
    """
    is_beside = ran_beside(trials)
    kept: dict[tuple[int, int], Mapping[str, FloatArray]] = {}

    def values(point: Point) -> Mapping[str, FloatArray]:
        key = point.trial.number, point.place
        if key not in kept:
            kept[key] = read(point.trial.evaluated_as, point.place)
        return kept[key]

    def read(number: int, place: int) -> Mapping[str, FloatArray]:
        if place:
            return alternative_if_whole(journal, number, place)
        found = per_query_if_whole(journal, number)
        is_whole = all(name in found for name in objective.weights)
        composite = {COMPOSITE: composite_values(found, objective.weights)} if is_whole else {}
        return {name: array for name, array in {**found, **composite}.items() if name in goals}

    def chance(first: Point, second: Point) -> tuple[float, ...]:
        return tuple(one(name, first, second) for name in goals)

    def one(name: str, first: Point, second: Point) -> float:
        if is_latency(name):
            if first.trial.number == second.trial.number:
                return 0.0  # one answer, which is timed once
            if is_beside:
                return float("inf")
            return LATENCY_CHANCE * min(first.metrics[name], second.metrics[name])
        mine, theirs = values(first).get(name), values(second).get(name)
        if mine is None or theirs is None or mine.shape != theirs.shape:
            return 0.0
        return standard_error(mine - theirs) or 0.0

    goals = objective.pareto
    return chance


def is_latency(name: str) -> bool:
    """Say whether a goal is a time, which depends on what else runs."""
    return name.startswith("latency_")


def goal_changes(
    objective: Objective,
    winner: Standing,
    baseline: Standing,
    by_query: Callable[[str], tuple[FloatArray, FloatArray] | None],
    *,
    confidence: float,
    is_beside: bool,
    seed: int,
) -> tuple[Mapping[str, Any], ...]:
    """Return each goal of winner and baseline, its change, and a sentence on it.

    On the held-out queries where there are any. ``by_query`` returns the values of both by query,
    None where a goal has none: then there is no interval, and a latency counts as changed by a
    quarter or more. ``is_beside``: trials ran beside each other, so their latencies, unlike those
    on the held-out queries, cannot be compared.
    """
    is_held_out = winner.holdout_objective is not None and baseline.holdout_objective is not None
    records = []
    for goal in objective.pareto:
        pair = by_query(goal)
        sides = [_measured(objective, goal, one, is_held_out) for one in (winner, baseline)]
        interval = None
        if pair is not None:
            found = compare_paired(
                *pair, seed=seed, confidence=confidence, permutations=0, resamples=0
            ).within(largest_difference(objective.weights if goal == COMPOSITE else [goal]))
            sides, interval = [found.treatment_mean, found.control_mean], found.interval
        mine, theirs = sides
        if mine is None or theirs is None:
            continue
        reading = _reading(goal, mine, theirs, interval, is_beside=is_beside and not is_held_out)
        change = _change(goal, mine, theirs, interval)
        records.append(
            {
                "goal": goal,
                "winner": mine,
                "baseline": theirs,
                "difference": mine - theirs,
                "interval": interval,
                "part": "holdout" if is_held_out else "tune",
                "reading": reading,
                "sentence": f"{goal} {mine:.4g} against {theirs:.4g}, {change}: {reading}",
            }
        )
    return tuple(records)


def front_notes(
    summary: StudySummary, goals: Sequence[str], trials: Sequence[Trial]
) -> tuple[str, ...]:
    """Say why the winner is the point that it is, and what the front cannot tell."""
    winner, best, front = summary.winner, summary.best, summary.front
    if winner is None or best is None or not front:
        return ()
    notes = [_why(winner, best, front)]
    timed = [name for name in goals if is_latency(name)]
    if timed and ran_beside(trials):
        notes.append(
            f"Points of the front are not ranked by {' and '.join(timed)}: {NOT_COMPARABLE}."
        )
    return tuple(notes)


def _why(winner: Standing, best: Standing, front: Sequence[Mapping[str, Any]]) -> str:
    if winner.arm == BASELINE_ARM:
        return "No trial has a higher objective than the baseline, so that is the winner."
    reason = (
        "it has the highest objective"
        if winner.trial == best.trial
        else "it takes the fewest tokens of those whose objective cannot be told from the "
        f"highest, that of {best.arm} #{best.trial}"
    )
    own = (one for one in front if one["trial"] == winner.trial)
    point = next((one for one in own if one["params"] == winner.params), None)
    if point is None:
        return (
            f"The winner, {winner.arm} #{winner.trial}, is not on the front, since another is as "
            f"good in every goal and better in one; it was chosen because {reason}."
        )
    if point["is_knee"]:
        which = "the knee of the front"
    else:
        knee = next(one for one in front if one["is_knee"])
        is_own = knee["trial"] == winner.trial
        where = "another setting of it" if is_own else f"{knee['arm']} #{knee['trial']}"
        which = f"a point of the front but not its knee ({where})"
    return f"The winner, {winner.arm} #{winner.trial}, is {which}; it was chosen because {reason}."


def _measured(
    objective: Objective, goal: str, standing: Standing, is_held_out: bool
) -> float | None:
    metrics = standing.holdout_metrics if is_held_out else standing.tune_metrics
    if goal == COMPOSITE and all(name in metrics for name in objective.weights):
        total = sum(objective.weights.values())
        return sum(weight * metrics[name] for name, weight in objective.weights.items()) / total
    return metrics.get(goal)


def _reading(
    goal: str,
    mine: float,
    theirs: float,
    interval: tuple[float, float] | None,
    *,
    is_beside: bool,
) -> str:
    if mine == theirs:
        return "the same"
    if is_latency(goal) and is_beside:
        return NOT_COMPARABLE
    low, high = (mine - theirs, mine - theirs) if interval is None else interval
    if is_latency(goal) and interval is None and not _is_beyond(mine, theirs):
        return "no clear change"
    if is_better_lower(goal):
        low, high = -high, -low
    return "better" if low > 0.0 else "worse" if high < 0.0 else "no clear change"


def _is_beyond(mine: float, theirs: float) -> bool:
    return abs(mine - theirs) > LATENCY_CHANCE * min(mine, theirs)


def _change(goal: str, mine: float, theirs: float, interval: tuple[float, float] | None) -> str:
    """Write a change: of a cost as a share of the baseline's, else as it is."""
    is_share = is_better_lower(goal) and theirs > 0.0

    def written(value: float) -> str:
        return as_percent(value / theirs, "+.0%") if is_share else f"{value:+.3f}"

    text = written(mine - theirs)
    if interval is None:
        return text
    return f"{text} ({written(interval[0])} to {written(interval[1])})"
