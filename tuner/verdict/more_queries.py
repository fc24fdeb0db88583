"""How many queries would tell, and how to say so."""

from __future__ import annotations

import math
from statistics import NormalDist

from tuner.stats import minimum_detectable_difference, queries_needed
from tuner.verdict.ruling import (
    BY_PEOPLE,
    HELD_OUT,
    Figures,
    Names,
    Outlook,
    Prospect,
    Reason,
    Ruling,
    in_queries,
)

# From fewer queries no number of further ones is derived, and no difference at all is no evidence:
# the spread of nine values is uncertain by a quarter, and what differs on a tenth of all queries is
# absent from nine of them in four cases of ten.
FEWEST_TO_PLAN = 10
POWER = 0.8
POWER_SHOWN = f"{100 * POWER:g} %"


def needed(
    difference: float,
    deviation: float,
    *,
    alpha: float,
    run_shift: float = 0.0,
    power: float = POWER,
) -> int | None:
    """Return how many queries, in all, show a true difference with ``power``; None: none does.

    With a system that moves by s between runs, a difference D is tested against the error
    sqrt(sd^2 / n + s^2). With z = z_(1 - alpha / 2) + z_power that needs D^2 - (z s)^2 =
    z^2 sd^2 / n: as many as the difference sqrt(D^2 - (z s)^2) does without the movement.
    """
    reach = _reach(alpha, power) * run_shift
    left = difference**2 - reach**2
    if left <= 0.0:
        return None
    return queries_needed(math.sqrt(left), deviation, alpha=alpha, power=power)


def shown_by(
    queries: int, deviation: float, *, alpha: float, run_shift: float = 0.0, power: float = POWER
) -> float:
    """Return the smallest true difference that so many queries show, as ``needed`` reckons."""
    least = minimum_detectable_difference(queries, deviation, alpha=alpha, power=power)
    return math.hypot(least, _reach(alpha, power) * run_shift)


def _reach(alpha: float, power: float) -> float:
    normal = NormalDist()
    return normal.inv_cdf(1.0 - alpha / 2.0) + normal.inv_cdf(power)


def to_label(more: int, held_out_share: float | None) -> int | None:
    """Return how many to label so that ``more`` are held out; None where the share is moot."""
    if held_out_share is None or not 0.0 < held_out_share < 1.0:
        return None
    return math.ceil(more / held_out_share)


def advise(ruling: Ruling, prospect: Prospect, names: Names) -> str:
    """Say what more queries would do, and what to do about it."""
    figures = ruling.figures
    is_loss = ruling.reason is Reason.LOSS_OPEN
    match prospect.outlook:
        case Outlook.MORE | Outlook.SPLIT:
            return _more(ruling, prospect, names)
        case Outlook.HARDLY:
            to = "rule that out" if is_loss else f"show a gain of {prospect.to_show:.3f}"
            return (
                f"More queries will hardly decide it: to {to} with {POWER_SHOWN} power takes about "
                f"{in_queries(prospect.total or 0, names.queries)}, and there are "
                f"{figures['queries']:,}{' in all' if 'fewest_to_split' in figures else ''}."
            )
        case Outlook.NEVER:
            return (
                f"No number of queries would show a difference of {prospect.to_show:.3f}, since "
                "the system differs from itself by as much when it is asked again: let it answer "
                "alike first (a fixed seed, a temperature of 0)."
            )
        case Outlook.FEW_DECIDE:
            return (
                "A few large differences decide it, so that several times as many queries would be "
                "needed."
            )
        case Outlook.TOO_FEW_TO_SAY:
            few = "is" if figures["queries"] == 1 else "are"
            return (
                f"{in_queries(figures['queries'])} {few} too few to say how many would tell: "
                f"compare on {FEWEST_TO_PLAN} or more."
            )
        case Outlook.NO_SIGN:
            return f"Nothing speaks for {names.winner}: keep {names.baseline}.{_split(figures)}"
        case Outlook.LOSS_SEEN:
            return (
                "On these queries the composite does lose that much, so more of them will hardly "
                f"rule it out: keep {names.baseline}."
            )


def _more(ruling: Ruling, prospect: Prospect, names: Names) -> str:
    reason, figures = ruling.reason, ruling.figures
    if reason is Reason.TOO_FEW:
        return f"Label {figures['fewest_to_split']} or more, of which half are held out."
    power = f" with {POWER_SHOWN} power"
    would = {
        Reason.LOSS_OPEN: f"rule that out{power}",
        Reason.RARE_LOSSES: "hold them",
    }.get(reason, f"show a difference of {prospect.to_show or 0.0:.3f}{power}")
    if "fewest_to_split" in figures:
        how = (
            "hold half of these out (dataset.split.holdout: 0.5)"
            if prospect.outlook is Outlook.SPLIT
            else f"label about {in_queries(prospect.to_label or 0, 'more queries')} and hold half "
            "of all out"
        )
        return f"About {in_queries(prospect.total or 0, HELD_OUT)} would {would}: {how}."
    label = (
        f" (with {100.0 * prospect.share:.3g} % held out: {in_queries(prospect.to_label)} to label)"
        if prospect.share is not None and prospect.to_label is not None
        else ""
    )
    is_told = names.queries == HELD_OUT or names.queries.endswith(BY_PEOPLE)
    kind = f"more {names.queries}" if is_told else "more queries"
    return f"About {in_queries(prospect.more or 0, kind)} would {would}{label}."


def _split(figures: Figures) -> str:
    """Say, where no query was held out, what would judge more sharply."""
    if "fewest_to_split" not in figures:
        return ""
    return (
        f" With {figures['fewest_to_split']} queries or more, half of them held out, the answer is "
        "sharper."
    )
