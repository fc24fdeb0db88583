"""Grid search: an even grid of few points first, then closer and closer levels around the best."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from tuner.backends.base import check_budget
from tuner.backends.index_levels import Levels as IndexLevels
from tuner.backends.index_levels import by_setting, moved
from tuner.backends.points import Point, point_of, points_of, random_unseen, scored_trials
from tuner.core.checks import check_whole
from tuner.core.errors import InputError
from tuner.core.shown import counted
from tuner.core.space import Categorical, SearchSpace
from tuner.core.trial import Params, Scalar, Trial

Levels = Mapping[str, int | Sequence[object]]

# Around the best, a parameter is tried at two values in its turn: in a part of its range that is
# half as wide each time that all had theirs, and as wide as at first again after so many times.
TRIED, TIMES = 2, 4
# Where nothing is left around the best, a grid of so many times the points of the last one follows.
FINER = 4
# All combinations of choices and named levels are listed up to here.
MOST_LISTED = 50_000


@dataclass(frozen=True)
class Grid:
    """Walks an even grid of at most ``coarse`` points, then closer levels around the best.

    Levels lie in the middles of equal parts of a range; with ``edges``, from end to end. Choices
    come before second levels of numbers: one that is left out would never be seen. ``levels`` fixes
    those of some parameters: ``{"max_hops": [1, 2, 3], "top_k": 4}``; nothing between them is
    tried. The order is a seeded shuffle. After the grid, the parameters take turns: two values
    around the best point's, all else as it is there, ever closer to it. How many trials there are
    has no part in which they are.

    Where nothing lies between levels (choices, and named levels), the grid is all combinations.
    Where the space has parameters of the index, it is the finest even one of at most ``budget``
    points, and all points of one index stand together.
    """

    budget: int
    knows_index: ClassVar[bool] = True
    levels: Levels = field(default_factory=dict, kw_only=True)
    edges: bool = field(default=False, kw_only=True)
    coarse: int = field(default=12, kw_only=True)
    _grids: dict[tuple[str, tuple[str, ...], int, int], list[Params]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        check_budget(self.budget)
        check_whole("coarse", self.coarse, least=1)
        edges: object = self.edges  # From a configuration it can be anything.
        if not isinstance(edges, bool):
            raise InputError(f"must be true or false, got {edges!r}", key=("edges",))
        levels: object = self.levels
        if not isinstance(levels, Mapping):
            message = f"must map parameters to levels, as {{top_k: 4}}, got {levels!r}"
            raise InputError(message, key=("levels",))

    @property
    def learns(self) -> bool:
        """Say whether it looks around the best of its first grid."""
        return self.coarse < self.budget

    def suggest(
        self, space: SearchSpace, history: Sequence[Trial], *, count: int, seed: int
    ) -> list[Params]:
        """Return the next ``count`` points that the history lacks.

        Raises:
            InputError: levels that are invalid, or more of them than the budget allows.
        """
        taken = points_of(history)
        best = max(scored_trials(history), key=_rank, default=None)
        centre = None if best is None else best.params
        picks: list[Params] = []
        while len(picks) < count:
            walk = self._walk(space, taken, centre, seed)
            params = next((params for params in walk if point_of(params) not in taken), None)
            if params is None:
                break
            taken.add(point_of(params))
            picks.append(dict(params))
        return picks

    def described(self, space: SearchSpace) -> str:
        """Return the levels of the points that come first, for people."""
        points = space.grid(self._first_size(space), self.levels, edges=self.edges)
        values = {
            name: dict.fromkeys(_shown(params[name]) for params in points if name in params)
            for name in space.names
        }
        levels = "; ".join(f"{name} {', '.join(found)}" for name, found in values.items() if found)
        then = "" if self._is_whole(space) else "; then closer levels around the best"
        return f"{counted(len(points), 'point', 'points')}: {levels}{then}"

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
                settings = levels.outer.grid(budget, named, edges=self.edges)
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

    def _walk(
        self, space: SearchSpace, taken: set[Point], best: Params | None, seed: int
    ) -> Iterator[Params]:
        """Yield points in the order in which they are asked, those that were asked among them."""
        size = self._first_size(space)
        last = self._grid(space, size, seed)
        yield from last
        if self._is_whole(space):
            return
        if best is not None:
            others = len(taken.difference(map(point_of, last)))
            yield from self._around(space, best, others, seed)
        while len(finer := self._grid(space, size := size * FINER, seed)) > len(last):
            yield from finer
            last = finer
        # What no grid has is asked too, unless levels say what may be.
        rng = np.random.default_rng([seed, len(taken)])
        params = None if self.levels else random_unseen(space, taken, rng)
        if params is not None:
            yield params

    def _around(self, space: SearchSpace, best: Params, asked: int, seed: int) -> Iterator[Params]:
        """Yield points that differ from the best in one parameter; ``asked`` were so before."""
        levels = self._only(space)
        names = [name for name in best if space.parameters[name].count != 1]
        names = [names[place] for place in np.random.default_rng(seed).permutation(len(names))]
        middles = {name: values[len(values) // 2] for name, values in levels.items()}
        begin = asked // TRIED
        for turn in range(begin, begin + TIMES * len(names)):
            name = names[turn % len(names)]
            width = 0.5 ** (1 + turn // len(names) % TIMES)
            values = levels.get(name) or self._beside(space, name, best[name], width)
            for place in np.random.default_rng([seed, turn]).permutation(len(values)):
                params = moved({**middles, **best, name: values[place]}, space)
                if space.satisfies(params):
                    yield params

    def _beside(
        self, space: SearchSpace, name: str, value: Scalar, width: float
    ) -> Sequence[Scalar]:
        """Return the middles of both halves of a part of the range, in whose middle a value lies.

        The part lies within the range; with edges it may end beyond, and the end is a value.
        """
        parameter = space.parameters[name]
        place = parameter.position(value)
        if not self.edges:
            place = min(max(place, width / 2), 1 - width / 2)
        return [parameter.at(place - width / 4), parameter.at(place + width / 4)]

    def _only(self, space: SearchSpace) -> dict[str, Sequence[Scalar]]:
        """Return, by parameter, all values that it may have: choices, and named levels."""
        choices = {n: p.choices for n, p in space.parameters.items() if isinstance(p, Categorical)}
        return {**choices, **space.named_levels(self.levels, edges=self.edges)}

    def _is_whole(self, space: SearchSpace) -> bool:
        """Say whether the first grid is all there is."""
        is_listed = len(self._only(space)) == len(space.names)
        return bool(space.index) or self.coarse >= self.budget or is_listed

    def _first_size(self, space: SearchSpace) -> int:
        """Return how many points the first grid may have.

        Raises:
            InputError: levels that are invalid, or more of them than the budget allows.
        """
        space.grid(self.budget, self.levels, edges=self.edges)  # Refuses.
        if space.index:
            return self.budget
        values = self._only(space)
        number = math.prod(map(len, values.values()))
        if len(values) == len(space.names):
            return number if number <= MOST_LISTED else self.budget
        named = space.named_levels(self.levels, edges=self.edges)
        return max(self.coarse, math.prod(map(len, named.values())))

    def _grid(self, space: SearchSpace, size: int, seed: int) -> list[Params]:
        key = (space.fingerprint, space.index, size, seed)
        if key not in self._grids:
            points = space.grid(size, self.levels, edges=self.edges)
            order = np.random.default_rng(seed).permutation(len(points))
            shuffled = [points[index] for index in order]
            self._grids[key] = by_setting(space, shuffled) if space.index else shuffled
        return self._grids[key]


def _rank(trial: Trial) -> tuple[float, float]:
    return (-max(trial.violation, 0.0), float(trial.worth or 0.0))


def _shown(value: Scalar) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
