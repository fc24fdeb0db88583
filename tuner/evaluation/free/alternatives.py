"""What one answer tells of the front of several goals: settings beside the chosen one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tuner.backends.front import is_efficient
from tuner.core.errors import InputError
from tuner.core.journal import of_alternative
from tuner.core.profile import Alternative
from tuner.core.rankings import FloatArray
from tuner.core.trial import Outcome, Params, params_key
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.free.choice import paired_errors
from tuner.evaluation.free.one_by_one import OneByOne
from tuner.evaluation.free.settings import goals_decided
from tuner.evaluation.objective import COMPOSITE, Objective, composite_values
from tuner.evaluation.system_metrics import is_better_lower

# So many settings are kept beside the chosen one.
MOST = 15

ByQuery = dict[str, FloatArray]


@dataclass(frozen=True, eq=False)
class Alternatives:
    """Settings beside the chosen one, and their goals by query, by the names of the journal."""

    alternatives: tuple[Alternative, ...]
    by_query: ByQuery


def seeking(objective: Objective, evaluator: Evaluator) -> list[Objective]:
    """Return objectives that each seek one goal of rankings, beside what the objective itself does.

    The ends of a front are where one goal is best; what lies between its ends is found at other
    depths, and by the objective.
    """
    ranks = {metric.name for metric in evaluator.metrics if metric.is_ranking}
    goals = [name for name in objective.pareto if name in ranks and not is_better_lower(name)]
    return [replace(objective, weights={name: 1.0}, price={}, pareto=()) for name in goals]


def alternatives_of(
    one_by_one: OneByOne, objective: Objective, settings: Iterable[Params], chosen: Params
) -> Alternatives:
    """Return the settings that no other beats in every goal, spread over their front.

    Those that were evaluated already are looked at, and these ``settings``. What chance alone may
    tell from one that is kept is not.

    Args:
        one_by_one: the answer, with what it has seen.
        objective: with several goals.
        settings: what may be on the front.
        chosen: the setting that the trial is told with; complete.
    """
    goals = goals_decided(objective)
    if goals is None:
        return Alternatives((), {})
    known = [
        (values, outcome, params)
        for params, outcome in _measured(one_by_one, settings, chosen)
        if (values := _goals(goals, outcome)) is not None
    ]
    first = next((row for row, one in enumerate(known) if one[2] == chosen), None)
    if first is None:
        return Alternatives((), {})
    by_query = [_by_query(goals, outcome) for _, outcome, _ in known]
    kept = _spread(np.array([values for values, _, _ in known]), by_query, goals.pareto, first)
    return Alternatives(
        tuple(Alternative(known[row][2], known[row][1].metrics) for row in kept),
        {
            of_alternative(place, name): values
            for place, row in enumerate(kept, start=1)
            for name, values in by_query[row].items()
        },
    )


def _measured(
    one_by_one: OneByOne, settings: Iterable[Params], chosen: Params
) -> list[tuple[Params, Outcome]]:
    """Return what each setting measures, once each, with those that were seen before."""
    space = one_by_one.space
    known: dict[str, tuple[Params, Outcome]] = {}
    for setting, outcome in one_by_one.seen or ():
        if one_by_one.is_allowed(setting):
            params = space.canonical(setting)
            known[params_key(params)] = params, outcome
    for setting in filter(one_by_one.is_allowed, (chosen, *settings)):
        params = space.canonical(setting)
        key = params_key(params)
        if key not in known:
            known[key] = params, one_by_one.measured(params)
    return list(known.values())


def _goals(objective: Objective, outcome: Outcome) -> tuple[float, ...] | None:
    """Return the goals of a setting; None where it breaks a constraint or one is undefined."""
    try:
        is_feasible = objective.score(outcome.metrics).violation <= 0.0
        return objective.goals(outcome.metrics) if is_feasible else None
    except InputError:
        return None


def _by_query(goals: Objective, outcome: Outcome) -> ByQuery:
    """Return the goals that are known by query."""
    values = dict(outcome.per_query)
    values[COMPOSITE] = composite_values(outcome.per_query, goals.weights)
    return {name: values[name] for name in goals.pareto if name in values}


def _spread(
    goals: FloatArray, by_query: Sequence[ByQuery], names: Sequence[str], first: int
) -> list[int]:
    """Return up to ``MOST`` rows of the front, each as far as can be from those before it.

    ``goals`` has shape (settings, goals); ``first`` is the row that is there already.
    """
    rows = np.flatnonzero(is_efficient(goals)).tolist()
    span = goals[rows].max(axis=0) - goals[rows].min(axis=0)
    places = goals / np.where(span > 0.0, span, 1.0)
    kept = [first]
    left = [row for row in rows if row != first]
    while left and len(kept) <= MOST:
        apart = np.abs(places[left][:, None] - places[kept][None]).max(axis=2).min(axis=1)
        row = left.pop(int(apart.argmax()))
        if all(_is_told_apart(goals, by_query, names, row, other) for other in kept):
            kept.append(row)
    return kept[1:]


def _is_told_apart(
    goals: FloatArray, by_query: Sequence[ByQuery], names: Sequence[str], one: int, other: int
) -> bool:
    """Say whether two settings differ in a goal by more than a standard error of the difference."""
    for place, name in enumerate(names):
        error = 0.0
        if name in by_query[one] and name in by_query[other]:
            error = float(paired_errors(by_query[one][name], by_query[other][name]))
        difference = abs(goals[one, place] - goals[other, place])
        if difference > (0.0 if np.isnan(error) else error):
            return True
    return False
