"""A space in two levels: settings of the index outside, and what is asked of one index inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tuner.backends.points import Point, point_of
from tuner.core.errors import InputError
from tuner.core.space import SearchSpace
from tuner.core.space.parameters import Parameter
from tuner.core.space.problems import is_same
from tuner.core.space.reading import parse_constraints
from tuner.core.trial import Params


@dataclass(frozen=True)
class Levels:
    """Splits the points of a space into the setting of an index and the rest.

    Attributes:
        space: the whole space.
        outer: the parameters of the index, and those that say which of them are active.
    """

    space: SearchSpace
    outer: SearchSpace

    @classmethod
    def of(cls, space: SearchSpace) -> Levels:
        """Split a space whose ``index`` is not empty."""
        names = set(space.index)
        for name in reversed(space.activation_order):
            if name in names:
                names |= space.parameters[name].when.keys()
        outer = {name: space.parameters[name] for name in space.names if name in names}
        return cls(space, _part(space, outer))

    @property
    def has_inner(self) -> bool:
        """Say whether anything but the index is searched."""
        return len(self.outer.names) < len(self.space.names)

    def setting(self, params: Mapping[str, object]) -> Params | None:
        """Return the index's part of params; None where it lies outside of the space."""
        try:
            given = {name: params[name] for name in self.outer.names if name in params}
            return self.outer.canonical(given)
        except InputError:
            return None

    def key(self, params: Params) -> Point:
        """Return what points of one index have in common, whether they are of the space or not."""
        setting = self.setting(params)
        known = {name: params[name] for name in self.outer.names if name in params}
        return point_of(known if setting is None else setting)

    def inside(self, setting: Params) -> SearchSpace | None:
        """Return the space of what can be asked of one index; None where that is one point.

        Conditions on the index are decided in it. Constraints that mention the index are left out:
        the whole space has to be asked.
        """
        active: dict[str, Parameter] = {}
        for name in self.space.activation_order:
            parameter = self.space.parameters[name]
            known = {other: v for other, v in parameter.when.items() if other in self.outer.names}
            is_met = all(
                other in setting and any(is_same(setting[other], value) for value in values)
                for other, values in known.items()
            )
            rest = {other: v for other, v in parameter.when.items() if other not in known}
            if name not in self.outer.names and is_met and rest.keys() <= active.keys():
                active[name] = replace(parameter, when=rest)
        if not active:
            return None
        return _part(
            self.space, {name: active[name] for name in self.space.names if name in active}
        )

    def joined(self, setting: Params, query: Params) -> Params:
        """Return the point of the whole space that both parts make."""
        return self.space.canonical({**setting, **query})


def moved(params: Params, inner: SearchSpace) -> Params:
    """Return params as a point of another index's space; the middle for what they do not say."""
    found: Params = {}
    for name in inner.activation_order:
        parameter = inner.parameters[name]
        if inner.is_active(parameter, found):
            found[name] = params[name] if name in params else parameter.at(0.5)
    return {name: found[name] for name in inner.names if name in found}


def by_setting(space: SearchSpace, points: Sequence[Params]) -> list[Params]:
    """Return points with all of one index together, in the order of the first of each."""
    levels = Levels.of(space)
    groups: dict[Point, list[Params]] = {}
    for params in points:
        groups.setdefault(levels.key(params), []).append(params)
    return [params for group in groups.values() for params in group]


def _part(space: SearchSpace, parameters: Mapping[str, Parameter]) -> SearchSpace:
    """Return a space of some parameters, with the constraints that mention no other."""
    constraints = parse_constraints(space.parameters, space.constraints)
    kept = [constraint.text for constraint in constraints if constraint.names <= parameters.keys()]
    return SearchSpace(parameters, tuple(kept))
