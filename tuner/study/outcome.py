"""Which of the three outcomes a comparison leads to, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tuner.stats import PairedComparison
from tuner.study.more_queries import (
    FEWEST_TO_PLAN,
    HELD_OUT,
    POWER_SHOWN,
    confidence,
    in_queries,
    needed,
    to_label,
)
from tuner.study.price import RARE_LOSS, RULE_OF_THREE, Price, is_as_good

Outcome = Literal["deploy", "keep the baseline", "not enough queries"]


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
        f"{to_show:.3f} with {POWER_SHOWN} power{to_label(more, evidence.held_out_share)}.",
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
    if price is None or not price.is_better or is_loss or not price.is_cheaper_than(found):
        return None
    cheaper = (
        f"the winner is cheaper ({price.shown_costs()}) and its objective gains "
        f"{price.shown_change()}, but it differs by {seen}"
    )
    if found.interval is not None and found.interval[0] > -min_effect:
        return _rare_losses(cheaper, found, min_effect, evidence.held_out_share)
    reason = f"{cheaper}, so that the composite may be worse by {min_effect:g} or more"
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
        f"{POWER_SHOWN} power{to_label(more, evidence.held_out_share)}.",
        more,
        difference + min_effect,
    )


def _rare_losses(
    cheaper: str, found: PairedComparison, min_effect: float, held_out_share: float | None
) -> Ruling:
    differ = found.wins + found.losses
    reason = (
        f"{cheaper}, and where only {differ} differ{'s' if differ == 1 else ''}, losses that are "
        "rare may be absent"
    )
    if min_effect <= 0.0:
        return Ruling("not enough queries", f"{reason}.")
    more = math.ceil(RULE_OF_THREE * RARE_LOSS / min_effect) - found.n
    return Ruling(
        "not enough queries",
        f"{reason}; {in_queries(more, f'more {HELD_OUT}')} would hold them"
        f"{to_label(more, held_out_share)}.",
        more,
        min_effect,
    )


def _is_cheaper_and_as_good(evidence: Evidence, min_effect: float) -> bool:
    found, price = evidence.composite, evidence.price
    if price is None or not price.is_better:
        return False
    return is_as_good(found, min_effect) and price.is_cheaper_than(found)


def _as_good_and_cheaper(evidence: Evidence, price: Price, min_effect: float, alpha: float) -> str:
    found = evidence.composite
    low, high = found.interval or (math.nan, math.nan)
    check = f" ({price.objective.remark})" if price.objective.remark else ""
    return (
        f"the winner is as good in the composite ({found.mean_difference:+.3f} on "
        f"{in_queries(found.n, HELD_OUT)}, {confidence(alpha)} interval {low:+.3f} to "
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
        f"({confidence(alpha)} interval {low:+.3f} to {high:+.3f})"
    )


def _broken(evidence: Evidence) -> str:
    others = [name for name in evidence.doubtful if name not in evidence.exceeded]
    broken = f"{' and '.join(evidence.exceeded)} broke the guard-rail"
    if not others:
        return broken
    return f"{broken}, and {' and '.join(others)} could not be shown to stay within theirs"
