"""Which values free parameters can have, and what of an objective an answer decides."""

from __future__ import annotations

from dataclasses import replace

from tuner.core.space import SearchSpace
from tuner.core.trial import Scalar
from tuner.evaluation.objective import Objective, paid_metric
from tuner.evaluation.system_metrics import is_measured_time, tell_of_index


def prefix_values(space: SearchSpace, name: str) -> list[Scalar]:
    """Return the values of a parameter that counts, ascending."""
    parameter = space.parameters[name]
    return sorted(parameter.levels(parameter.count or 1))  # type: ignore[type-var]  # numbers


def decided_by_answer(objective: Objective) -> Objective:
    """Return an objective without what is the same for every free setting of one trial.

    Such as the size of its index; and without what a clock tells, which is measured afterwards.
    """

    def is_decided(name: str) -> bool:
        return not is_measured_time(name) and not tell_of_index([name])

    return replace(
        objective,
        price={name: p for name, p in objective.price.items() if is_decided(paid_metric(name)[0])},
        constraints={name: b for name, b in objective.constraints.items() if is_decided(name)},
        pareto=(),
    )
