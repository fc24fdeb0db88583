"""Tree-structured Parzen estimator search, by Optuna's sampler.

The sampler reads a study whose storage is the arm's history, so that nothing is replayed: the
same history gives the same suggestion, from any instance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial, TrialState, create_trial

from tuner.backends.base import check_budget
from tuner.backends.points import Point, pick_unseen, point_of, scored_trials, spread_unseen
from tuner.core.checks import check_whole
from tuner.core.logs import adopt
from tuner.core.space import Categorical, Integer, Parameter, Real, SearchSpace
from tuner.core.trial import Params, Scalar, Trial

# Repeats and infeasible points are drawn again so often, then a random unseen one is taken.
ATTEMPTS = 20
# Beyond it, the probability of one step is lost to rounding: the sampler would compare zeros.
MOST_STEPS = 10**9

Distributions = dict[str, BaseDistribution]


@dataclass(frozen=True)
class Tpe:
    """Samples where good trials are dense and bad ones are not.

    The first ``initial`` scored trials are spread evenly. Each suggestion is the best of
    ``candidates`` drawn from the density of the good trials. Trials under way count as bad, so that
    workers look at different places. Failed trials are not learnt from; those that break the
    objective's constraints rank below all others, by how much they break them. Trials with several
    ``goals`` are good where few others are better in all of them (Optuna's multi-objective TPE).
    """

    budget: int
    initial: int = field(default=10, kw_only=True)
    candidates: int = field(default=24, kw_only=True)
    _warm: dict[int, tuple[SearchSpace, Trial, bool, FrozenTrial]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        check_budget(self.budget)
        check_whole("initial", self.initial, least=1)
        check_whole("candidates", self.candidates, least=1)

    def suggest(
        self, space: SearchSpace, history: Sequence[Trial], *, count: int, seed: int
    ) -> list[Params]:
        """Return up to ``count`` new points; fewer only where the space runs out."""
        if len(scored_trials(history)) < self.initial:
            return spread_unseen(space, history, count=count, seed=seed)
        rng = np.random.default_rng([seed, len(history)])
        sampling = _Sampling(space, self._frozen(space, history), self._sampler(rng))

        def sampled(taken: set[Point], picks: list[Params]) -> Params | None:
            for params in picks[-1:]:
                sampling.add_running(params)
            return sampling.unseen(taken)

        return pick_unseen(space, history, rng, sampled, count=count)

    def _sampler(self, rng: np.random.Generator) -> optuna.samplers.TPESampler:
        # Every option is given: their defaults changed between Optuna's versions. The start-up is
        # ours, and so are conditions and constraints between parameters.
        return optuna.samplers.TPESampler(
            n_startup_trials=0,
            n_ei_candidates=self.candidates,
            seed=int(rng.integers(2**31)),
            multivariate=True,
            group=False,
            constant_liar=True,
        )

    def _frozen(self, space: SearchSpace, history: Sequence[Trial]) -> list[FrozenTrial]:
        """Return the history in Optuna's form; unchanged trials keep theirs from the last call."""
        distributions = _distributions(space)
        scored = {id(trial) for trial in scored_trials(history)}
        frozen: list[FrozenTrial] = []
        for index, trial in enumerate(history):
            is_scored = id(trial) in scored
            known = self._warm.get(index)
            if (
                known is None
                or known[0] is not space
                or known[1] is not trial
                or known[2] is not is_scored
            ):
                one = _frozen_trial(trial, index, space, distributions, is_scored=is_scored)
                known = (space, trial, is_scored, one)
                self._warm[index] = known
            frozen.append(known[3])
        return frozen


class _History(optuna.storages.InMemoryStorage):
    """A storage whose trials are given and never written to.

    Adding the trials to a study one by one would cost three times as much as sampling from them.
    """

    def __init__(self, trials: list[FrozenTrial]) -> None:
        super().__init__()
        self.trials = trials

    def get_all_trials(
        self,
        study_id: int,  # noqa: ARG002 - there is one study
        deepcopy: bool = True,  # noqa: ARG002 - the sampler only reads
        states: Any = None,
    ) -> list[FrozenTrial]:
        return [trial for trial in self.trials if states is None or trial.state in states]

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        """Forget what the sampler notes on the point being sampled: it may be drawn again."""


class _Sampling:
    """Draws points from the history, each group of parameters that are active together at once."""

    def __init__(
        self,
        space: SearchSpace,
        trials: list[FrozenTrial],
        sampler: optuna.samplers.TPESampler,
    ) -> None:
        self.space = space
        self.trials = trials
        self.sampler = sampler
        self.distributions = _distributions(space)
        self.groups = _groups(space)
        level = optuna.logging.get_verbosity()
        adopt()
        optuna.logging.set_verbosity(optuna.logging.WARNING)  # It announces every new study.
        try:
            self.study = optuna.create_study(
                storage=_History(trials),
                sampler=sampler,
                directions=["maximize"] * _goal_count(trials),
            )
        finally:
            optuna.logging.set_verbosity(level)

    def unseen(self, taken: set[Point]) -> Params | None:
        """Draw until the point is feasible and not taken; None after 20 attempts."""
        for _ in range(ATTEMPTS):
            params = self.draw()
            if point_of(params) not in taken and self.space.satisfies(params):
                return params
        return None

    def draw(self) -> Params:
        """Draw one point, whether it is feasible or not."""
        current = create_trial(state=TrialState.RUNNING)
        current.number = len(self.trials)
        params: Params = {}
        for names in self.groups:
            if not self.space.is_active(self.space.parameters[names[0]], params):
                continue
            group = {n: self.distributions[n] for n in names if n in self.distributions}
            # A density may underflow: the logarithm of 0 is what it should be.
            with np.errstate(divide="ignore"):
                drawn = self.sampler.sample_relative(self.study, current, group)
            for name in names:
                parameter = self.space.parameters[name]
                if name in drawn:
                    params[name] = _from_optuna(parameter, drawn[name])
                else:
                    params[name] = parameter.at(0.5)  # It has one value only.
        return self.space.canonical(params)

    def add_running(self, params: Params) -> None:
        trial = Trial(len(self.trials), "", params)
        number = len(self.trials)
        self.trials.append(
            _frozen_trial(trial, number, self.space, self.distributions, is_scored=False)
        )


def _groups(space: SearchSpace) -> list[list[str]]:
    """Split the parameters by their conditions, in an order in which those are decided first."""
    groups: dict[str, list[str]] = {}
    for name in space.activation_order:
        when = repr(sorted(space.parameters[name].when.items()))
        groups.setdefault(when, []).append(name)
    return list(groups.values())


def _distributions(space: SearchSpace) -> Distributions:
    return {
        name: _distribution(parameter)
        for name, parameter in space.parameters.items()
        if parameter.count != 1
    }


def _is_continuous(parameter: Real | Integer) -> bool:
    """Say whether Optuna draws from the whole range, and its draws are rounded afterwards."""
    if parameter.count is None or (parameter.scale == "log" and isinstance(parameter, Real)):
        return True
    # Optuna has no steps on a log scale.
    has_log_steps = parameter.scale == "log" and parameter.step != 1
    return has_log_steps or parameter.count > MOST_STEPS


def _distribution(parameter: Parameter) -> BaseDistribution:
    match parameter:
        case Categorical():
            return CategoricalDistribution(tuple(range(parameter.count)))
        case Real() | Integer() if _is_continuous(parameter):
            is_log = parameter.scale == "log"
            return FloatDistribution(float(parameter.low), float(parameter.high), log=is_log)
        case Integer(scale="log"):
            return IntDistribution(parameter.low, parameter.high, log=True)
        case _:
            return IntDistribution(0, (parameter.count or 1) - 1)


def _to_optuna(parameter: Parameter, value: Any) -> Any:
    match parameter:
        case Categorical():
            return parameter.index(value)
        case Real() | Integer() if _is_continuous(parameter):
            return float(value)
        case Integer(scale="log"):
            return value
        case _:
            return parameter.lattice_index(value)


def _from_optuna(parameter: Parameter, value: Any) -> Scalar:
    match parameter:
        case Categorical():
            return parameter.choices[int(value)]
        case Real() | Integer() if _is_continuous(parameter) or parameter.scale == "log":
            return parameter.nearest(value)
        case _:
            return parameter.lattice_value(value)


def _values(trial: Trial) -> list[float]:
    """Return a trial's goals where it has several, else its objective or the estimate of it."""
    return [float(goal) for goal in trial.goals] or [float(trial.worth or 0.0)]


def _goal_count(trials: list[FrozenTrial]) -> int:
    return max((len(trial.values) for trial in trials if trial.values is not None), default=1)


def _frozen_trial(
    trial: Trial,
    number: int,
    space: SearchSpace,
    distributions: Mapping[str, BaseDistribution],
    *,
    is_scored: bool,
) -> FrozenTrial:
    names = [name for name in trial.params if name in distributions]
    state = TrialState.COMPLETE if is_scored else TrialState.FAIL
    frozen = create_trial(
        state=state if trial.is_told else TrialState.RUNNING,
        values=_values(trial) if is_scored else None,
        params={name: _to_optuna(space.parameters[name], trial.params[name]) for name in names},
        distributions={name: distributions[name] for name in names},
        constraints={"violation": trial.violation} if trial.violation > 0 else None,
    )
    frozen.number = number
    return frozen
