"""What a study has spent, on what: queries, tokens and money."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal

from tuner.core.calls import AFTER_THE_SEARCH, READ_AGAIN, SPENT_ON, TRIALS
from tuner.core.ledger import NOTHING_ASKED, Asked
from tuner.core.money import priced, total
from tuner.core.shown import counted
from tuner.core.steps import duration


@dataclass(frozen=True)
class Cost:
    """What a system costs, in the user's currency.

    Attributes:
        per_query: for each query that is sent, whether it is answered or not.
        per_1000_tokens: for a thousand tokens of the contexts that are returned.
        per_index: for each index that is built, or that could not be; not for one of which the
            system itself tells what it cost.
    """

    per_query: float = 0.0
    per_1000_tokens: float = 0.0
    per_index: float = 0.0

    def of(self, asked: Asked) -> float:
        """Return the money for queries.

        >>> Cost(per_query=0.01, per_1000_tokens=0.5).of(Asked(sent=3, answered=2, tokens=4000.0))
        2.03
        """
        of_tokens = priced(self.per_1000_tokens, asked.tokens / 1000.0)
        return total([priced(self.per_query, asked.sent), of_tokens])


@dataclass(frozen=True)
class SpentOn:
    """What one part of a study took. ``money`` is None where no cost is known."""

    name: str
    queries: int
    tokens: float = 0.0
    money: float | None = None


@dataclass(frozen=True)
class SetAside:
    """What a limit had to leave when it ended a search, in queries or in money.

    ``verdict`` is what was set aside for the verdict, and ``trial`` what a further trial might have
    taken.
    """

    verdict: float
    trial: float


@dataclass(frozen=True)
class Spent:
    """What a study has spent so far, in all its sessions.

    Attributes:
        parts: by what on: baseline, search, held-out queries, verdict, probing, indexes; only those
            on which something was spent.
        kept: queries that were not sent, since their answers were kept; but for answers that the
            verdict, or the look for parameters without effect, only reads again.
        computed: settings of free parameters that were looked at beyond those that were asked.
        money: in all; None where no cost is known.
        limits: what may be spent: minutes, query_evaluations, money; only those that are limited.
        aside: of the limit that ended the search, where it is of queries or of money.
    """

    parts: tuple[SpentOn, ...] = ()
    kept: int = 0
    computed: int = 0
    money: float | None = None
    limits: Mapping[str, float] = field(default_factory=dict)
    aside: Mapping[str, SetAside] = field(default_factory=dict)

    @property
    def queries(self) -> int:
        """Return how many queries were sent in all."""
        return sum(part.queries for part in self.parts)

    @property
    def tokens(self) -> float:
        """Return the tokens of all contexts that were returned."""
        return sum(part.tokens for part in self.parts)

    def in_all(self, seconds: float | None = None) -> str:
        """Return what was spent in all, and of how much, for people; empty where nothing is known.

        ``seconds`` are those of all sessions; they are told where they are limited.

        >>> spent = Spent((SpentOn("search", 70, 35_000.0, 1.4),), money=1.4, limits={"money": 1.5})
        >>> spent.in_all()
        '70 queries, 35,000 tokens, money 1.40 of 1.50'
        """
        limits, told = self.limits, list[str]()
        if self.queries:
            most = limits.get("query_evaluations")
            of = f"{self.queries:,} of {most:,.0f}" if most is not None else f"{self.queries:,}"
            noun = "query" if self.queries == 1 and most is None else "queries"
            told.append(f"{of} {noun}")
        if self.tokens:
            told.append(f"{self.tokens:,.0f} tokens")
        if self.money is not None:
            most = limits.get("money")
            told.append(f"money {amount(self.money)}{_of(most, amount)}")
        if seconds is not None and "minutes" in limits:
            told.append(f"{duration(seconds)} of {duration(60.0 * limits['minutes'])}")
        return ", ".join(told)

    @property
    def by_part(self) -> str:
        """Return what was spent on what, for people; empty where nothing was.

        >>> Spent((SpentOn("baseline", 10), SpentOn("search", 30))).by_part
        'baseline 10, search 30'
        >>> Spent((SpentOn("search", 30, 0.0, 0.6), SpentOn("2 indexes", 0, 0.0, 3.0))).by_part
        'search 30 (0.60), 2 indexes (3.00)'
        """
        return ", ".join(_part(part) for part in self.parts)

    @property
    def saved(self) -> str:
        """Return what was not asked, since it was known, for people; empty where nothing was.

        >>> Spent(kept=4, computed=800).saved
        '4 queries not asked again, as their answers were kept; 800 settings computed, not asked'
        """
        told = []
        if self.kept:
            queries = counted(self.kept, "query", "queries")
            answers = "its answer was" if self.kept == 1 else "their answers were"
            told.append(f"{queries} not asked again, as {answers} kept")
        if self.computed:
            told.append(f"{counted(self.computed, 'setting', 'settings')} computed, not asked")
        return "; ".join(told)

    @property
    def unspent(self) -> str:
        """Return what a limit that ended the search has left, and why; empty where none did.

        >>> parts = (SpentOn("search", 80, 0.0, 8.0), SpentOn("held-out queries", 8, 0.0, 0.8))
        >>> aside = {"money": SetAside(verdict=1.5, trial=1.0)}
        >>> Spent(parts, money=8.8, limits={"money": 10}, aside=aside).unspent
        'money 1.20: of 1.50 set aside for the verdict it took 0.80, and a trial may take 1.00'
        """
        return "; ".join(self._unspent(name, aside) for name, aside in self.aside.items())

    def _unspent(self, name: str, aside: SetAside) -> str:
        after = [part for part in self.parts if part.name in AFTER_THE_SEARCH]
        if name == "money":
            left = f"money {amount(max(total([self.limits[name], -(self.money or 0.0)]), 0.0))}"
            took, write = total(part.money or 0.0 for part in after), amount
        else:
            left = f"{max(self.limits[name] - self.queries, 0.0):,.0f} queries"
            took, write = sum(part.queries for part in after), "{:,.0f}".format
        return (
            f"{left}: of {write(aside.verdict)} set aside for the verdict it took {write(took)}, "
            f"and a trial may take {write(aside.trial)}"
        )

    def to_metrics(self) -> dict[str, float]:
        """Return the figures by the names that trackers and scripts know them by."""
        money = {} if self.money is None else {"spent_money": self.money}
        by_part = {
            f"spent_on.{part.name.replace(' ', '_').replace('-', '_')}": part.queries
            for part in self.parts
            if part.queries
        }
        return {
            "spent_queries": self.queries,
            "spent_tokens": self.tokens,
            **money,
            **by_part,
            "kept_answers": self.kept,
            "computed_settings": self.computed,
        }


def amount(money: float) -> str:
    """Write an amount: two digits after the point, more where they would be 0.

    >>> amount(1234.5), amount(0.00123), amount(0.0)
    ('1,234.50', '0.00123', '0.00')
    """
    return f"{money:,.2f}" if money >= 0.01 or money == 0.0 else f"{money:.3g}"


def least_amount(money: float) -> str:
    """Write an amount as ``amount`` does, but rounded up: what is written is never less.

    >>> least_amount(0.1 + 0.2), least_amount(0.501), least_amount(0.001231), least_amount(5e16)
    ('0.30', '0.51', '0.00124', '50000000000000000.00')
    """
    if money <= 0.0:
        return "0.00"
    digits = 2 if money >= 0.01 else 2 - math.floor(math.log10(money))
    step = Decimal(1).scaleb(-digits)
    exact = Decimal(money) / step
    # Sums of decimal fractions are a little off.
    nearest = exact.to_integral_value()
    is_near = abs(exact - nearest) <= exact * Decimal("1e-12")
    steps = nearest if is_near else exact.to_integral_value(ROUND_CEILING)
    return f"{steps * step:.{digits}f}"


def _of(limit: float | None, write: Callable[[float], str]) -> str:
    return "" if limit is None else f" of {write(limit)}"


def _part(part: SpentOn) -> str:
    queries = f" {part.queries:,}" if part.queries else ""
    money = "" if part.money is None else f" ({amount(part.money)})"
    return f"{part.name}{queries}{money}"


def spent_on(
    by_purpose: Mapping[str, Asked],
    baseline: Asked,
    *,
    cost: Cost | None = None,
    indexes: int = 0,
    index_money: float = 0.0,
    computed: int = 0,
    limits: Mapping[str, float] | None = None,
) -> Spent:
    """Put together what was spent.

    ``baseline`` is the part of what trials asked that is the baseline's; ``index_money`` what
    ``indexes``, built or tried, cost together.

    >>> asked = {"trials": Asked(30, 30), "holdout": Asked(4, 4, kept=2)}
    >>> spent = spent_on(asked, Asked(10, 10), cost=Cost(per_query=0.5))
    >>> [(part.name, part.queries, part.money) for part in spent.parts]
    [('baseline', 10, 5.0), ('search', 20, 10.0), ('held-out queries', 4, 2.0)]
    >>> (spent.queries, spent.kept, spent.money)
    (34, 2, 17.0)
    """
    found: dict[str, Asked] = {"baseline": baseline}
    for name, purposes in SPENT_ON.items():
        asked = [by_purpose.get(purpose, NOTHING_ASKED) for purpose in purposes]
        found[name] = sum(asked, NOTHING_ASKED)
        if TRIALS in purposes:
            found[name] = found[name].less(baseline)
    parts = [
        SpentOn(name, asked.sent, asked.tokens, None if cost is None else cost.of(asked))
        for name, asked in found.items()
        if asked.sent
    ]
    if cost is not None and index_money:
        parts.append(SpentOn(counted(indexes, "index", "indexes"), 0, 0.0, index_money))
    return Spent(
        tuple(parts),
        sum(asked.kept for name, asked in by_purpose.items() if name not in READ_AGAIN),
        computed,
        None if cost is None else total(part.money or 0.0 for part in parts),
        dict(limits or {}),
    )
