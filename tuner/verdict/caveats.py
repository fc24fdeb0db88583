"""Why a verdict's figures promise less than they seem to: what stands in brackets behind it."""

from __future__ import annotations

from collections.abc import Sequence

from tuner.stats import PairedComparison
from tuner.study.failures import Failures
from tuner.verdict.looks import EarlierLooks
from tuner.verdict.more_queries import HELD_OUT
from tuner.verdict.price import FEWEST_THAT_DIFFER
from tuner.verdict.ruling import Caveat, CaveatKind, Figures

# With fewer queries 95 % intervals were found to cover less than 94 % for a good part of the pairs
# (experiments/statistics/README.md).
FEWEST_QUERIES = 50


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
    if run_shift:
        found.append(Caveat(CaveatKind.MOVES, {"shift": run_shift}))
    if looks is not None and looks.seen:
        found.append(Caveat(CaveatKind.LOOKED_AT, _figures(looks, alpha)))
    if looks is not None and looks.unreadable:
        found.append(Caveat(CaveatKind.UNREADABLE, {"lines": looks.unreadable}))
    return tuple(found)


def caveats_of_failures(failures: Failures) -> tuple[Caveat, ...]:
    """Return what failed trials take from a verdict; nothing where few enough failed."""
    if not failures.is_noticed:
        return ()
    figures = {"failed": failures.failed, "told": failures.told, "reason": failures.short_reason}
    return (Caveat(CaveatKind.FAILED_TRIALS, figures),)


def _figures(looks: EarlierLooks, alpha: float) -> dict[str, float | str]:
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
        "by_chance": min((looks.count + 1) * alpha / 2.0, 1.0),
    }
