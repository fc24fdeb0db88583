"""A figure as data: what is drawn, where, and in which role; the views make pictures of it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

# What a series stands for. It decides colour, symbol and dash, so that colour is never alone.
Role = Literal[
    "arm", "trials", "stopped", "failed", "chosen", "baseline", "front", "bar", "interval", "doubt"
]
Form = Literal["points", "line", "steps", "bars", "intervals", "band"]
Value = str | int | float | bool | None


@dataclass(frozen=True)
class Axis:
    """One axis. Positions are plain numbers; ``ticks`` names some of them, as on a log scale.

    ``zero`` draws a line at 0, on the other side of which the sign changes. ``of`` is the field of
    a trial that it shows, by its key in ``study_data``; empty for what is no field.
    """

    title: str
    ticks: tuple[tuple[float, str], ...] = ()
    span: tuple[float, float] | None = None
    zero: bool = False
    of: str = ""


@dataclass(frozen=True)
class Series:
    """Points that belong together.

    Attributes:
        x, y: positions on the axes.
        texts: what to show of each point when it is pointed at; empty for none.
        trials: the number of the trial that each point is, so that figures can follow each other;
            of these the page itself knows what to show.
        low, high: where the intervals of ``form="intervals"`` begin and end, along x, and the
            ranges of ``form="bars"``; along y those of ``form="band"``.
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
    trials: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        name: str,
        form: Form,
        role: Role,
        points: Iterable[tuple[float, float, str]],
        *,
        place: int = 0,
    ) -> Series:
        """Return the series of points, each with x, y and its text."""
        x, y, texts = zip(*points, strict=True)
        return cls(name, form, role, x, y, texts, place=place)

    @classmethod
    def of_trials(
        cls,
        name: str,
        form: Form,
        role: Role,
        points: Iterable[tuple[float, float, int]],
        *,
        place: int = 0,
    ) -> Series:
        """Return the series of trials, each with x, y and its number."""
        x, y, trials = zip(*points, strict=True)
        return cls(name, form, role, x, y, place=place, trials=trials)


@dataclass(frozen=True)
class Cells:
    """A grid of values: ``x_edges`` has a number more than ``values`` has columns; None is empty.

    ``title`` says what a value is, ``trials`` of which trial each is.
    """

    title: str
    x_edges: tuple[float, ...]
    y_edges: tuple[float, ...]
    values: tuple[tuple[float | None, ...], ...]
    trials: tuple[tuple[int | None, ...], ...]


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


Row = tuple[str, float, float, float, str]
"""One row of a chart: its label, a value, the ends of its interval, and what is said of it."""


def chart_of_rows(
    name: str,
    title: str,
    caption: str,
    axis: Axis,
    rows: Sequence[Row],
    numbers: Numbers,
    *,
    description: str,
    form: Form = "intervals",
) -> Chart:
    """Return a chart of a value with its interval a row, the first at the top."""
    labels, values, low, high, texts = zip(*rows[::-1], strict=True)
    y = tuple(map(float, range(len(rows))))
    role: Role = "bar" if form == "bars" else "interval"
    series = Series(axis.title, form, role, values, y, texts, low, high)
    height = 5 + 2 * len(rows)
    chart = Chart(name, title, caption, description, axis, named_rows(labels), (series,), numbers)
    return replace(chart, height=height, has_legend=False)


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


# How figures look: the palettes, and what plotly is told of every figure.
LOOK: Mapping[str, Any] = json.loads(
    Path(__file__).with_name("page").joinpath("look.json").read_text(encoding="utf-8")
)
# Eight colours that most people with a colour deficiency tell apart (Okabe and Ito 2008), darkened
# for white paper and lightened for a dark page. Symbols and dashes change with them.
LIGHT: Mapping[str, str] = LOOK["light"]
DARK: Mapping[str, str] = LOOK["dark"]

ARMS = 8
# The same shapes in the words of plotly, of matplotlib, and as a character for a legend in text.
_SYMBOLS = (
    ("circle", "o", "●"),
    ("square", "s", "■"),
    ("triangle-up", "^", "▲"),
    ("triangle-down", "v", "▼"),
    ("pentagon", "p", "⬟"),
    ("hexagon", "h", "⬢"),
    ("cross", "P", "✚"),
    ("x", "X", "✖"),
)
_DASHES = (
    ("solid", "-"),
    ("dash", "--"),
    ("dot", ":"),
    ("dashdot", "-."),
    ("longdash", (0, (8, 3))),
    ("longdashdot", (0, (8, 3, 1, 3))),
    ("solid", "-"),
    ("dash", "--"),
)
_MARKS = {
    "chosen": ("star", "*", "★"),
    "baseline": ("diamond", "D", "◆"),
    "failed": ("x-thin-open", "x", "✕"),
}
# The kinds of search whose place is theirs in every report.
_OWN_PLACES = ("grid", "tpe", "gp", "random", "earlier")


def arm_places(kinds: Mapping[str, str]) -> dict[str, int]:
    """Return each arm's place among colours and symbols, by its name and kind and not by order.

    So that an arm looks the same in the reports of all studies. A second arm of a kind, or a kind
    from elsewhere, takes a place by its name, and the next one that is free.

    >>> arm_places({"tpe": "tpe", "grid": "grid"}), arm_places({"tpe": "tpe"})
    ({'grid': 0, 'tpe': 1}, {'tpe': 1})
    """
    places: dict[str, int] = {}
    for name in sorted(
        kinds, key=lambda one: (kinds[one] not in _OWN_PLACES, one != kinds[one], one)
    ):
        taken = set(places.values())
        kind = kinds[name]
        if kind in _OWN_PLACES and _OWN_PLACES.index(kind) not in taken:
            places[name] = _OWN_PLACES.index(kind)
            continue
        others = ARMS - len(_OWN_PLACES)
        first = len(_OWN_PLACES) + zlib.crc32(name.encode()) % others
        order = [len(_OWN_PLACES) + (first + n) % others for n in range(others)]
        free = [place for place in (*order, *range(len(_OWN_PLACES))) if place not in taken]
        places[name] = free[0] if free else first
    return places


def color_name(role: Role, place: int) -> str:
    """Return which colour of the palettes a series has."""
    if role in ("arm", "stopped"):
        return f"arm{place % ARMS}"
    return "muted" if role == "trials" else role


def symbol(role: Role, place: int) -> tuple[str, str, str]:
    """Return the shape of a series' points: for plotly, for matplotlib, and as a character."""
    if role == "stopped":
        name, drawn, character = _SYMBOLS[place % ARMS]
        return f"{name}-open", drawn, {"●": "○", "■": "□", "▲": "△", "▼": "▽"}.get(character, "○")
    return _MARKS.get(role, _SYMBOLS[place % ARMS if role == "arm" else 0])


def dash(role: Role, place: int) -> tuple[str, object]:
    """Return how a series' line is broken: for plotly and for matplotlib."""
    if role == "baseline":
        return ("dot", ":")
    return _DASHES[place % ARMS] if role == "arm" else _DASHES[0]
