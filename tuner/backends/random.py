"""Random search: evenly spread draws, the honest baseline that every other backend has to beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tuner.backends.base import check_budget
from tuner.backends.points import spread_unseen
from tuner.core.space import SearchSpace
from tuner.core.trial import Params, Trial


@dataclass(frozen=True)
class Random:
    """Draws points that are evenly spread on the parameters' scales, never one twice.

    Each alone is uniform; together they leave smaller gaps than independent draws do. How many are
    asked for has no part in which they are.
    """

    budget: int
    learns: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_budget(self.budget)

    def suggest(
        self, space: SearchSpace, history: Sequence[Trial], *, count: int, seed: int
    ) -> list[Params]:
        """Return up to ``count`` new points; fewer only where the space runs out."""
        return spread_unseen(space, history, count=count, seed=seed)
