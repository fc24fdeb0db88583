"""What a page is made of: sections of paragraphs, tables, charts and queries; no markup here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tuner.core.run_files import REPORT_DATA_DIR
from tuner.core.shown import shortened
from tuner.core.trial import Scalar
from tuner.report.chart import Chart

MISSING = "–"
LONGEST_VALUE = 60


@dataclass(frozen=True)
class Text:
    """A paragraph; ``is_note`` marks small print."""

    kind: ClassVar[str] = "text"
    text: str
    is_note: bool = False


@dataclass(frozen=True)
class Items:
    """A list of sentences."""

    kind: ClassVar[str] = "items"
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Command:
    """Lines to copy into a shell."""

    kind: ClassVar[str] = "command"
    text: str


@dataclass(frozen=True)
class Table:
    """A table; columns whose names are in ``numeric`` are aligned right, ``strong`` rows are bold.

    The first cell of a row is its heading.
    """

    kind: ClassVar[str] = "table"
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[str] = frozenset()
    strong: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Charts:
    """Charts side by side where there is room; ``name`` is that of their picture."""

    kind: ClassVar[str] = "charts"
    name: str
    charts: tuple[Chart, ...]
    is_small: bool = False
    legend: tuple[tuple[str, str, int], ...] = ()


@dataclass(frozen=True)
class Shown:
    """One retrieved passage in a list."""

    id: str
    title: str
    is_relevant: bool


@dataclass(frozen=True)
class QueryCard:
    """One query with what both configurations retrieved for it."""

    query: str
    facts: str
    change: str
    winner: tuple[Shown, ...]
    baseline: tuple[Shown, ...]
    winner_found: str
    baseline_found: str


@dataclass(frozen=True)
class Queries:
    """Queries that changed most."""

    kind: ClassVar[str] = "queries"
    title: str
    cards: tuple[QueryCard, ...]


@dataclass(frozen=True)
class Trials:
    """All trials, to look through: the page's script makes it of the study's data."""

    kind: ClassVar[str] = "trials"


@dataclass(frozen=True)
class AllQueries:
    """The place of the list of all queries, which the page's script fills."""

    kind: ClassVar[str] = "all_queries"
    title: str
    text: str


Block = Text | Items | Command | Table | Charts | Queries | Trials | AllQueries


@dataclass(frozen=True)
class Section:
    """One part of the page; ``id`` is its anchor, ``lead`` says what it answers."""

    id: str
    title: str
    lead: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Headline:
    """The verdict: an outcome with its mark, the sentence, and what weakens it.

    ``goals`` say what became of each goal of a study that sought several, and why this point.
    """

    tone: str  # "deploy", "mixed", "keep", "open" or "none"
    mark: str
    outcome: str
    sentence: str
    next_step: str = ""
    caveat: str = ""
    facts: tuple[tuple[str, str, str], ...] = ()
    goals: tuple[str, ...] = ()


@dataclass(frozen=True)
class Page:
    """The whole report; ``study`` is what its script knows of the study, see ``study_data``.

    ``queries`` is what it knows of the queries, see ``query_data``; more of them is in the folder
    ``data_folder`` beside the page.
    """

    title: str
    subtitle: str
    headline: Headline | None
    sections: tuple[Section, ...]
    footer: str = ""
    charts_folder: str = "figures"
    data_folder: str = REPORT_DATA_DIR
    study: Mapping[str, Any] = field(default_factory=dict)
    queries: Mapping[str, Any] = field(default_factory=dict)

    @property
    def groups(self) -> tuple[Charts, ...]:
        """Return all groups of charts, in their order."""
        blocks = (block for section in self.sections for block in section.blocks)
        return tuple(block for block in blocks if isinstance(block, Charts))

    @property
    def has_script(self) -> bool:
        """Say whether anything on the page needs a script."""
        return bool(self.groups or self.study or self.queries)


def shown(value: Scalar, like: float | None = None) -> str:
    """Write a number to about four digits, anything else as it is; None as a dash.

    With ``like`` it has as many decimals as that number has.
    """
    if value is None or value != value:
        return MISSING
    if isinstance(value, bool) or not isinstance(value, float):
        return str(value)
    size = abs(value if like is None or like != like else like)
    return f"{value:,.{_decimals(size)}f}"


def _decimals(size: float) -> int:
    bounds = ((1000.0, 0), (10.0, 1), (1.0 + 1e-9, 2))
    return next((decimals for bound, decimals in bounds if size >= bound), 4)


def signed(value: float | None, like: float | None = None) -> str:
    """Write a difference with its sign, and as many decimals as ``like`` has.

    >>> signed(-0.01234), signed(0.4, like=570.0), signed(0.0)
    ('−0.0123', '+0.4', '0')
    """
    if value is None or value != value:
        return MISSING
    text = shown(abs(value), like)
    if not text.strip("0."):
        return "0"
    return f"{'−' if value < 0 else '+'}{text}"


def percent(value: float, base: float) -> str:
    """Write by how much a value is above or below another, which is not 0.

    >>> percent(1032.0, 570.0), percent(4.0, 5.0), percent(573.0, 572.9)
    ('+81 %', '−20 %', '+0 %')
    """
    share = 100 * (value - base) / base
    return f"{'−' if share < 0 else '+'}{abs(share):.0f} %"


def shown_param(value: Scalar) -> str:
    """Write a parameter's value: floats to four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def shown_params(params: Mapping[str, Scalar]) -> str:
    """Write parameters on one line, long values cut."""
    texts = ((name, shown_param(value)) for name, value in params.items())
    return ", ".join(f"{name} {shortened(text, LONGEST_VALUE)}" for name, text in texts)
