"""Why a verdict's figures promise less than they seem to: what stands in brackets behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from tuner.core.rankings import FloatArray
from tuner.core.shown import joined
from tuner.stats import PairedComparison
from tuner.study.failures import Failures
from tuner.verdict.looks import LOOKS_FILE, EarlierLooks, times
from tuner.verdict.outcome import FEWEST_THAT_DIFFER, RARE_LOSS
from tuner.verdict.ruling import HELD_OUT, Caveat, CaveatKind, Figures, in_queries, interval, signed

# With fewer queries 95 % intervals were found to cover less than 94 % for a good part of the pairs
# (experiments/statistics/README.md).
FEWEST_QUERIES = 50
# From here on more than a tenth of what is no better would be deployed.
SPENT_FROM = 0.1


def caveats(
    comparison: PairedComparison,
    *,
    asked: int,
    alpha: float,
    run_shift: float = 0.0,
    looks: EarlierLooks | None = None,
    worse_on: Sequence[str] = (),
    queries: str = HELD_OUT,
) -> tuple[Caveat, ...]:
    """Return every caveat that applies.

    ``asked`` is how many queries were asked, also those without a value; ``worse_on`` names the
    query types that clearly lose, and ``queries`` is what the queries are called.
    """
    found = [Caveat(CaveatKind.WORSE_TYPES, {"types": list(worse_on)})] if worse_on else []
    lacking = asked - comparison.n
    if lacking:
        found.append(Caveat(CaveatKind.LEFT_OUT, {"lacking": lacking, "asked": asked}))
    differ = comparison.wins + comparison.losses
    if comparison.interval_kind == "t" and differ < FEWEST_THAT_DIFFER:
        found.append(Caveat(CaveatKind.FEW_DIFFER, {"differ": differ}))
    elif comparison.interval_kind == "t" and comparison.n < FEWEST_QUERIES:
        few: Figures = {"fewest": FEWEST_QUERIES, "queries": queries}
        found.append(Caveat(CaveatKind.FEW_QUERIES, few))
    if comparison.judge is not None:
        found.append(Caveat(CaveatKind.BY_JUDGE, asdict(comparison.judge)))
    if run_shift:
        found.append(Caveat(CaveatKind.MOVES, {"shift": run_shift}))
    if looks is not None and looks.seen:
        found.append(Caveat(CaveatKind.LOOKED_AT, _figures(looks, alpha, queries)))
    if looks is not None and looks.unreadable:
        found.append(Caveat(CaveatKind.UNREADABLE, {"lines": looks.unreadable}))
    return tuple(found)


def caveat_of_rare_losses(
    differences: FloatArray, alpha: float, queries: str
) -> tuple[Caveat, ...]:
    """Return that losses may be absent which are rare, and would undo a gain.

    Losses of .5 at a rate r, and else the gain g that was seen, are no gain where r = g / (g + .5).
    None of n queries has one with probability (1 - r)^n; more than half of ``alpha`` is more than
    the verdict promises. Where a query lost half as much, they are not absent.
    """
    defined = differences[~np.isnan(differences)]
    gain = float(defined.mean())
    rate = gain / (gain + RARE_LOSS)
    absent = (1.0 - rate) ** defined.size
    if float(defined.min()) <= -RARE_LOSS / 2.0 or absent <= alpha / 2.0:
        return ()
    figures = {
        "loss": RARE_LOSS,
        "seen_from": RARE_LOSS / 2.0,
        "one_in": round(1.0 / rate),
        "absent": absent,
        "queries": int(defined.size),
        "called": queries,
    }
    return (Caveat(CaveatKind.RARE_LOSSES, figures),)


def caveats_of_failures(failures: Failures, searches: str = "") -> tuple[Caveat, ...]:
    """Return what failed trials take from a verdict; nothing where few enough failed.

    ``searches`` says of which they were, unless of the study's own.
    """
    if not failures.is_noticed:
        return ()
    figures: dict[str, Any] = {
        "failed": failures.failed,
        "told": failures.told,
        "reason": failures.short_reason,
        **({"searches": searches} if searches else {}),
    }
    return (Caveat(CaveatKind.FAILED_TRIALS, figures),)


def caveat_of_parts(figures: Figures) -> Caveat:
    """Return what was tested where each part met a winner of its own: the way of choosing."""
    return Caveat(CaveatKind.PARTS, figures)


def _figures(looks: EarlierLooks, alpha: float, called: str) -> dict[str, float | str]:
    """Return what earlier looks have cost: each deploys by chance in up to half of ``alpha``.

    Their sum bounds the rate at which any of them does (Bonferroni), however they go together.
    """
    return {
        "seen": looks.seen,
        "queries": looks.queries,
        "count": looks.count,
        "last_study": looks.last_study,
        "last_date": looks.last_date,
        "last_seen": looks.last_seen,
        "alpha": alpha,
        "called": called,
        "by_chance": min((looks.count + 1) * alpha / 2.0, 1.0),
    }


def told_caveat(caveat: Caveat) -> str:
    """Return what a caveat says, a sentence or two."""
    return _WORDS[caveat.kind](caveat.figures)


def caveat_record(caveat: Caveat) -> dict[str, Any]:
    """Return a caveat as a JSON-ready mapping, with what it says."""
    return {
        "kind": caveat.kind.value,
        "text": told_caveat(caveat),
        "figures": dict(caveat.figures),
    }


def _costs_more(figures: Figures) -> str:
    of = figures["objective"]
    return (
        f"It costs more than that is worth at the study's price: {figures['costs']}; the objective "
        f"changes by {signed(of['difference'])}, {interval({**figures, **of})}."
    )


def _no_spread(figures: Figures) -> str:
    remark = str(figures["remark"])
    return f"{remark[0].upper()}{remark[1:]}."


def _worse_types(figures: Figures) -> str:
    types = figures["types"]
    return f"It is clearly worse on queries of the type{'s' * (len(types) > 1)} {joined(types)}."


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
    called = figures.get("called", HELD_OUT)
    if queries == 1:
        some = f"The {called.replace('queries', 'query')} was"
    elif seen == queries:
        some = f"All {queries:,} {called} were"
    else:
        some = f"{seen:,} of the {queries:,} {called} {'was' if seen == 1 else 'were'}"
    last = f"last on {figures['last_date']} by the study {figures['last_study']}"
    if 0 < figures.get("last_seen", 0) < seen:
        last += f" ({figures['last_seen']:,} of them)"
    if not count:
        return f"{some} looked at before, {last}: too few to count as a further look."
    by_chance, at_first = figures["by_chance"], figures["alpha"] / 2.0
    now = (
        f"{some} looked at {times(count)} before for other configurations, {last}: by now chance "
        f"deploys what is no better in up to {100.0 * by_chance:.3g} % of cases, not in "
        f"{100.0 * at_first:.3g} %."
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
    which = f" of {figures['searches']}" if "searches" in figures else ""
    return (
        f"{failed:,} of {told:,} trials{which}, {100 * failed / told:.0f} %, failed, most often "
        f"by: {figures['reason']}."
    )


def _parts(figures: Figures) -> str:
    parts, stayed = figures["parts"], figures["stayed"]
    none = {0: "", 1: "; without one part nothing was better than the baseline"}.get(
        stayed, f"; without {stayed} parts nothing was better than the baseline"
    )
    return (
        f"Each of {parts} parts of the queries met what a search without it chose; what is "
        f"deployed was chosen by all. On {100.0 * figures['as_deployed']:.0f} % of the queries "
        f"both score the same{none}."
    )


def by_judge(figures: Figures) -> str:
    """Say what a judge's queries added to people's, of a ``JudgeUse`` as a mapping."""
    others = in_queries(figures["queries"], "other queries")
    if not figures["weight"]:
        return f"A judge graded {others}; they add nothing to people's."
    wide = f"the interval is as wide as that of {in_queries(figures['worth'])} of people's"
    return f"A judge graded {others}, which count by {figures['weight']:.2f}: {wide}."


def _as_one(figures: Figures) -> str:
    queries = in_queries(figures["queries"], figures["called"])
    return (
        f"Of {queries}, those with the same text or of one group count as one: "
        f"{figures['count']:,} in all."
    )


def _rare_losses(figures: Figures) -> str:
    loss, queries = figures["loss"], in_queries(figures["queries"], figures["called"])
    return (
        f"No query lost as much as {figures['seen_from']:g}. A loss of {loss:g} on one query in "
        f"{figures['one_in']:,} would undo the gain, and {queries} hold none of these in "
        f"{100.0 * figures['absent']:.0f} % of cases."
    )


_WORDS: Mapping[CaveatKind, Callable[[Figures], str]] = {
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
    CaveatKind.PARTS: _parts,
    CaveatKind.BY_JUDGE: by_judge,
    CaveatKind.AS_ONE: _as_one,
    CaveatKind.RARE_LOSSES: _rare_losses,
}
