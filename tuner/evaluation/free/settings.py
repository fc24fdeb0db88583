"""Which values free parameters can have, and what of an objective an answer decides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tuner.core.rankings import FloatArray
from tuner.core.space import Categorical, SearchSpace
from tuner.core.trial import Params, Scalar
from tuner.evaluation.objective import Objective, paid_metric
from tuner.evaluation.system_metrics import is_measured_time, tell_of_index
from tuner.retrieval.free import FreeKnobs


def prefix_values(space: SearchSpace, name: str) -> list[Scalar]:
    """Return the values of a parameter that counts, ascending."""
    parameter = space.parameters[name]
    return sorted(parameter.levels(parameter.count or 1))  # type: ignore[type-var]  # numbers


def range_of(space: SearchSpace, name: str) -> tuple[float, float]:
    """Return the lowest and the highest value of a parameter whose values are numbers."""
    parameter = space.parameters[name]
    if isinstance(parameter, Categorical):
        values = [float(choice) for choice in parameter.choices]  # type: ignore[arg-type]
        return min(values), max(values)
    return float(parameter.low), float(parameter.high)


def told_by(space: SearchSpace, free: FreeKnobs) -> Params:
    """Return the values of the free parameters whose answer tells of all others."""
    cut_off = {
        name: space.parameters[name].canonical(range_of(space, name)[0]) for name in free.cutoffs
    }
    return {
        **{name: prefix_values(space, name)[-1] for name in free.prefixes},
        **cut_off,
        **{name: space.parameters[name].at(0.5) for name in free.weights},
    }


def cutoff_values(
    space: SearchSpace, name: str, scores: FloatArray, most: int = 101
) -> list[Scalar]:
    """Return values of a cut-off, ascending, that tell what scores apart: up to ``most`` of them.

    They lie in the middles between neighbouring scores, of which each is met by as many documents;
    where the parameter has a number of values, they are all of these.
    """
    parameter = space.parameters[name]
    if parameter.count is not None and parameter.count <= most:
        return sorted(parameter.levels(parameter.count))  # type: ignore[type-var]  # numbers
    low, high = range_of(space, name)
    inside = np.unique(scores[(scores > low) & (scores < high)])
    edges = np.concatenate([[low], inside, [high]])
    middles = (edges[:-1] + edges[1:]) / 2
    places = np.linspace(0, len(middles) - 1, min(most, len(middles))).astype(np.int64)
    values = [parameter.nearest(value) for value in middles[places].tolist()]  # type: ignore[union-attr]
    return list(dict.fromkeys(values))


def decided_by_answer(objective: Objective) -> Objective:
    """Return an objective without what is the same for every free setting of one trial.

    Such as the size of its index; and without what a clock tells, which is measured afterwards.
    Of goals none is left: see ``goals_decided``.
    """
    return replace(
        objective,
        price={
            name: price
            for name, price in objective.price.items()
            if _is_decided(paid_metric(name)[0])
        },
        constraints={name: b for name, b in objective.constraints.items() if _is_decided(name)},
        pareto=(),
    )


def goals_decided(objective: Objective) -> Objective | None:
    """Return the same objective with the goals that an answer decides; None below two of them."""
    goals = tuple(filter(_is_decided, objective.pareto))
    return replace(decided_by_answer(objective), pareto=goals) if len(goals) > 1 else None


def _is_decided(name: str) -> bool:
    return not is_measured_time(name) and not tell_of_index([name])
