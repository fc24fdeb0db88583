"""Grid search: evenly spaced levels of every parameter, in a shuffled order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import ClassVar

import numpy as np

from tuner.backends.base import check_budget
from tuner.backends.index_levels import Levels as IndexLevels
from tuner.backends.index_levels import by_setting
from tuner.backends.points import point_of, points_of
from tuner.core.errors import InputError
from tuner.core.shown import counted
from tuner.core.space import SearchSpace
from tuner.core.trial import Params, Trial

Levels = Mapping[str, int | Sequence[object]]


@dataclass(frozen=True)
class Grid:
    """Walks the finest even grid of at most ``budget`` points.

    ``levels`` fixes the levels of some parameters: ``{"max_hops": [1, 2, 3], "top_k": 4}``. The
    order is a seeded shuffle, so that a grid that is stopped early has looked everywhere. Where
    the space has parameters of the index, all points of one index stand together.
    """

    budget: int
    learns: ClassVar[bool] = False
    knows_index: ClassVar[bool] = True
    levels: Levels = field(default_factory=dict, kw_only=True)
    _grids: dict[tuple[str, tuple[str, ...], int], list[Params]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        check_budget(self.budget)
        levels: object = self.levels  # From a configuration it can be anything.
        if not isinstance(levels, Mapping):
            message = f"must map parameters to levels, as {{top_k: 4}}, got {levels!r}"
            raise InputError(message, key=("levels",))

    def suggest(
        self, space: SearchSpace, history: Sequence[Trial], *, count: int, seed: int
    ) -> list[Params]:
        """Return the next ``count`` points of the grid that the history lacks.

        Raises:
            InputError: levels that are invalid, or more of them than the budget allows.
        """
        taken = points_of(history)
        unseen = (params for params in self._grid(space, seed) if point_of(params) not in taken)
        return [dict(params) for params in islice(unseen, count)]

    def within(self, space: SearchSpace, known: Sequence[Params], most: int) -> Grid:
        """Return a grid with at most ``most`` indexes beside the known ones.

        Where this one has more, the parameters of the index get fewer levels: as many as the finest
        even grid of theirs that has room. Where there is no room, all points are of known indexes.
        ``known`` are settings of the index, points of the space of its parameters.

        Raises:
            InputError: the named levels alone need more indexes.
        """
        levels = IndexLevels.of(space)
        seen = {point_of(setting) for setting in known}
        points = self.suggest(space, (), count=self.budget, seed=0)
        if len({levels.key(params) for params in points} - seen) <= most:
            return self
        if most < 1:
            return self._with_levels(levels, known) if known else self
        named = {n: wanted for n, wanted in self.levels.items() if n in levels.outer.names}
        for budget in range(most + len(seen), 0, -1):
            try:
                settings = levels.outer.grid(budget, named)
            except InputError:  # the named levels make more points
                break
            if len({point_of(setting) for setting in settings} - seen) <= most:
                return self._with_levels(levels, settings)
        raise InputError(
            f"the named levels need more than the {counted(most, 'new index', 'new indexes')} that "
            "index.budget leaves for this arm; name fewer levels of the index's parameters, or "
            "raise index.budget",
            key=("levels",),
        )

    def _with_levels(self, levels: IndexLevels, settings: Sequence[Params]) -> Grid:
        values = {
            # 1 and True are two values.
            name: {(type(s[name]), s[name]): s[name] for s in settings if name in s}
            for name in levels.outer.names
        }
        fixed = {name: list(found.values()) for name, found in values.items() if found}
        return replace(self, levels={**self.levels, **fixed})

    def _grid(self, space: SearchSpace, seed: int) -> list[Params]:
        key = (space.fingerprint, space.index, seed)
        if key not in self._grids:
            points = space.grid(self.budget, self.levels)
            order = np.random.default_rng(seed).permutation(len(points))
            shuffled = [points[index] for index in order]
            self._grids[key] = by_setting(space, shuffled) if space.index else shuffled
        return self._grids[key]
