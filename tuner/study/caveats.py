"""What a verdict's sentence adds in brackets: why its figures promise less than they seem to."""

from __future__ import annotations

from collections.abc import Sequence

from tuner.stats import PairedComparison
from tuner.study.looks import LOOKS_FILE, EarlierLooks
from tuner.study.more_queries import in_queries
from tuner.study.price import FEWEST_THAT_DIFFER

# With fewer queries 95 % intervals were found to cover less than 94 % for a good part of the pairs
# (experiments/statistics/README.md).
FEWEST_QUERIES = 50


def caveats(
    comparison: PairedComparison,
    *,
    asked: int,
    run_shift: float = 0.0,
    looks: EarlierLooks | None = None,
    worse_on: Sequence[str] = (),
) -> str:
    """Return every remark that applies, each in brackets after a space; "" where none does.

    ``asked`` is how many queries were asked, also those without a value; ``worse_on`` names the
    query types that clearly lose.
    """
    return (
        f"{_worse(worse_on)}{_left_out(comparison, asked)}{_few_queries(comparison)}"
        f"{_moving(run_shift)}{_second_look(looks)}{_unreadable(looks)}"
    )


def _worse(types: Sequence[str]) -> str:
    """Say which queries pay for the others' gain."""
    if not types:
        return ""
    named = types[0] if len(types) == 1 else f"{', '.join(types[:-1])} and {types[-1]}"
    return f" (It is clearly worse on queries of the type{'s' * (len(types) > 1)} {named}.)"


def _left_out(comparison: PairedComparison, asked: int) -> str:
    """Say how many queries a mean of the composite does not stand on."""
    lacking = asked - comparison.n
    if not lacking:
        return ""
    lack = "lacks" if lacking == 1 else "lack"
    is_left = "is" if lacking == 1 else "are"
    return (
        f" ({lacking} of the {in_queries(asked)} {lack} a metric of the composite and {is_left} "
        "left out.)"
    )


def _few_queries(comparison: PairedComparison) -> str:
    """Warn of an interval that rests on a handful of queries: it covers less than it promises."""
    if comparison.interval_kind != "t":
        return ""
    differ = comparison.wins + comparison.losses
    if differ < FEWEST_THAT_DIFFER:
        few = f"Only {differ} of the queries {'differs' if differ == 1 else 'differ'}"
    elif comparison.n < FEWEST_QUERIES:
        few = f"There are fewer than {FEWEST_QUERIES} queries"
    else:
        return ""
    return f" ({few}: the truth lies outside such an interval more often than it promises.)"


def _moving(run_shift: float) -> str:
    if run_shift == 0.0:
        return ""
    return (
        f" (Asked twice, the same configuration differed from itself by {run_shift:.4f}: "
        "the interval allows for that.)"
    )


def _second_look(looks: EarlierLooks | None) -> str:
    if looks is None or looks.seen == 0:
        return ""
    if looks.queries == 1:
        some = "The held-out query was"
    elif looks.seen == looks.queries:
        some = f"All {looks.queries} held-out queries were"
    else:
        some = f"{looks.seen} of the {looks.queries} held-out queries"
        some += " was" if looks.seen == 1 else " were"
    times = {1: "once", 2: "twice"}.get(looks.count, f"{looks.count} times")
    counted = (
        f"These queries have decided {times} before: every further look makes a false winner more "
        "likely; hold out fresh queries for a decision that matters."
        if looks.count
        else "That is too few to count as a further look."
    )
    return (
        f" ({some} already used for a verdict, last on {looks.last_date} by the study "
        f"{looks.last_study}. {counted})"
    )


def _unreadable(looks: EarlierLooks | None) -> str:
    if looks is None or looks.unreadable == 0:
        return ""
    lines = "1 line" if looks.unreadable == 1 else f"{looks.unreadable} lines"
    return (
        f" ({lines} of {LOOKS_FILE} cannot be read, so these queries may have decided more often "
        "than is known: restore that file from a copy.)"
    )
