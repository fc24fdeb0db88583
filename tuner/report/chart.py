"""A figure as data: what is drawn, where, and in which role; the views make pictures of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

# What a series stands for. It decides colour, symbol and dash, so that colour is never alone.
Role = Literal[
    "arm", "trials", "stopped", "failed", "chosen", "baseline", "front", "bar", "interval", "doubt"
]
Form = Literal["points", "line", "steps", "bars", "intervals"]
Value = str | int | float | bool | None


@dataclass(frozen=True)
class Axis:
    """One axis. Positions are plain numbers; ``ticks`` names some of them, as on a log scale.

    ``zero`` draws a line at 0, on the other side of which the sign changes.
    """

    title: str
    ticks: tuple[tuple[float, str], ...] = ()
    span: tuple[float, float] | None = None
    zero: bool = False


@dataclass(frozen=True)
class Series:
    """Points that belong together.

    Attributes:
        x, y: positions on the axes.
        texts: what to show of each point when it is pointed at; empty for none.
        low, high: where the intervals of ``form="intervals"`` begin and end, along x, and the
            ranges of ``form="bars"``.
        place: which of the arms it is, by which arms differ in colour and symbol.
    """

    name: str
    form: Form
    role: Role
    x: tuple[float, ...]
    y: tuple[float, ...]
    texts: tuple[str, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    place: int = 0


@dataclass(frozen=True)
class Cells:
    """A grid of values: ``x_edges`` has a number more than ``values`` has columns; None is empty.

    ``title`` says what a value is.
    """

    title: str
    x_edges: tuple[float, ...]
    y_edges: tuple[float, ...]
    values: tuple[tuple[float | None, ...], ...]
    texts: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Numbers:
    """The figures of a chart as they were measured, for a CSV file."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]

    @property
    def table(self) -> tuple[tuple[Value, ...], ...]:
        """Return the rows below their heads; undefined figures are None."""
        return (self.columns, *self.rows)


@dataclass(frozen=True)
class Chart:
    """One figure.

    Attributes:
        name: of its files; letters, digits, ``-`` and ``_``.
        caption: what to see in it, in a sentence or two.
        description: the same for those who cannot see it.
        height: in lines of text, about.
    """

    name: str
    title: str
    caption: str
    description: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    numbers: Numbers
    cells: Cells | None = None
    height: int = 22
    has_legend: bool = True


def named_rows(names: Sequence[str]) -> Axis:
    """Return an axis of one row a name, from below, with half a row of room at both ends."""
    ticks = tuple((float(row), name) for row, name in enumerate(names))
    return Axis("", ticks, span=(-0.7, len(names) - 0.3))


def spread(count: int, limit: int) -> Sequence[int]:
    """Return at most ``limit`` places out of ``count``, evenly spread, both ends included.

    >>> spread(5, 3), spread(2, 3)
    ([0, 2, 4], [0, 1])
    """
    if count <= limit:
        return list(range(count))
    return [round(place * (count - 1) / (limit - 1)) for place in range(limit)]
