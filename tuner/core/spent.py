"""What a study has spent, on what: queries, tokens and money."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tuner.core.calls import SPENT_ON, TRIALS
from tuner.core.ledger import NOTHING_ASKED, Asked
from tuner.core.shown import counted


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
        return self.per_query * asked.sent + self.per_1000_tokens * asked.tokens / 1000.0


@dataclass(frozen=True)
class SpentOn:
    """What one part of a study took. ``money`` is None where no cost is known."""

    name: str
    queries: int
    tokens: float = 0.0
    money: float | None = None


@dataclass(frozen=True)
class Spent:
    """What a study has spent so far, in all its sessions.

    Attributes:
        parts: by what on: baseline, search, held-out queries, verdict, probing, indexes; only those
            on which something was spent.
        kept: queries that were not sent, since their answers were kept.
        money: in all; None where no cost is known.
    """

    parts: tuple[SpentOn, ...] = field(default=())
    kept: int = 0
    money: float | None = None

    @property
    def queries(self) -> int:
        """Return how many queries were sent in all."""
        return sum(part.queries for part in self.parts)

    @property
    def tokens(self) -> float:
        """Return the tokens of all contexts that were returned."""
        return sum(part.tokens for part in self.parts)


def spent_on(
    by_purpose: Mapping[str, Asked],
    baseline: Asked,
    *,
    cost: Cost | None = None,
    indexes: int = 0,
    index_money: float = 0.0,
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
        sum(asked.kept for asked in by_purpose.values()),
        None if cost is None else sum(part.money or 0.0 for part in parts),
    )
