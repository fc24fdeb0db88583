"""The words of a verdict: every outcome, reason, prospect and caveat has its sentence here."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tuner.core.shown import joined
from tuner.verdict.looks import LOOKS_FILE, times
from tuner.verdict.more_queries import FEWEST_TO_PLAN, HELD_OUT, POWER_SHOWN, confidence, in_queries
from tuner.verdict.ruling import (
    Caveat,
    CaveatKind,
    Figures,
    Outlook,
    Prospect,
    Reason,
    Ruling,
)

# From here on more than a tenth of what is no better would be deployed.
SPENT_FROM = 0.1

# Of three digits.
SHOWN_FROM = 0.0005


@dataclass(frozen=True)
class Names:
    """What the two are called, and the queries; ``same`` is said where both are the same."""

    winner: str = "the winner"
    baseline: str = "the baseline"
    queries: str = HELD_OUT
    same: str = "no configuration did better than it"


THE_WINNER = Names()


@dataclass(frozen=True)
class Told:
    """A verdict in words.

    Attributes:
        sentence: all of it.
        finding: the outcome's reason alone, a sentence with a capital and a full stop.
        advice: what to do about it, "" where that is plain.
        caveats: what weakens it, a sentence or two each.
    """

    sentence: str
    finding: str
    advice: str
    caveats: tuple[str, ...]


def tell(ruling: Ruling, caveats: Sequence[Caveat] = (), names: Names = THE_WINNER) -> Told:
    """Put a ruling into words.

    >>> told = tell(Ruling("keep the baseline", Reason.SAME))
    >>> told.sentence
    'Keep the baseline: no configuration did better than it.'
    """
    outcome = ruling.outcome.replace("the baseline", names.baseline)
    finding = _FINDINGS[ruling.reason](ruling.figures, names)
    advice = "" if ruling.prospect is None else _advice(ruling, ruling.prospect, names)
    remarks = tuple(_CAVEATS[caveat.kind](caveat.figures) for caveat in caveats)
    parts = [f"{outcome[0].upper()}{outcome[1:]}: {finding}."]
    parts += [advice] if advice else []
    parts += [f"({remark})" for remark in remarks]
    return Told(" ".join(parts), f"{finding[0].upper()}{finding[1:]}.", advice, remarks)


def to_record(
    ruling: Ruling, told: Told, caveats: Sequence[Caveat], parts: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a verdict as a JSON-ready mapping: what was decided and said, then its ``parts``."""
    return {
        "outcome": ruling.outcome,
        "sentence": told.sentence,
        "reason": ruling.reason.value,
        "figures": dict(ruling.figures),
        "finding": told.finding,
        "advice": told.advice,
        "caveats": [
            _caveat_record(one, text) for one, text in zip(caveats, told.caveats, strict=True)
        ],
        "outlook": None if ruling.prospect is None else ruling.prospect.outlook.value,
        "prospect": None if ruling.prospect is None else asdict(ruling.prospect),
        "more_queries": ruling.more_queries,
        "difference_to_show": ruling.difference_to_show,
        **parts,
    }


def retold(record: Mapping[str, Any], names: Names) -> str:
    """Return a recorded verdict's sentence with other names for the two.

    One of before records held what it is made of keeps its own.
    """
    if "prospect" not in record:
        return str(record["sentence"])
    found = record["prospect"]
    prospect = found and Prospect(**{**found, "outlook": Outlook(found["outlook"])})
    ruling = Ruling(record["outcome"], Reason(record["reason"]), record["figures"], prospect)
    caveats = [Caveat(CaveatKind(one["kind"]), one["figures"]) for one in record["caveats"]]
    return tell(ruling, caveats, names).sentence


def weakened(record: Mapping[str, Any], caveats: Sequence[Caveat]) -> dict[str, Any]:
    """Return a verdict's record with further caveats, which its sentence ends with."""
    texts = [_CAVEATS[one.kind](one.figures) for one in caveats]
    added = [_caveat_record(one, text) for one, text in zip(caveats, texts, strict=True)]
    sentence = " ".join([record["sentence"], *(f"({text})" for text in texts)])
    return {**record, "sentence": sentence, "caveats": [*record["caveats"], *added]}


def _caveat_record(caveat: Caveat, text: str) -> dict[str, Any]:
    return {"kind": caveat.kind.value, "text": text, "figures": dict(caveat.figures)}


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
        f"{every} differ by the same amount ({_signed(figures['difference'])})"
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
        return f"in the {what} ({_interval(figures)}; uncorrected {_signed(figures['naive'])})"
    on = in_queries(figures["queries"], names.queries)
    return f"in the composite on {on} ({_interval(figures)})"


def _change(figures: Figures, names: Names) -> str:
    """Return the composite's change, where it was seen, and its interval."""
    of = figures.get("composite", figures)
    on = "" if "composite" in figures else f" on {in_queries(of['queries'], names.queries)}"
    return f"{_signed(of['difference'])}{on}, {_interval({**figures, **of})}"


def _interval(figures: Figures) -> str:
    level = confidence(figures["alpha"])
    return f"{level} interval {_signed(figures['low'])} to {_signed(figures['high'])}"


def _objective(figures: Figures) -> str:
    of = figures["objective"]
    return f"{of['difference']:.3f} ({_interval({**figures, **of})})"


def _signed(value: float) -> str:
    """Return a number with its sign; what is 0 to three digits has none."""
    return "0.000" if abs(value) < SHOWN_FROM else f"{value:+.3f}"


def _amount(figures: Figures) -> str:
    return f"{abs(figures['difference']):.3f}"


def _scored(figures: Figures) -> str:
    difference = figures["difference"]
    if abs(difference) < SHOWN_FROM:
        return "the same"
    return f"{_amount(figures)} {'higher' if difference > 0.0 else 'lower'}"


def _advice(ruling: Ruling, prospect: Prospect, names: Names) -> str:
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
    kind = f"more {names.queries}" if names.queries == HELD_OUT else "more queries"
    return f"About {in_queries(prospect.more or 0, kind)} would {would}{label}."


def _split(figures: Figures) -> str:
    """Say, where no query was held out, what would judge more sharply."""
    if "fewest_to_split" not in figures:
        return ""
    return (
        f" With {figures['fewest_to_split']} queries or more, half of them held out, the answer is "
        "sharper."
    )


def _costs_more(figures: Figures) -> str:
    of = figures["objective"]
    return (
        f"It costs more than that is worth at the study's price: {figures['costs']}; the objective "
        f"changes by {_signed(of['difference'])}, {_interval({**figures, **of})}."
    )


def _no_spread(figures: Figures) -> str:
    remark = str(figures["remark"])
    return f"{remark[0].upper()}{remark[1:]}."


def _worse_types(figures: Figures) -> str:
    types = figures["types"]
    named = joined(types)
    return f"It is clearly worse on queries of the type{'s' * (len(types) > 1)} {named}."


def _left_out(figures: Figures) -> str:
    lacking, asked = figures["lacking"], figures["asked"]
    lack, is_left = ("lacks", "is") if lacking == 1 else ("lack", "are")
    return (
        f"{lacking} of the {in_queries(asked)} {lack} a metric of the composite and {is_left} "
        "left out."
    )


def _few_differ(figures: Figures) -> str:
    differ = figures["differ"]
    return _covers_less(f"Only {differ} of the queries {'differs' if differ == 1 else 'differ'}")


def _few_queries(figures: Figures) -> str:
    return _covers_less(f"There are fewer than {figures['fewest']} {figures['queries']}")


def _covers_less(few: str) -> str:
    return f"{few}: the truth lies outside such an interval more often than it promises."


def _moves(figures: Figures) -> str:
    return (
        f"Asked twice, the same configuration differed from itself by {figures['shift']:.4f}: the "
        "interval allows for that."
    )


def _looked_at(figures: Figures) -> str:
    seen, queries, count = figures["seen"], figures["queries"], figures["count"]
    if queries == 1:
        some = "The held-out query was"
    elif seen == queries:
        some = f"All {queries:,} held-out queries were"
    else:
        some = f"{seen:,} of the {queries:,} held-out queries {'was' if seen == 1 else 'were'}"
    last = f"last on {figures['last_date']} by the study {figures['last_study']}"
    if 0 < figures.get("last_seen", 0) < seen:
        last += f" ({figures['last_seen']:,} of them)"
    if not count:
        return f"{some} looked at before, {last}: too few to count as a further look."
    by_chance, at_first = figures["by_chance"], figures["alpha"] / 2.0
    now = (
        f"{some} looked at {times(count)} before, {last}: by now chance deploys what is no better "
        f"in up to {100.0 * by_chance:.3g} % of cases, not in {100.0 * at_first:.3g} %."
    )
    if by_chance < SPENT_FROM:
        return f"{now} For a decision that matters, take fresh queries."
    return (
        f"{now} These queries are spent: label new ones, and compare on them alone "
        "(tuner compare … --set dataset.path=NEW --queries all)."
    )


def _unreadable(figures: Figures) -> str:
    lines = "1 line" if figures["lines"] == 1 else f"{figures['lines']} lines"
    return (
        f"{lines} of {LOOKS_FILE} cannot be read, so these queries may have been looked at more "
        "often than is known: restore that file from a copy."
    )


def _failed_trials(figures: Figures) -> str:
    failed, told = figures["failed"], figures["told"]
    return (
        f"{failed:,} of {told:,} trials, {100 * failed / told:.0f} %, failed, most often by: "
        f"{figures['reason']}."
    )


_CAVEATS: Mapping[CaveatKind, Callable[[Figures], str]] = {
    CaveatKind.COSTS_MORE: _costs_more,
    CaveatKind.NO_SPREAD: _no_spread,
    CaveatKind.WORSE_TYPES: _worse_types,
    CaveatKind.LEFT_OUT: _left_out,
    CaveatKind.FEW_DIFFER: _few_differ,
    CaveatKind.FEW_QUERIES: _few_queries,
    CaveatKind.MOVES: _moves,
    CaveatKind.LOOKED_AT: _looked_at,
    CaveatKind.UNREADABLE: _unreadable,
    CaveatKind.FAILED_TRIALS: _failed_trials,
}
