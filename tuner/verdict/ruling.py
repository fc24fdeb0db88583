"""What was decided, as plain data: an outcome, its reason, and the figures that are told."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Literal

from tuner.core.json_text import read_as

HELD_OUT = "held-out queries"
BY_PEOPLE = " that people graded"
# Of three digits.
SHOWN_FROM = 0.0005


def in_queries(number: int, kind: str = "queries") -> str:
    """Return a number with its noun: ``1 query``, ``2,568 held-out queries``."""
    return f"{number:,} {kind.replace('queries', 'query') if number == 1 else kind}"


def confidence(alpha: float) -> str:
    """Return the level of an interval, as exact as its error rate asks for.

    >>> confidence(0.05), confidence(0.012555), confidence(0.00008)
    ('95 %', '98.7 %', '99.992 %')
    """
    digits = max(0, 1 - math.floor(math.log10(100.0 * alpha)))
    return f"{round(100.0 * (1.0 - alpha), digits):g} %"


def signed(value: float) -> str:
    """Return a number with its sign; what is 0 to three digits has none."""
    return "0.000" if abs(value) < SHOWN_FROM else f"{value:+.3f}"


def interval(figures: Mapping[str, Any]) -> str:
    """Return an interval with its level."""
    level = confidence(figures["alpha"])
    return f"{level} interval {signed(figures['low'])} to {signed(figures['high'])}"


Outcome = Literal["deploy", "keep the baseline", "not enough queries"]
# Of a reason: numbers and names, ready for JSON.
Figures = Mapping[str, Any]


@dataclass(frozen=True)
class Names:
    """What the two are called, and the queries; ``same`` is said where both are the same."""

    winner: str = "the winner"
    baseline: str = "the baseline"
    queries: str = HELD_OUT
    same: str = "no configuration did better than it"


THE_WINNER = Names()
# What all queries together test where each part of them meets a winner of its own.
THE_WAY = Names("this way of choosing", queries="queries")


class Reason(StrEnum):
    """Why an outcome is what it is; ``tuner.verdict.words`` has a sentence for each."""

    SAME = "the same parameters"
    INFEASIBLE = "nothing meets the constraints"
    BETTER = "better"
    CHEAPER = "as good and cheaper"
    WORSE = "worse"
    ALIKE = "no query differs"
    TOO_SMALL = "a gain that would matter is ruled out"
    PROBABLY_TOO_SMALL = "a gain that would matter would have shown"
    RAIL_BROKEN = "a guard-rail is broken"
    RAIL_IN_DOUBT = "a guard-rail is in doubt"
    CHANCE = "may be chance"
    LOSS_OPEN = "cheaper, but a loss is not ruled out"
    RARE_LOSSES = "cheaper, but rare losses may be absent"
    LOSS_UNKNOWN = "cheaper, but whether there is a loss cannot be said"
    NO_VALUES = "too few queries with values"
    ALIKE_ON_FEW = "without spread on too few queries"
    TOO_FEW = "too few queries to hold any out"


class Outlook(StrEnum):
    """What more queries would do where there are not enough."""

    MORE = "so many more would tell"
    HARDLY = "more would hardly tell"
    NEVER = "no number would tell"
    FEW_DECIDE = "a few large differences decide"
    TOO_FEW_TO_SAY = "too few to say how many"
    NO_SIGN = "nothing speaks for a change"
    LOSS_SEEN = "the loss is there"
    SPLIT = "enough, if half are held out"


@dataclass(frozen=True)
class Prospect:
    """What more queries would do.

    Attributes:
        outlook: which of the cases it is.
        to_show: the difference in question.
        total: how many held-out queries show it with 80 % power.
        more: how many are missing of these.
        to_label: how many queries to label for that, where only a share of all is held out.
        share: that share.
    """

    outlook: Outlook
    to_show: float | None = None
    total: int | None = None
    more: int | None = None
    to_label: int | None = None
    share: float | None = None


@dataclass(frozen=True)
class Ruling:
    """An outcome, why, the figures of that, and what more queries would do."""

    outcome: Outcome
    reason: Reason
    figures: Figures = field(default_factory=dict)
    prospect: Prospect | None = None

    @property
    def more_queries(self) -> int | None:
        """Return how many more held-out queries would tell; None where that is no advice."""
        return None if self.prospect is None else self.prospect.more

    @property
    def difference_to_show(self) -> float | None:
        """Return what so many would show."""
        if self.prospect is None or self.prospect.more is None:
            return None
        return self.prospect.to_show


class CaveatKind(StrEnum):
    """Why a verdict's figures promise less than they seem to."""

    COSTS_MORE = "costs more than it is worth"
    NO_SPREAD = "every query differs by the same amount"
    WORSE_TYPES = "worse on some types"
    LEFT_OUT = "queries left out"
    FEW_DIFFER = "few queries differ"
    FEW_QUERIES = "few queries"
    MOVES = "the system differs from itself"
    LOOKED_AT = "looked at before"
    UNREADABLE = "looks that cannot be read"
    FAILED_TRIALS = "trials failed"
    PARTS = "the way of choosing was tested"
    BY_JUDGE = "a judge's labels count"
    AS_ONE = "queries that count as one"
    RARE_LOSSES = "rare losses may be absent"


@dataclass(frozen=True)
class Caveat:
    """One of them with its figures."""

    kind: CaveatKind
    figures: Figures = field(default_factory=dict)


@dataclass(frozen=True)
class Told:
    """A verdict in words.

    Attributes:
        sentence: all of it.
        finding: the outcome's reason alone, a sentence with a capital and a full stop.
        advice: what to do about it, "" where that is plain.
        caveats: what weakens it, a sentence or two each.
    """

    sentence: str
    finding: str
    advice: str
    caveats: tuple[str, ...]


@dataclass(frozen=True)
class Decided:
    """What there is to say of every verdict, with held-out queries or without.

    Both kinds add their figures to it: a base, since callers ask either for the same.

    Attributes:
        ruling: the outcome, its reason and figures, and what more queries would do.
        told: the same in words, with the caveats.
        caveats: why the figures promise less than they seem to.
    """

    ruling: Ruling
    told: Told
    caveats: tuple[Caveat, ...]

    @property
    def outcome(self) -> Outcome:
        """Return ``"deploy"``, ``"keep the baseline"`` or ``"not enough queries"``."""
        return self.ruling.outcome

    @property
    def sentence(self) -> str:
        """Return it for people, with the difference and its interval."""
        return self.told.sentence

    @property
    def more_queries(self) -> int | None:
        """Return how many more would show ``difference_to_show`` with 80 % power."""
        return self.ruling.more_queries

    @property
    def difference_to_show(self) -> float | None:
        """Return what ``more_queries`` would show."""
        return self.ruling.difference_to_show

    def to_record(self) -> dict[str, Any]:
        """Return the verdict as a JSON-ready mapping."""
        parts = asdict(self)
        for name in ("ruling", "told", "caveats"):
            del parts[name]
        return to_record(self.ruling, self.told, self.caveats, parts)


def to_record(
    ruling: Ruling, told: Told, caveats: Sequence[Caveat], parts: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a verdict as a JSON-ready mapping: what was decided and said, then its ``parts``."""
    return {
        "outcome": ruling.outcome,
        "sentence": told.sentence,
        "reason": ruling.reason.value,
        "figures": dict(ruling.figures),
        "finding": told.finding,
        "advice": told.advice,
        "caveats": [
            {"kind": caveat.kind.value, "text": text, "figures": dict(caveat.figures)}
            for caveat, text in zip(caveats, told.caveats, strict=True)
        ],
        "outlook": None if ruling.prospect is None else ruling.prospect.outlook.value,
        "prospect": None if ruling.prospect is None else asdict(ruling.prospect),
        "more_queries": ruling.more_queries,
        "difference_to_show": ruling.difference_to_show,
        **parts,
    }


def read_record(record: Mapping[str, Any]) -> tuple[Ruling, tuple[Caveat, ...]]:
    """Return what a record of ``to_record`` was made of: the ruling, and the caveats.

    Raises:
        ValueError: a part that is missing, of another type or null, by its name; or a reason, an
            outlook or a caveat that this version does not know.
    """
    for name in ("figures", "prospect", "caveats"):  # the first records had the words alone
        if name not in record:
            raise ValueError(f"{name} is missing")
    ruling: Ruling = read_as(Ruling, record)
    caveats: tuple[Caveat, ...] = read_as(tuple[Caveat, ...], record["caveats"], "caveats")
    for figures in (ruling.figures, *(caveat.figures for caveat in caveats)):
        undefined = [name for name, value in figures.items() if value is None]
        if undefined:
            raise ValueError(f"figures.{undefined[0]} is None")
    return ruling, caveats
