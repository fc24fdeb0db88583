"""Which of the three outcomes a comparison leads to, why, and how many queries would tell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Literal

from tuner.stats import PairedComparison, queries_needed

Outcome = Literal["deploy", "keep the baseline", "not enough queries"]

HELD_OUT = "held-out queries"
# From fewer queries no number of further ones is derived, and no difference at all is no evidence:
# the spread of nine values is uncertain by a quarter, and what differs on a tenth of all queries is
# absent from nine of them in four cases of ten.
FEWEST_TO_PLAN = 10
POWER = 0.8
POWER_SHOWN = f"{100 * POWER:g} %"


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

    def shown_change(self) -> str:
        """Return the change of the objective: ``+0.198 (interval +0.150 to +0.240)``."""
        low, high = self.objective.interval or (math.nan, math.nan)
        change = self.objective.mean_difference or 0.0
        return f"{change:+.3f} (interval {low:+.3f} to {high:+.3f})"


@dataclass(frozen=True)
class Evidence:
    """What an outcome is decided by.

    Attributes:
        composite: the winner against the baseline in the composite.
        price: the same with the price, where every price is known by query.
        exceeded: guard-rails whose bound the winner exceeds on these queries.
        doubtful: guard-rails that could not be shown to be kept, those exceeded among them.
        run_shift: by how much the composite of one configuration moved when asked twice.
        held_out_share: the share of all queries that is held out; None where that is moot.
    """

    composite: PairedComparison
    price: Price | None = None
    exceeded: Sequence[str] = ()
    doubtful: Sequence[str] = ()
    run_shift: float = 0.0
    held_out_share: float | None = None


@dataclass(frozen=True)
class Ruling:
    """An outcome with its reason; how many more queries would show which difference, if known."""

    outcome: Outcome
    reason: str
    more_queries: int | None = None
    difference_to_show: float | None = None


def rule(evidence: Evidence, *, alpha: float, min_effect: float) -> Ruling:
    """Decide: deploy, keep the baseline, or not enough queries; see ``tuner.study.verdict``."""
    found = evidence.composite
    difference, interval = found.mean_difference, found.interval
    if difference is None or interval is None or found.p_value is None:
        why = found.remark or "too few queries have a value from both"
        return Ruling("not enough queries", f"{why}.")
    if found.interval_kind == "constant" and found.n < FEWEST_TO_PLAN:
        return Ruling(
            "not enough queries",
            f"{found.remark}, but so few are no certainty: at least {FEWEST_TO_PLAN} are needed.",
        )
    is_clear = found.p_value < alpha
    seen = _seen(found, alpha)
    if evidence.exceeded and not (is_clear and difference < 0):
        return Ruling(
            "keep the baseline", f"the winner differs by {seen}, but {_broken(evidence)}."
        )
    is_gain = is_clear and difference > 0 and interval[1] >= min_effect
    is_cheaper = _is_cheaper_and_as_good(evidence, min_effect)
    if (is_gain or is_cheaper) and evidence.doubtful:
        gains = f"gains {seen}" if is_gain else f"is cheaper and differs by {seen}"
        return Ruling(
            "keep the baseline",
            f"the winner {gains}, but {' and '.join(evidence.doubtful)} could not be shown to "
            "stay within the guard-rail.",
        )
    if is_gain:
        check = f" ({found.remark})" if found.remark else ""
        return Ruling("deploy", f"the winner is better by {seen}{check}.{_paid_for(evidence)}")
    if is_cheaper and evidence.price is not None:
        return Ruling("deploy", _as_good_and_cheaper(evidence, evidence.price, min_effect, alpha))
    return _undecided(evidence, seen, alpha=alpha, min_effect=min_effect)


def needed(
    difference: float, deviation: float, *, alpha: float, run_shift: float = 0.0
) -> int | None:
    """Return how many queries, in all, show a true difference with 80 % power; None: none does.

    With a system that moves by s between runs, a difference D is tested against the error
    sqrt(sd^2 / n + s^2). With z = z_(1 - alpha / 2) + z_0.8 that needs D^2 - (z s)^2 =
    z^2 sd^2 / n: as many as the difference sqrt(D^2 - (z s)^2) does without the movement.
    """
    normal = NormalDist()
    reach = (normal.inv_cdf(1.0 - alpha / 2.0) + normal.inv_cdf(POWER)) * run_shift
    left = difference**2 - reach**2
    if left <= 0.0:
        return None
    return queries_needed(math.sqrt(left), deviation, alpha=alpha, power=POWER)


def in_queries(number: int, kind: str = "queries") -> str:
    """Return a number with its noun: ``1 query``, ``2,568 held-out queries``."""
    return f"{number:,} {kind.replace('queries', 'query') if number == 1 else kind}"


def _undecided(evidence: Evidence, seen: str, *, alpha: float, min_effect: float) -> Ruling:
    """Decide where nothing is to be deployed: is the baseline to be kept, or is it open?"""
    found = evidence.composite
    difference, p_value = found.mean_difference or 0.0, found.p_value
    interval = found.interval or (math.nan, math.nan)
    open_by_price = _open_by_price(evidence, seen, alpha=alpha, min_effect=min_effect)
    if open_by_price is not None:
        return open_by_price
    is_clear = p_value is not None and p_value < alpha
    if is_clear and difference < 0:
        price = evidence.price
        though = (
            f" At the study's price its objective gains {price.shown_change()}, but the composite "
            f"may not lose {min_effect:g}."
            if price is not None and price.is_better
            else ""
        )
        return Ruling("keep the baseline", f"the winner is worse by {seen}.{though}")
    if found.interval_kind == "constant" and difference == 0.0:
        return Ruling("keep the baseline", f"{found.remark}.")
    if interval[1] < min_effect:
        how = "is better" if is_clear else "differs"
        return Ruling(
            "keep the baseline",
            f"the winner {how} by {seen}, less than the {min_effect:g} that would matter.",
        )
    return _perhaps_chance(evidence, seen, alpha=alpha, min_effect=min_effect)


def _perhaps_chance(evidence: Evidence, seen: str, *, alpha: float, min_effect: float) -> Ruling:
    found = evidence.composite
    chance = f"the winner differs by {seen}, which may be chance"
    if found.n < FEWEST_TO_PLAN:
        few = "is" if found.n == 1 else "are"
        return Ruling(
            "not enough queries",
            f"{chance}; {in_queries(found.n)} {few} too few to say how many would tell.",
        )
    difference, deviation = found.mean_difference or 0.0, found.standard_deviation or 0.0
    smallest = needed(min_effect, deviation, alpha=alpha, run_shift=evidence.run_shift)
    if difference < min_effect and smallest is not None and smallest <= found.n:
        # To ask for more would be to ask for labels that will most likely show a difference that
        # nobody would act on.
        return Ruling(
            "keep the baseline",
            f"{chance}; so many queries show a difference of {min_effect:g} with {POWER_SHOWN} "
            f"power, so it is probably smaller than the {min_effect:g} that would matter.",
        )
    to_show = max(difference, min_effect)
    total = needed(to_show, deviation, alpha=alpha, run_shift=evidence.run_shift)
    if total is None:
        return Ruling(
            "not enough queries",
            f"{chance}; no number of queries would show a difference of {to_show:.3f}, since the "
            "system differs from itself by as much.",
        )
    if total <= found.n:
        return Ruling(
            "not enough queries",
            f"{chance}: a few large differences decide it, so that several times as many queries "
            "would be needed.",
        )
    more = total - found.n
    return Ruling(
        "not enough queries",
        f"{chance}; about {in_queries(more, f'more {HELD_OUT}')} would show a difference of "
        f"{to_show:.3f} with {POWER_SHOWN} power{_to_label(more, evidence.held_out_share)}.",
        more,
        to_show,
    )


def _open_by_price(
    evidence: Evidence, seen: str, *, alpha: float, min_effect: float
) -> Ruling | None:
    """Return the ruling where it is cheaper, and only the composite's loss is open; else None."""
    found, price = evidence.composite, evidence.price
    difference = found.mean_difference or 0.0
    is_loss = found.p_value is not None and found.p_value < alpha and difference < 0
    if price is None or not price.is_better or is_loss or not _is_cheaper(found, price):
        return None
    reason = (
        f"the winner is cheaper ({price.shown_costs()}) and its objective gains "
        f"{price.shown_change()}, but it differs by {seen}, so that the composite may be worse by "
        f"{min_effect:g} or more"
    )
    if found.n < FEWEST_TO_PLAN or difference <= -min_effect:
        return Ruling("not enough queries", f"{reason}.")
    total = needed(
        difference + min_effect,
        found.standard_deviation or 0.0,
        alpha=alpha,
        run_shift=evidence.run_shift,
    )
    if total is None or total <= found.n:
        return Ruling("not enough queries", f"{reason}.")
    more = total - found.n
    return Ruling(
        "not enough queries",
        f"{reason}; about {in_queries(more, f'more {HELD_OUT}')} would rule that out with "
        f"{POWER_SHOWN} power{_to_label(more, evidence.held_out_share)}.",
        more,
        difference + min_effect,
    )


def _is_cheaper_and_as_good(evidence: Evidence, min_effect: float) -> bool:
    found, price = evidence.composite, evidence.price
    if price is None or not price.is_better or found.interval is None:
        return False
    return found.interval[0] > -min_effect and _is_cheaper(found, price)


def _is_cheaper(found: PairedComparison, price: Price) -> bool:
    """Return whether the price adds to the difference, on the queries of both."""
    return (price.objective.mean_difference or 0.0) > (found.mean_difference or 0.0)


def _as_good_and_cheaper(evidence: Evidence, price: Price, min_effect: float, alpha: float) -> str:
    found = evidence.composite
    low, high = found.interval or (math.nan, math.nan)
    check = f" ({price.objective.remark})" if price.objective.remark else ""
    return (
        f"the winner is as good in the composite ({found.mean_difference:+.3f} on "
        f"{in_queries(found.n, HELD_OUT)}, {100 * (1 - alpha):g} % interval {low:+.3f} to "
        f"{high:+.3f}: no worse than {min_effect:g}) and cheaper ({price.shown_costs()}): the "
        f"objective gains {price.shown_change()}{check}."
    )


def _paid_for(evidence: Evidence) -> str:
    """Say that a gain in the composite costs more than it is worth at the study's price."""
    price = evidence.price
    if price is None or not price.is_worse:
        return ""
    return (
        f" But it costs more than that is worth at the study's price ({price.shown_costs()}): the "
        f"objective changes by {price.shown_change()}."
    )


def _seen(found: PairedComparison, alpha: float) -> str:
    low, high = found.interval or (math.nan, math.nan)
    return (
        f"{found.mean_difference:+.3f} in the composite on {in_queries(found.n, HELD_OUT)} "
        f"({100 * (1 - alpha):g} % interval {low:+.3f} to {high:+.3f})"
    )


def _broken(evidence: Evidence) -> str:
    others = [name for name in evidence.doubtful if name not in evidence.exceeded]
    broken = f"{' and '.join(evidence.exceeded)} broke the guard-rail"
    if not others:
        return broken
    return f"{broken}, and {' and '.join(others)} could not be shown to stay within theirs"


def _to_label(more: int, held_out_share: float | None) -> str:
    if held_out_share is None or not 0.0 < held_out_share < 1.0:
        return ""
    total = math.ceil(more / held_out_share)
    return f" (with {100 * held_out_share:.3g} % held out: {in_queries(total)} to label)"


def _amount(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100.0 else f"{value:.3g}"
