"""Random search: the honest baseline that every other backend has to beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tuner.backends.base import check_budget
from tuner.backends.points import point_of, points_of, random_unseen
from tuner.core.space import SearchSpace
from tuner.core.trial import Params, Trial


@dataclass(frozen=True)
class Random:
    """Draws each point on its own, uniform on the parameters' scales, never one twice.

    The n-th trial has its own random stream, so that a suggestion costs the same however long the
    history is.
    """

    budget: int
    learns: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_budget(self.budget)

    def suggest(
        self, space: SearchSpace, history: Sequence[Trial], *, count: int, seed: int
    ) -> list[Params]:
        """Return up to ``count`` new points; fewer only where the space runs out."""
        taken = points_of(history)
        picks: list[Params] = []
        for position in range(len(history), len(history) + count):
            params = random_unseen(space, taken, np.random.default_rng([seed, position]))
            if params is None:
                break
            taken.add(point_of(params))
            picks.append(params)
        return picks
