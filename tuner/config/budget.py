"""The sections of a configuration that say what a run may spend, and what its system costs."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field, StrictInt

from tuner.config.section import Number, Section
from tuner.core.spent import Cost

MOST_TRIALS = 1_000_000
# What is multiplied by these, or by 60, is still a number.
MOST_MINUTES = 10_000_000
MOST_QUERIES = 10**12
MOST_MONEY = 10**15


class BudgetSection(Section):
    """What a run may spend; its search ends at the first limit that is reached."""

    trials: StrictInt | None = Field(
        default=None,
        ge=0,
        le=MOST_TRIALS,
        description="the trials of all backends together, shared out as their own `trials` are; "
        "0: the baseline alone; left out: what the backends say",
    )
    minutes: Number | None = Field(
        default=None,
        gt=0,
        le=MOST_MINUTES,
        description="how long the run may take, verdict included: no trial is begun that would "
        "not end in time",
    )
    query_evaluations: StrictInt | None = Field(
        default=None,
        ge=1,
        le=MOST_QUERIES,
        description="how many queries the system may be asked, each one for each time; what the "
        "verdict needs is kept aside",
    )
    money: Number | None = Field(
        default=None,
        gt=0,
        le=MOST_MONEY,
        description="what the run may cost, by `cost`, in the currency that stands there; what the "
        "verdict needs is kept aside",
    )

    @property
    def is_of_queries(self) -> bool:
        """Say whether each query that is asked counts."""
        return self.query_evaluations is not None or self.money is not None

    def parts(self, trials: Sequence[int]) -> list[int]:
        """Return the trials of each backend: where they are limited, its share of those."""
        return shares(trials, self.trials) if self.trials and trials else list(trials)

    @property
    def limits(self) -> dict[str, float]:
        """Return what is limited, but for trials: those are the arms' own."""
        given = {
            "minutes": self.minutes,
            "query_evaluations": self.query_evaluations,
            "money": self.money,
        }
        return {name: float(limit) for name, limit in given.items() if limit is not None}


class CostSection(Section):
    """What the system costs, in a currency of yours."""

    per_query: Number = Field(
        default=0,
        ge=0,
        le=MOST_MONEY,
        description="for each query that is sent, whether it is answered or not",
    )
    per_1000_tokens: Number = Field(
        default=0,
        ge=0,
        le=MOST_MONEY,
        description="for a thousand tokens of the contexts that are returned",
    )
    per_index: Number = Field(
        default=0,
        ge=0,
        le=MOST_MONEY,
        description="for each index that is built, or that could not be; not for one of which the "
        "system itself tells what it cost",
    )

    @property
    def cost(self) -> Cost:
        """Return it as what is reckoned with."""
        return Cost(float(self.per_query), float(self.per_1000_tokens), float(self.per_index))


def shares(weights: Sequence[int], total: int) -> list[int]:
    """Divide a whole number in proportion to weights, by largest remainders, first ones first.

    >>> shares([60, 40, 40], 12)
    [5, 4, 3]
    """
    exact = [total * weight / sum(weights) for weight in weights]
    parts = [int(share) for share in exact]
    order = sorted(range(len(weights)), key=lambda place: parts[place] - exact[place])
    for place in order[: total - sum(parts)]:
        parts[place] += 1
    return parts
