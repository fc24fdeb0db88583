"""Which of the three outcomes a comparison leads to, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tuner.stats import NonInferiority, PairedComparison
from tuner.stats.power import MOST_TIMES
from tuner.verdict.more_queries import FEWEST_TO_PLAN, needed, to_label
from tuner.verdict.ruling import Figures, Outlook, Prospect, Reason, Ruling

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


@dataclass(frozen=True)
class Rail:
    """A guard-rail's test, and whether its loss is a share."""

    test: NonInferiority
    is_relative: bool = False

    @property
    def is_broken(self) -> bool:
        """Return whether the winner exceeds the bound on these very queries."""
        return (self.test.loss or 0.0) > self.test.margin

    def figures(self, metric: str) -> dict[str, Any]:
        """Return what there is to tell of it."""
        return {
            "metric": metric,
            "loss": self.test.loss,
            "bound": self.test.loss_bound,
            "margin": self.test.margin,
            "is_relative": self.is_relative,
        }


@dataclass(frozen=True)
class Evidence:
    """What an outcome is decided by.

    Attributes:
        composite: the winner against the baseline in the composite.
        price: the same with the price, where every price is known by query.
        rails: the tests of the guard-rails by metric.
        asked: how many queries were asked, also those without a value.
        run_shift: by how much the composite of one configuration moved when asked twice.
        held_out_share: the share of all queries that is held out; None where that is moot.
        widened: by how much the interval is wider than that of independent differences.
    """

    composite: PairedComparison
    price: Price | None = None
    rails: Mapping[str, Rail] = field(default_factory=dict)
    asked: int = 0
    run_shift: float = 0.0
    held_out_share: float | None = None
    widened: float = 1.0


def rule(evidence: Evidence, *, alpha: float, min_effect: float) -> Ruling:
    """Decide: deploy, keep the baseline, or not enough queries; see ``tuner.verdict.verdict``."""
    found = evidence.composite
    difference, interval = found.mean_difference, found.interval
    is_constant = found.standard_deviation == 0.0 and found.interval_kind != "t"
    if is_constant and (found.n < FEWEST_TO_PLAN or interval is None):
        # Of 2^n signs two leave the sum as it is, so so many queries rule out chance at all.
        least = max(FEWEST_TO_PLAN, 2 + math.floor(-math.log2(alpha)))
        alike = {"difference": difference, "queries": found.n, "least": least}
        return Ruling("not enough queries", Reason.ALIKE_ON_FEW, alike)
    if difference is None or interval is None or found.p_value is None:
        counts = {"queries": found.n, "asked": evidence.asked}
        return Ruling("not enough queries", Reason.NO_VALUES, counts)
    is_clear = found.p_value < alpha
    seen = {
        "difference": difference,
        "low": interval[0],
        "high": interval[1],
        "alpha": alpha,
        "queries": found.n,
        "min_effect": min_effect,
        "is_clear": is_clear,
    }
    broken = {name: rail for name, rail in evidence.rails.items() if rail.is_broken}
    in_doubt = {
        name: rail
        for name, rail in evidence.rails.items()
        if not rail.test.is_non_inferior and name not in broken
    }
    rails = {
        "broken": [rail.figures(name) for name, rail in broken.items()],
        "in_doubt": [rail.figures(name) for name, rail in in_doubt.items()],
    }
    if broken and not (is_clear and difference < 0):
        return Ruling("keep the baseline", Reason.RAIL_BROKEN, {**seen, **rails})
    is_gain = is_clear and difference > 0 and interval[1] >= min_effect
    price = evidence.price
    is_cheaper = (
        price is not None
        and price.is_better
        and is_as_good(found, min_effect)
        and price.is_cheaper_than(found)
    )
    if (is_gain or is_cheaper) and in_doubt:
        costs = {} if is_gain or price is None else _priced(price)
        return Ruling("keep the baseline", Reason.RAIL_IN_DOUBT, {**seen, **costs, **rails})
    if is_gain:
        return Ruling("deploy", Reason.BETTER, seen)
    if is_cheaper and price is not None:
        return Ruling("deploy", Reason.CHEAPER, {**seen, **_priced(price)})
    return _undecided(evidence, seen, alpha=alpha, min_effect=min_effect)


def _undecided(evidence: Evidence, seen: Figures, *, alpha: float, min_effect: float) -> Ruling:
    """Decide where nothing is to be deployed: is the baseline to be kept, or is it open?"""
    found, price = evidence.composite, evidence.price
    difference, is_clear = seen["difference"], seen["is_clear"]
    if (
        price is not None
        and price.is_better
        and price.is_cheaper_than(found)
        and not (is_clear and difference < 0)
    ):
        return _open_by_price(evidence, price, seen, alpha=alpha, min_effect=min_effect)
    if is_clear and difference < 0:
        gains = _priced(price) if price is not None and price.is_better else {}
        return Ruling("keep the baseline", Reason.WORSE, {**seen, **gains})
    if found.interval_kind == "constant" and difference == 0.0:
        return Ruling("keep the baseline", Reason.ALIKE, seen)
    if seen["high"] < min_effect:
        return Ruling("keep the baseline", Reason.TOO_SMALL, seen)
    return _perhaps_chance(evidence, seen, alpha=alpha, min_effect=min_effect)


def _perhaps_chance(
    evidence: Evidence, seen: Figures, *, alpha: float, min_effect: float
) -> Ruling:
    found, shift = evidence.composite, evidence.run_shift
    if found.n < FEWEST_TO_PLAN:
        prospect = Prospect(Outlook.TOO_FEW_TO_SAY)
        return Ruling("not enough queries", Reason.CHANCE, seen, prospect)
    difference = seen["difference"]
    deviation = evidence.widened * (found.standard_deviation or 0.0)
    smallest = needed(min_effect, deviation, alpha=alpha, run_shift=shift)
    if difference < min_effect and smallest is not None and smallest <= found.n:
        # To ask for more would be to ask for labels that will most likely show a difference that
        # nobody would act on.
        return Ruling("keep the baseline", Reason.PROBABLY_TOO_SMALL, seen)
    if difference <= 0.0:
        prospect = Prospect(Outlook.NO_SIGN)
    else:
        to_show = max(difference, min_effect)
        total = needed(to_show, deviation, alpha=alpha, run_shift=shift)
        prospect = prospect_of(total, to_show, found.n, evidence.held_out_share)
    return Ruling("not enough queries", Reason.CHANCE, seen, prospect)


def prospect_of(total: int | None, to_show: float, queries: int, share: float | None) -> Prospect:
    """Say what it takes to get from so many queries to the ``total`` that show a difference."""
    if total is None:
        return Prospect(Outlook.NEVER, to_show)
    if total <= queries:
        return Prospect(Outlook.FEW_DECIDE, to_show, total)
    if total > MOST_TIMES * queries:
        return Prospect(Outlook.HARDLY, to_show, total)
    more = total - queries
    return Prospect(Outlook.MORE, to_show, total, more, to_label(more, share), share)


def _open_by_price(
    evidence: Evidence, price: Price, seen: Figures, *, alpha: float, min_effect: float
) -> Ruling:
    """Return the ruling where it is cheaper, and only the composite's loss is open."""
    found, share = evidence.composite, evidence.held_out_share
    figures = {**seen, **_priced(price)}
    difference = seen["difference"]
    if seen["low"] > -min_effect:
        rare = {**figures, "differ": found.wins + found.losses}
        if min_effect <= 0.0:
            return Ruling("not enough queries", Reason.RARE_LOSSES, rare)
        enough = math.ceil(RULE_OF_THREE * RARE_LOSS / min_effect)
        prospect = prospect_of(enough, min_effect, found.n, share)
        return Ruling("not enough queries", Reason.RARE_LOSSES, rare, prospect)
    if found.n < FEWEST_TO_PLAN:
        prospect = Prospect(Outlook.TOO_FEW_TO_SAY)
    elif difference <= -min_effect:
        prospect = Prospect(Outlook.LOSS_SEEN)
    else:
        margin = difference + min_effect
        deviation = evidence.widened * (found.standard_deviation or 0.0)
        total = needed(margin, deviation, alpha=alpha, run_shift=evidence.run_shift)
        prospect = prospect_of(total, margin, found.n, share)
    return Ruling("not enough queries", Reason.LOSS_OPEN, figures, prospect)


def _priced(price: Price) -> dict[str, Any]:
    return {"costs": price.shown_costs(), "objective": price.figures()}
