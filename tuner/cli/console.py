"""Where tables go: as wide as the terminal, or as wide as they need in a log or a pipe."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from rich.console import Console, RenderableType
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from tuner.core.shown import shown

# Wider than any table, so that nothing is cut where nobody can widen the window.
_LOG_WIDTH = 100_000


@dataclass(frozen=True)
class Tables:
    """Prints tables and lines; brackets and control characters in their texts do nothing."""

    console: Console

    def print(self, what: RenderableType = "") -> None:
        """Print a table, or a line."""
        drawn = _cleaned(self.console.render(Text(what) if isinstance(what, str) else what))
        self.console.print(
            Segments(drawn if self.console.is_terminal else _unpadded(drawn)), end=""
        )


def console() -> Tables:
    """Return a console on standard output that never cuts a table in a log."""
    terminal = plain_console()
    return Tables(terminal if terminal.is_terminal else plain_console(width=_LOG_WIDTH))


def new_table(*columns: str, words: Collection[str] = ("",), no_wrap: bool = False) -> Table:
    """Begin a table without lines: columns of ``words`` flush left, those of figures right."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in columns:
        table.add_column(
            name,
            justify="left" if name in words else "right",
            overflow="ellipsis" if no_wrap else "fold",
            no_wrap=no_wrap,
        )
    return table


def plain_console(*, width: int | None = None) -> Console:
    """Return a console to which square brackets and colons are letters like any other."""
    return Console(width=width, markup=False, emoji=False, highlight=False)


def _unpadded(drawn: Iterable[Segment]) -> Iterator[Segment]:
    """Yield the same without the blanks that fill a line up to its table's width."""
    text = "".join(segment.text for segment in drawn if not segment.control)
    yield Segment("\n".join(line.rstrip(" ") for line in text.split("\n")))


def _cleaned(drawn: Iterable[Segment]) -> Iterator[Segment]:
    for text, style, control in drawn:
        yield Segment(text if control else shown(text), style, control)
