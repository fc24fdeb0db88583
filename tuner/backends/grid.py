"""Grid search: evenly spaced levels of every parameter, in a shuffled order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar

import numpy as np

from tuner.backends.base import check_budget
from tuner.backends.index_levels import by_setting
from tuner.backends.points import point_of, points_of
from tuner.core.errors import InputError
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

    def _grid(self, space: SearchSpace, seed: int) -> list[Params]:
        key = (space.fingerprint, space.index, seed)
        if key not in self._grids:
            points = space.grid(self.budget, self.levels)
            order = np.random.default_rng(seed).permutation(len(points))
            shuffled = [points[index] for index in order]
            self._grids[key] = by_setting(space, shuffled) if space.index else shuffled
        return self._grids[key]
