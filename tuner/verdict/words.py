"""The words of a verdict: every reason has its sentence here, to which advice and caveats come."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tuner.verdict.caveats import caveat_record, told_caveat
from tuner.verdict.more_queries import FEWEST_TO_PLAN, POWER_SHOWN, advise
from tuner.verdict.ruling import (
    BY_PEOPLE,
    SHOWN_FROM,
    THE_WINNER,
    Caveat,
    CaveatKind,
    Figures,
    Names,
    Reason,
    Ruling,
    Told,
    in_queries,
    interval,
    read_record,
    signed,
)


def tell(ruling: Ruling, caveats: Sequence[Caveat] = (), names: Names = THE_WINNER) -> Told:
    """Put a ruling into words.

    >>> told = tell(Ruling("keep the baseline", Reason.SAME))
    >>> told.sentence
    'Keep the baseline: no configuration did better than it.'
    """
    if any(caveat.kind is CaveatKind.BY_JUDGE for caveat in caveats):
        names = replace(names, queries=f"{names.queries}{BY_PEOPLE}")
    outcome = ruling.outcome.replace("the baseline", names.baseline)
    finding = _FINDINGS[ruling.reason](ruling.figures, names)
    advice = "" if ruling.prospect is None else advise(ruling, ruling.prospect, names)
    remarks = tuple(map(told_caveat, caveats))
    parts = [f"{outcome[0].upper()}{outcome[1:]}: {finding}."]
    parts += [advice] if advice else []
    parts += [f"({remark})" for remark in remarks]
    return Told(" ".join(parts), f"{finding[0].upper()}{finding[1:]}.", advice, remarks)


def retold(record: Mapping[str, Any], names: Names) -> str:
    """Return a recorded verdict's sentence with other names for the two.

    One that is not made of what this version knows, such as an earlier or a later one's, keeps its
    own sentence.
    """
    try:
        decided = read_record(record)
        return tell(*decided, names).sentence
    # A figure of another type fails in whatever way the words use it.
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return str(record.get("sentence", ""))


def weakened(record: Mapping[str, Any], caveats: Sequence[Caveat]) -> dict[str, Any]:
    """Return a verdict's record with further caveats, which its sentence ends with."""
    added = [*map(caveat_record, caveats)]
    sentence = " ".join([record["sentence"], *(f"({one['text']})" for one in added)])
    return {**record, "sentence": sentence, "caveats": [*record["caveats"], *added]}


def _better(figures: Figures, names: Names) -> str:
    by = f"{_amount(figures)} {_where(figures, names)}"
    return f"{_opening(figures)}{names.winner} is better by {by}"


def _cheaper(figures: Figures, names: Names) -> str:
    return (
        f"{names.winner} is as good in the composite ({_change(figures, names)}, so a loss of "
        f"{figures['min_effect']:g} or more is ruled out) and cheaper "
        f"({figures['costs']}): the objective gains {_objective(figures)}"
    )


def _worse(figures: Figures, names: Names) -> str:
    price = (
        f"; at the study's price its objective gains {_objective(figures)}, but the composite may "
        f"not lose {figures['min_effect']:g}"
        if "objective" in figures
        else ""
    )
    return f"{names.winner} is worse by {_amount(figures)} {_where(figures, names)}{price}"


def _alike(figures: Figures, names: Names) -> str:
    both = f"{names.winner} and {names.baseline}"
    if figures.get("is_few"):
        opening = _opening(figures, "; ")
        return f"{opening}{both} do not differ on any of them, and so few are no certainty"
    return f"{both} have the same composite on all {in_queries(figures['queries'], names.queries)}"


def _too_small(figures: Figures, names: Names) -> str:
    least = f"a gain of {figures['min_effect']:g}, the least that would matter, is ruled out"
    if figures["is_clear"] and figures["difference"] > 0.0:
        return f"{_better(figures, names)}, but {least}"
    how = "is hardly better" if figures["difference"] >= SHOWN_FROM else "is no better"
    return (
        f"{_opening(figures)}{names.winner} {how}: it scored {_scored(figures)} "
        f"{_where(figures, names)}, so {least}"
    )


def _probably_too_small(figures: Figures, names: Names) -> str:
    return (
        f"{_chance(figures, names)}; so many queries would have shown a gain of "
        f"{figures['min_effect']:g}, the least that would matter, with {POWER_SHOWN} power, so "
        "the true one is probably smaller"
    )


def _rail_broken(figures: Figures, names: Names) -> str:
    is_gain = figures["is_clear"] and figures["difference"] > 0.0
    found = f"{_better(figures, names)}, but" if is_gain else f"{_chance(figures, names)}, and"
    broken = " and ".join(
        f"{rail['metric']} broke its guard-rail{_by_how_much(rail, 'loss')}"
        for rail in figures["broken"]
    )
    return f"{found} {broken}{_in_doubt(figures, ', and ')}"


def _rail_in_doubt(figures: Figures, names: Names) -> str:
    if "costs" in figures:
        found = (
            f"{names.winner} is as good in the composite ({_change(figures, names)}) and cheaper "
            f"({figures['costs']})"
        )
    elif figures["is_clear"] and figures["difference"] > 0.0:
        found = _better(figures, names)
    else:
        found = (
            f"{_opening(figures)}{names.winner} scored {_scored(figures)} {_where(figures, names)}"
        )
    return f"{found}{_in_doubt(figures, ', but ')}; more queries may show it"


def _in_doubt(figures: Figures, before: str) -> str:
    rails = figures["in_doubt"]
    if not rails:
        return ""
    shown = " and ".join(f"{rail['metric']}{_by_how_much(rail, 'bound')}" for rail in rails)
    its = "its guard-rail" if len(rails) == 1 else "their guard-rails"
    return f"{before}{shown} could not be shown to stay within {its}"


def _by_how_much(rail: Mapping[str, Any], of: str) -> str:
    """Say how much worse a metric is, or may be, and what is allowed."""
    value = rail[of]
    if value is None or not math.isfinite(value):
        return ""
    form: Callable[[float], str] = (
        (lambda share: f"{100.0 * share:.3g} %") if rail["is_relative"] else (lambda x: f"{x:.3g}")
    )
    how = "worse by" if of == "loss" else "worse by up to"
    return f" ({how} {form(value)}, {form(rail['margin'])} is allowed)"


def _chance(figures: Figures, names: Names) -> str:
    return (
        f"{_opening(figures)}{names.winner} scored {_scored(figures)} {_where(figures, names)}, "
        "which may be chance"
    )


def _loss_open(figures: Figures, names: Names) -> str:
    return (
        f"{_cheaper_but(figures, names)} its composite may be worse by {figures['min_effect']:g} "
        f"or more: {_change(figures, names)}"
    )


def _rare_losses(figures: Figures, names: Names) -> str:
    differ = figures["differ"]
    return (
        f"{_cheaper_but(figures, names)} its composite differs on only {in_queries(differ)}, so "
        "losses that are rare may be absent"
    )


def _loss_unknown(figures: Figures, names: Names) -> str:
    return (
        f"{_cheaper_but(figures, names)} whether its composite loses cannot be said: "
        f"{figures['remark']}"
    )


def _cheaper_but(figures: Figures, names: Names) -> str:
    if figures.get("naive") is not None:  # no query was held out
        return f"{_better(figures, names)}, but"
    return (
        f"{names.winner} is cheaper ({figures['costs']}) and its objective gains "
        f"{_objective(figures)}, but"
    )


def _no_values(figures: Figures, names: Names) -> str:
    known, asked = figures["queries"], figures["asked"]
    if not asked:
        return "there are no queries to compare"
    some = {0: "none", 1: "only one"}.get(known, str(known))
    return (
        f"{some} of the {in_queries(asked, names.queries)} has a composite from both, and at least "
        f"{FEWEST_TO_PLAN} are needed"
        if asked > 1
        else f"there is only 1 query, and at least {FEWEST_TO_PLAN} are needed"
    )


def _alike_on_few(figures: Figures, names: Names) -> str:
    number = figures["queries"]
    every = f"both {names.queries}" if number == 2 else f"all {in_queries(number, names.queries)}"
    found = (
        f"{every} differ by the same amount ({signed(figures['difference'])})"
        if figures["difference"]
        else f"{names.winner} and {names.baseline} have the same composite on {every}"
    )
    return f"{found}, but so few are no certainty: at least {figures['least']} are needed"


def _too_few(figures: Figures, names: Names) -> str:
    also = (
        f"; no configuration did better than {names.baseline} on them"
        if figures["is_baseline"]
        else ""
    )
    return (
        f"{_opening(figures, '')}, and under {FEWEST_TO_PLAN} a gain cannot be told from the "
        f"search's luck{also}"
    )


_FINDINGS: Mapping[Reason, Callable[[Figures, Names], str]] = {
    Reason.SAME: lambda _, names: names.same,
    Reason.INFEASIBLE: lambda *_: "no configuration met the objective's constraints",
    Reason.BETTER: _better,
    Reason.CHEAPER: _cheaper,
    Reason.WORSE: _worse,
    Reason.ALIKE: _alike,
    Reason.TOO_SMALL: _too_small,
    Reason.PROBABLY_TOO_SMALL: _probably_too_small,
    Reason.RAIL_BROKEN: _rail_broken,
    Reason.RAIL_IN_DOUBT: _rail_in_doubt,
    Reason.CHANCE: _chance,
    Reason.LOSS_OPEN: _loss_open,
    Reason.RARE_LOSSES: _rare_losses,
    Reason.LOSS_UNKNOWN: _loss_unknown,
    Reason.NO_VALUES: _no_values,
    Reason.ALIKE_ON_FEW: _alike_on_few,
    Reason.TOO_FEW: _too_few,
}


def _opening(figures: Figures, further: str = "; corrected for the search's luck, ") -> str:
    """Say that no query was held out, where that is so, and what was done about it."""
    if "fewest_to_split" not in figures:
        return ""
    queries = figures["queries"]
    if queries < figures["fewest_to_split"]:
        return f"with only {in_queries(queries)} none was held out{further}"
    return f"none of the {queries} queries was held out, as dataset.split.holdout asks{further}"


def _where(figures: Figures, names: Names) -> str:
    """Return where a difference was seen, with its interval."""
    if figures.get("naive") is not None:
        what = "objective with its price" if figures["is_priced"] else "composite"
        return f"in the {what} ({interval(figures)}; uncorrected {signed(figures['naive'])})"
    on = in_queries(figures["queries"], names.queries)
    return f"in the composite on {on} ({interval(figures)})"


def _change(figures: Figures, names: Names) -> str:
    """Return the composite's change, where it was seen, and its interval."""
    of = figures.get("composite", figures)
    on = "" if "composite" in figures else f" on {in_queries(of['queries'], names.queries)}"
    return f"{signed(of['difference'])}{on}, {interval({**figures, **of})}"


def _objective(figures: Figures) -> str:
    of = figures["objective"]
    return f"{of['difference']:.3f} ({interval({**figures, **of})})"


def _amount(figures: Figures) -> str:
    return f"{abs(figures['difference']):.3f}"


def _scored(figures: Figures) -> str:
    difference = figures["difference"]
    if abs(difference) < SHOWN_FROM:
        return "the same"
    return f"{_amount(figures)} {'higher' if difference > 0.0 else 'lower'}"
