"""What a study is made of, beside its header, and what of its trials each arm is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from tuner.backends import by_index
from tuner.core.errors import InputError
from tuner.core.space import SearchSpace
from tuner.core.study_record import StudyHeader
from tuner.core.trial import Params, Trial, best_trial, params_key
from tuner.study.arms import Arm, ArmsSee, Fixed, arm_seed
from tuner.study.index_shares import most_for, shared_out
from tuner.study.pareto import Goals, swept
from tuner.study.results import BASELINE_ARM
from tuner.study.rival import ByQuery
from tuner.study.scoring import Objective

# So few points a search may ask them all.
FEW_POINTS = 200


@dataclass(frozen=True, eq=False)
class StudySpec:
    """The parts of a study.

    Attributes:
        arms: those that search, and starting points; the header's baseline has an arm of its own.
        arms_see: whether an arm learns from its own trials or from all.
        by_query: with it trials race, see ``study.rival``.
        earlier: trials of other studies that every arm learns from, and that no budget pays.
        goals: with them the arms search for a front, see ``study.pareto``.
        most_indexes: at most so many different indexes are asked for, where the space has
            parameters of the index; those of the baseline and of starting points count. The
            arms share the others, see ``study.index_shares``.
        free: parameters that no arm suggests, since each answer tells what every value of them is
            worth; see ``evaluation.free``.
    """

    arms: Sequence[Arm]
    space: SearchSpace
    objective: Objective
    arms_see: ArmsSee = "own"
    by_query: ByQuery | None = None
    earlier: Sequence[Trial] = ()
    goals: Goals | None = None
    most_indexes: int | None = None
    free: tuple[str, ...] = ()

    def arms_of(self, header: StudyHeader) -> list[Arm]:
        """Return all arms, with the one of the header's baseline, where it has one, first.

        Each has its share of the indexes, see ``study.index_shares``.

        Raises:
            InputError: two arms have one name, or a grid's named levels need too many indexes.
        """
        names = [arm.name for arm in self.arms]
        for name in names:
            if names.count(name) > 1 or (name == BASELINE_ARM and header.baseline is not None):
                raise InputError(f"two arms are called {name!r}; give each a name of its own")
        given = [] if header.baseline is None else [self._baseline_arm(header.baseline)]
        return shared_out([*given, *self.arms], self.space, self.most_indexes)

    def _baseline_arm(self, baseline: Params) -> Arm:
        try:
            params = self.space.canonical(baseline)
        except InputError:
            # A baseline may lie outside the space, or set what the space leaves alone.
            params = dict(baseline)
        return Arm(BASELINE_ARM, Fixed((params,)), 1)

    def unseen(self, ahead: int, arms: int) -> int:
        """Return how many of the latest trials that it is shown an arm takes for under way.

        ``ahead`` of them where arms see all trials. Of its own, an arm's part of them, ``arms``
        being how many the study began with: what an arm suggests then depends neither on whose
        turns lie between its own, nor on how many trials others, or itself, are given later.
        """
        return ahead if self.arms_see == "all" else ahead // max(arms, 1)

    def shown(self, arm: Arm, trials: Sequence[Trial]) -> list[Trial]:
        """Return the trials of the study that an arm learns from, in the order of asking."""
        if isinstance(arm.backend, Fixed):
            return [trial for trial in trials if trial.arm == arm.name]
        if self.arms_see == "all":
            return [trial for trial in trials if self._is_point(trial)]
        return self._own_and_given(arm, trials)

    def history(self, arm: Arm, trials: Sequence[Trial], *, unseen: int, seed: int) -> list[Trial]:
        """Return what an arm learns from, the last ``unseen`` of the study's as under way.

        ``seed`` is the study's.
        """
        shown = self.shown(arm, trials)
        if isinstance(arm.backend, Fixed):
            return shown
        known = max(len(shown) - unseen, 0)
        shown[known:] = [trial.reopened() for trial in shown[known:]]
        history = self._as_asked([*self.earlier, *shown])
        if self.goals is None:
            return history
        return swept(history, self.goals, seed=arm_seed(seed, arm.name))

    def suggest(
        self, arm: Arm, history: Sequence[Trial], trials: Sequence[Trial], *, seed: int
    ) -> list[Params]:
        """Return what an arm suggests next: one point, or none where it has nothing left.

        A point of a searching arm has no free parameters, and is in canonical form. ``trials`` are
        all, of whatever arm; ``seed`` is the study's.
        """
        own_seed = arm_seed(seed, arm.name)
        if isinstance(arm.backend, Fixed):
            return arm.backend.suggest(self.space, history, count=1, seed=own_seed)
        space = self.asked_space
        if space is None:  # One answer tells everything.
            return [] if any(trial.profile is not None for trial in trials) else [{}]
        suggested = by_index.suggest(
            arm.backend,
            space,
            history,
            asked=[self._asked(trial) for trial in trials],
            most=most_for(arm, self.space, trials, self.most_indexes),
            count=1,
            seed=own_seed,
        )
        return [space.canonical(params) for params in suggested]

    @cached_property
    def asked_space(self) -> SearchSpace | None:
        """Return the space of what is asked for; None where every parameter is free."""
        return self.space.without(self.free)

    def _asked(self, trial: Trial) -> Params:
        return {name: value for name, value in trial.params.items() if name not in self.free}

    def _as_asked(self, history: Sequence[Trial]) -> list[Trial]:
        """Return trials without the free parameters: of those that then are equal, the best.

        What a free parameter was given is no worse than its best value, so the best of several
        comes nearest to what an answer with these params would be worth. No more than that is known
        of what was given whole: where so few points can be asked that a search may ask them all, it
        keeps none from being asked.
        """
        if not self.free:
            return list(history)
        if self._has_few_points:
            history = [trial for trial in history if not self._is_whole(trial)]
        alike: dict[str, list[Trial]] = {}
        for trial in history:
            params = self._asked(trial)
            alike.setdefault(params_key(params), []).append(replace(trial, params=params))
        return [best_trial(trials) or trials[0] for trials in alike.values()]

    @cached_property
    def _has_few_points(self) -> bool:
        parameters = () if self.asked_space is None else self.asked_space.parameters.values()
        counts = [parameter.count for parameter in parameters]
        return None not in counts and prod(count or 1 for count in counts) <= FEW_POINTS

    def _is_whole(self, trial: Trial) -> bool:
        """Say whether a trial was asked with its free parameters."""
        return trial.profile is None and any(name in trial.params for name in self.free)

    def _own_and_given(self, arm: Arm, trials: Sequence[Trial]) -> list[Trial]:
        """Return an arm's own trials and, as they are for all, starting points.

        Those among the earlier trials are known already.
        """
        given = {one.name for one in self.arms if isinstance(one.backend, Fixed)}
        return [
            trial
            for trial in trials
            if trial.arm == arm.name
            or (trial.arm in given and params_key(trial.params) not in self._known)
        ]

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(params_key(trial.params) for trial in self.earlier)

    def _is_point(self, trial: Trial) -> bool:
        # Suggested params are points of the space; a baseline need not be one, and backends can
        # only learn from points.
        return trial.arm != BASELINE_ARM or self.space.contains(trial.params)
