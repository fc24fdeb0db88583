"""Searching where some parameters need another index: few indexes, and much asked of each.

Two levels. Outside, a Gaussian process suggests settings of the index, each worth what its best
trial is. Inside, the backend suggests what to ask of an index that exists; it learns from the
trials of all indexes. Measured in experiments/search_quality (index_cost).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tuner.backends.base import Backend, knows_index, learns
from tuner.backends.index_levels import Levels, moved
from tuner.backends.points import Point, point_of, points_of, random_unseen, scored_trials
from tuner.backends.random import Random
from tuner.core.space import SearchSpace
from tuner.core.trial import Params, Trial, TrialState

# Where nothing is learnt, each index is asked so many trials, then the next.
TRIALS_AN_INDEX = 6
# Where results count, a search with k indexes asks k + 2 trials before it asks for another: 7
# indexes in 40 trials, 14 in 120. The better the one found, the more tuning it is worth.
MORE_THAN_INDEXES = 2
# So many trials an index gets before it can be left, and before it shares them with the best.
LEAST_TRIALS = 3
# The first settings of the index are spread evenly, the others suggested by the model.
SPREAD_INDEXES = 4
# So often a point that breaks a constraint with the index, or is taken, is asked for again.
ATTEMPTS = 20


def suggest(
    backend: Backend,
    space: SearchSpace,
    history: Sequence[Trial],
    *,
    asked: Sequence[Params] | None = None,
    most: int | None = None,
    count: int,
    seed: int,
) -> list[Params]:
    """Return what the backend suggests, with few different indexes where ``space.index`` has names.

    Args:
        asked: the params of all trials of the study, of whatever arm, in the order of asking: their
            indexes exist. None: those of the history.
        most: at most so many different indexes in the study, those of ``asked`` included.

    As a backend's own, an answer depends on the arguments alone, and points of the history are not
    suggested again. ``[]`` where nothing is left to ask of the indexes that there may be.
    """
    if not space.index:
        return backend.suggest(space, history, count=count, seed=seed)
    levels = Levels.of(space)
    params = [trial.params for trial in history] if asked is None else list(asked)
    built = {levels.key(one): levels.setting(one) for one in params}
    if knows_index(backend):
        return _allowed(backend, levels, history, built, most, count=count, seed=seed)
    if not levels.has_inner:
        room = count if most is None else min(count, max(most - len(built), 0))
        return backend.suggest(space, history, count=room, seed=seed)
    told = list(history)
    picks: list[Params] = []
    while len(picks) < count:
        search = _Search(backend, levels, told, dict(built), most, seed)
        pick = search.next()
        if pick is None:
            break
        picks.append(pick)
        built[levels.key(pick)] = levels.setting(pick)
        told.append(Trial(len(told), "", pick))
    return picks


def most_asked(backend: Backend, space: SearchSpace, trials: int) -> int:
    """Return how many indexes a search of so many trials asks at most, whatever it finds.

    One a trial where an index may soon have been asked all there is, or may refuse most.

    >>> from tuner.core.space import Integer, Real
    >>> space = SearchSpace({"chunk": Integer(1, 99), "weight": Real(0, 1)}).with_index(["chunk"])
    >>> most_asked(Random(40), space, 40)  # 7 times 6 trials, or 8 where it begins in between
    8
    """
    outer = Levels.of(space).outer.parameters if space.index else space.parameters
    counts = [
        parameter.count or math.inf
        for name, parameter in space.parameters.items()
        if name not in outer and not parameter.when
    ]
    if knows_index(backend) or space.constraints or math.prod(counts) < 2 * trials:
        return trials
    if not learns(backend):
        return min(trials, math.ceil(trials / TRIALS_AN_INDEX) + 1)
    indexes, asked = 0, 0
    while asked < trials:
        indexes += 1
        asked += indexes + MORE_THAN_INDEXES
    return indexes


def _allowed(
    backend: Backend,
    levels: Levels,
    history: Sequence[Trial],
    built: dict[Point, Params | None],
    most: int | None,
    *,
    count: int,
    seed: int,
) -> list[Params]:
    """Return suggestions over the whole space, less those of indexes beyond ``most``."""
    wanted = count
    while True:  # Until it has no more.
        found = backend.suggest(levels.space, history, count=wanted, seed=seed)
        known = set(built)
        picks: list[Params] = []
        for params in found:
            key = levels.key(params)
            if key in known or most is None or len(known) < most:
                known.add(key)
                picks.append(params)
        if len(picks) >= count or len(found) < wanted:
            return picks[:count]
        wanted *= 4


@dataclass(frozen=True)
class _Index:
    """An index of the history and its trials, in the order of asking."""

    setting: Params
    trials: list[Trial]

    @property
    def best(self) -> Trial | None:
        return max(scored_trials(self.trials), key=_rank, default=None)

    @property
    def rank(self) -> tuple[float, float]:
        return (-math.inf, -math.inf) if self.best is None else _rank(self.best)

    @property
    def has_failed(self) -> bool:
        told = [trial for trial in self.trials if trial.is_told]
        return len(told) >= LEAST_TRIALS - 1 and self.best is None

    @property
    def gain(self) -> float:
        """Return by how much the best trial is better than the first, which another index lent."""
        scored = scored_trials(self.trials)
        return max((_worth(t) for t in scored), default=0.0) - _worth(scored[0]) if scored else 0.0


class _Search:
    """One suggestion: which index, and what is asked of it."""

    def __init__(
        self,
        backend: Backend,
        levels: Levels,
        history: list[Trial],
        built: dict[Point, Params | None],
        most: int | None,
        seed: int,
    ) -> None:
        self.backend = backend
        self.levels = levels
        self.history = history
        self.built = built
        self.has_room = most is None or len(built) < most
        self.seed = seed
        self.taken = points_of(history)
        self.learns = learns(backend)
        # Every index of the history, and those of the study.
        self.seen: dict[Point, _Index] = {}
        for trial in history:
            setting = levels.setting(trial.params)
            if setting is not None:
                index = self.seen.setdefault(point_of(setting), _Index(setting, []))
                index.trials.append(trial)
        self.own = {key: index for key, index in self.seen.items() if key in built}

    def next(self) -> Params | None:
        """Return the next point; None where there is none."""
        if self._is_new_due() and (params := self._of_another_index()) is not None:
            return params
        for key in self._order():
            params = self._of(self.own[key].setting)
            if params is not None:
                return params
        return self._of_another_index()

    def _is_new_due(self) -> bool:
        if not self.own:
            return True
        if not self.learns:
            return len(self.history) % TRIALS_AN_INDEX == 0
        newest = list(self.own.values())[-1].trials[0]
        since = next(i for i, trial in enumerate(reversed(self.history), 1) if trial is newest)
        return since >= len(self.own) + MORE_THAN_INDEXES

    def _order(self) -> list[Point]:
        """Return the study's indexes, the one to ask first."""
        keys = list(self.own)
        if not keys:
            return []
        if not self.learns:
            # One after the other, each for a while.
            last = len(self.history) // TRIALS_AN_INDEX % len(keys)
            return keys[last:] + keys[:last]
        ranked = sorted(keys, key=lambda key: self.own[key].rank, reverse=True)
        leader, newest = ranked[0], keys[-1]
        is_new = len(self.own[newest].trials) < LEAST_TRIALS
        if self._is_behind(newest, leader) or not (is_new or len(self.history) % 2):
            return ranked
        return [newest, *[key for key in ranked if key != newest]]

    def _is_behind(self, newest: Point, leader: Point) -> bool:
        """Say whether to leave an index: what searching gained on any other would not do here.

        Its first trial is the best one's query settings, so that the two are compared on the same.
        Worths are means over the same queries, so this is the mean of their paired differences;
        waiting until that is clear by their error brought nothing (experiments/search_quality).
        """
        mine, best = self.own[newest].best, self.own[leader].best
        if self.own[newest].has_failed:
            return True
        gains = [
            index.gain
            for key, index in list(self.own.items())[1:]
            if key != newest and len(scored_trials(index.trials)) >= LEAST_TRIALS
        ]
        is_known = len(scored_trials(self.own[newest].trials)) >= LEAST_TRIALS
        if newest == leader or mine is None or best is None or not is_known or not gains:
            return False
        (mine_kept, mine_worth), (best_kept, best_worth) = _rank(mine), _rank(best)
        return mine_kept < best_kept or mine_worth + max(gains) < best_worth

    def _of_another_index(self) -> Params | None:
        """Return the first point of an index that this history has not asked."""
        for key, setting in self.built.items():
            if key not in self.seen and setting is not None:
                params = self._first_of(setting)
                if params is not None:
                    return params
        if not self.has_room:
            return None
        known = [_summary(number, index) for number, index in enumerate(self.seen.values())]
        for _ in range(ATTEMPTS):
            found = self._outer().suggest(self.levels.outer, known, count=1, seed=self.seed)
            if not found:
                break
            params = self._first_of(found[0])
            if params is not None:
                return params
            known.append(Trial(len(known), "", found[0], TrialState.FAILED))
        return random_unseen(self.levels.space, self.taken, self._rng())

    def _outer(self) -> Backend:
        if not self.learns:
            return Random(len(self.history) + 1)
        from tuner.backends.gp import Gp  # Its libraries take a second to load.

        return Gp(len(self.history) + 1, initial=SPREAD_INDEXES)

    def _first_of(self, setting: Params) -> Params | None:
        """Ask a new index what was best of others; without any, what the backend suggests."""
        scored = scored_trials(self.history) if self.learns else []
        inner = self.levels.inside(setting)
        if scored and inner is not None:
            params = self.levels.joined(setting, moved(max(scored, key=_rank).params, inner))
            if self._is_free(params):
                return params
        return self._of(setting)

    def _of(self, setting: Params) -> Params | None:
        """Return what the backend suggests to ask of an index; None where all was asked."""
        inner = self.levels.inside(setting)
        if inner is None:
            params = self.levels.joined(setting, {})
            return params if self._is_free(params) else None
        key = point_of(setting)
        mine = self.seen[key].trials if key in self.seen else []
        # What is learnt from others is taken for suggested: where that leaves nothing, without it.
        for view in (self.history, mine):
            known = [replace(trial, params=moved(trial.params, inner)) for trial in view]
            for _ in range(ATTEMPTS):
                found = self.backend.suggest(inner, known, count=1, seed=self.seed)
                if not found:
                    break
                params = self.levels.joined(setting, found[0])
                if self._is_free(params):
                    return params
                known.append(Trial(len(known), "", found[0], TrialState.FAILED))
        return None

    def _is_free(self, params: Params) -> bool:
        return point_of(params) not in self.taken and self.levels.space.satisfies(params)

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng([self.seed, len(self.history)])


def _worth(trial: Trial) -> float:
    return float(trial.worth or 0.0)


def _rank(trial: Trial) -> tuple[float, float]:
    return (-max(trial.violation, 0.0), _worth(trial))


def _summary(number: int, index: _Index) -> Trial:
    """Return an index as one trial of the outer search."""
    if index.best is not None:
        return replace(index.best, number=number, params=index.setting, goals=())
    is_under_way = any(not trial.is_told for trial in index.trials)
    state = TrialState.RUNNING if is_under_way else TrialState.FAILED
    return Trial(number, "", index.setting, state)
