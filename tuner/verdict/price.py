"""A price in the objective: what it adds to a comparison, and when cheaper is as good."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from tuner.stats import PairedComparison

# Where fewer differ, 95 % intervals were found to cover less than 94 % for a good part of the pairs
# (experiments/statistics/README.md).
FEWEST_THAT_DIFFER = 20
# What a query may lose that is rare enough to be absent from those that were asked.
RARE_LOSS = 0.5
# None of n shows an event: its rate is then at most 3 / n (95 %; Hanley and Lippman-Hand 1983).
RULE_OF_THREE = 3.0


@dataclass(frozen=True)
class Price:
    """What a price in the objective adds to the comparison.

    Attributes:
        objective: the second against the first in the objective, the composite less the price.
        costs: what is paid for, such as ``{"context_tokens": (416.0, 2568.0)}``, winner first.
    """

    objective: PairedComparison
    costs: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def is_better(self) -> bool:
        """Return whether the objective is clearly higher."""
        return self._is_clear and (self.objective.mean_difference or 0.0) > 0.0

    @property
    def is_worse(self) -> bool:
        """Return whether the objective is clearly lower."""
        return self._is_clear and (self.objective.mean_difference or 0.0) < 0.0

    @property
    def _is_clear(self) -> bool:
        p_value, alpha = self.objective.p_value, 1.0 - self.objective.confidence
        return p_value is not None and p_value < alpha

    def shown_costs(self) -> str:
        """Return the costs for people: ``416 instead of 2,568 context tokens``."""
        return " and ".join(
            f"{_amount(first)} instead of {_amount(second)} {name.replace('_', ' ')}"
            for name, (first, second) in self.costs.items()
        )

    def figures(self) -> dict[str, float]:
        """Return the change of the objective and its interval."""
        low, high = self.objective.interval or (math.nan, math.nan)
        return {"difference": self.objective.mean_difference or 0.0, "low": low, "high": high}

    def is_cheaper_than(self, composite: PairedComparison) -> bool:
        """Return whether the price adds to the difference in the composite."""
        return (self.objective.mean_difference or 0.0) > (composite.mean_difference or 0.0)


def is_as_good(composite: PairedComparison, min_effect: float) -> bool:
    """Return whether a composite is shown not to be worse by ``min_effect`` or more.

    That is where the interval's lower end is above ``-min_effect``. Where fewer than 20 queries
    differ, the interval knows nothing of rare losses that are absent: up to 3 / n of all queries
    may have one, of .5 each, so that n must be at least 1.5 / ``min_effect``.
    """
    if composite.interval is None or composite.interval[0] <= -min_effect:
        return False
    return not may_lack_rare_losses(composite, min_effect)


def may_lack_rare_losses(composite: PairedComparison, min_effect: float) -> bool:
    """Return whether losses too rare to be among the queries could add up to ``min_effect``."""
    differ = composite.wins + composite.losses
    is_few = composite.n * min_effect < RULE_OF_THREE * RARE_LOSS
    return differ < FEWEST_THAT_DIFFER and is_few


def _amount(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100.0 else f"{value:.3g}"
