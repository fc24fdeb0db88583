"""What a search backend is: one pure function from history to the next parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tuner.core.checks import check_whole
from tuner.core.space import SearchSpace
from tuner.core.trial import Params, Trial

KINDS = {
    "gp": "tuner.backends.gp:Gp",
    "grid": "tuner.backends.grid:Grid",
    "random": "tuner.backends.random:Random",
    "tpe": "tuner.backends.tpe:Tpe",
}
"""Each kind of search by its name in a configuration."""


class Backend(Protocol):
    """Suggests parameters. Constructed as ``Kind(budget=trials, **options)``, cheaply.

    ``budget`` is the number of trials that the arm may spend in total (at least 1). A study can be
    given more later, and is then the same as one that was long from the start where suggestions do
    not depend on it; where they do, as in a grid, those of the new budget follow. A kind whose
    suggestions do not depend on results may say so by ``learns: ClassVar[bool] = False``; no
    suggestion of it then waits for a result.

    Where ``space.index`` has names, a kind is asked through ``tuner.backends.by_index``, for what
    to ask of one index at a time. One that orders its points by index itself says so by
    ``knows_index: ClassVar[bool] = True`` and is asked for points of the whole space.

    What a kind elsewhere can build on: ``check_budget``, and for points that were not suggested yet
    ``pick_unseen`` and ``spread_unseen`` of ``tuner.backends.points``.
    """

    def suggest(
        self, space: SearchSpace, history: Sequence[Trial], *, count: int, seed: int
    ) -> list[Params]:
        """Return up to ``count`` distinct new points of ``space``.

        ``[]`` means that no further point was found: the space is exhausted, or its constraints
        leave so little that tens of thousands of draws do not hit it.

        The same arguments give the same answer, always, from any instance; another ``seed`` gives
        other points, or the same in another order. Where nothing is drawn at random, the seed can
        choose where to begin, or in which order parameters are taken. ``history`` holds the
        arm's trials in the order of asking: finished, shared, raced out, failed and still running.
        Higher ``worth`` is better. No point of the history is suggested again while unseen ones
        remain.
        """
        ...


def learns(backend: Backend) -> bool:
    """Say whether a backend's suggestions depend on results; one that does not say so does."""
    return bool(getattr(backend, "learns", True))


def knows_index(backend: Backend) -> bool:
    """Say whether a backend orders its points by index itself."""
    return bool(getattr(backend, "knows_index", False))


def check_budget(budget: object) -> None:
    """Refuse a budget that is no number of trials; configurations call it ``trials``."""
    check_whole("trials", budget, least=1)
