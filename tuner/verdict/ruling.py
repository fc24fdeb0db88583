"""What was decided, as plain data: an outcome, its reason, and the figures that are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from tuner.verdict.figures import HELD_OUT

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


@dataclass(frozen=True)
class Caveat:
    """One of them with its figures."""

    kind: CaveatKind
    figures: Figures = field(default_factory=dict)
