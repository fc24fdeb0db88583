"""What a policy by features chooses from: settings, and what each gains on each query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tuner.core.rankings import FloatArray, IntArray
from tuner.core.trial import Params

# So many levels of a line stand for all where settings are compared one by one.
LEVELS = 11


@dataclass(frozen=True, eq=False)
class Menu:
    """Settings with their gains over the first, which is the fixed winner.

    Attributes:
        settings: complete parameters.
        gains: shape (settings, queries), objective less the winner's; the first row is 0.
        lines: parameter -> places of settings that differ from the winner in it alone, by value;
            the winner is among them.
    """

    settings: tuple[Params, ...]
    gains: FloatArray
    lines: Mapping[str, IntArray]

    def values(self, parameter: str) -> FloatArray:
        """Return the values of a line, ascending."""
        return np.array([float(self.settings[place][parameter]) for place in self.lines[parameter]])

    @property
    def few(self) -> IntArray:
        """Return places that stand for all: some levels of each line, and what is on none.

        The winner comes first.
        """
        on_lines = {int(place) for places in self.lines.values() for place in places}
        kept = [0]
        for places in self.lines.values():
            at = np.linspace(0, len(places) - 1, min(LEVELS, len(places))).round().astype(int)
            kept += [int(place) for place in places[at]]
        kept += [place for place in range(len(self.settings)) if place not in on_lines]
        return np.array(list(dict.fromkeys(kept)), dtype=np.int64)

    @classmethod
    def of(
        cls,
        winner: Params,
        by_query: FloatArray,
        lines: Mapping[str, tuple[Sequence[Params], FloatArray]],
        others: Sequence[tuple[Params, FloatArray]] = (),
    ) -> Menu:
        """Put a menu together.

        Args:
            winner: its parameters, and ``by_query``, shape (queries,), its objective.
            by_query: see there.
            lines: parameter -> settings by value, and their objective, shape (settings, queries).
            others: further settings with theirs, shape (queries,).
        """
        settings, rows = [winner], [np.zeros_like(by_query)]
        places: dict[str, IntArray] = {}
        for name, (on_line, objective) in lines.items():
            value = float(winner[name])  # type: ignore[arg-type]  # a number, as a line's are
            at = [len(settings) + place for place in range(len(on_line))]
            values = [float(params[name]) for params in on_line]  # type: ignore[arg-type]
            settings += on_line
            rows += list(objective - by_query)
            kept = [(v, place) for v, place in zip(values, at, strict=True) if v != value]
            places[name] = np.array([p for _, p in sorted([*kept, (value, 0)])], dtype=np.int64)
        for params, objective in others:
            settings.append(params)
            rows.append(objective - by_query)
        return cls(tuple(settings), np.stack(rows), places)
