"""Where the winner wins and loses: by query type, and the queries that changed most."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tuner.core.shown import counted, shortened
from tuner.core.study_record import is_clear
from tuner.evaluation.system_metrics import largest_difference
from tuner.report.chart import Axis, Chart, Numbers, chart_of_rows
from tuner.report.parts import (
    MISSING,
    AllQueries,
    Block,
    Charts,
    Queries,
    QueryCard,
    Section,
    Shown,
    Table,
    Text,
    shown,
    signed,
)
from tuner.report.places import cut
from tuner.report.review import Review
from tuner.run.side_by_side import Passage, Side, SideBySide
from tuner.stats import GroupComparison, per_group
from tuner.stats.pairs import ROUNDING

MOST_QUERIES = 10
# More types than this make no figure that can be read; the table holds them all.
MOST_TYPES = 40
# Values of the same answers, added up in another order.
LONGEST_TEXT = 400
LONGEST_TITLE = 120


def section(review: Review, listed: int = 0) -> Section:
    """Compare within each query type, and show what was retrieved where it changed most.

    ``listed`` is how many queries the page's list of all of them has; with 0 there is none.
    """
    title = "Where it wins and loses"
    lead = "Which queries does the change help, which does it hurt, and what was retrieved then?"
    if not review.rows:
        return Section("queries", title, lead, (Text(_missing(review)),))
    changed = [
        (row, row.change)
        for row in review.rows
        if row.change is not None and abs(row.change) > ROUNDING
    ]
    gained = sorted((one for one in changed if one[1] > 0), key=lambda one: -one[1])
    lost = sorted((one for one in changed if one[1] < 0), key=lambda one: one[1])
    blocks: list[Block] = [*_types(review)]
    if not changed:
        blocks.append(Text("Winner and baseline answered every query equally well."))
    for called, most, all_ in (("Gained", "gained most", gained), ("Lost", "lost most", lost)):
        if all_:
            number = min(len(all_), MOST_QUERIES)
            name = f"{called}: the {counted(number, 'query', 'queries')} that {most}"
            cards = tuple(_card(row, change) for row, change in all_[:MOST_QUERIES])
            blocks.append(Queries(f"{name}, of {len(all_):,}", cards))
    if review.rows[0].part == "tune":
        text = "No query was held out, so these are the queries that chose the winner."
        blocks.insert(0, Text(text, True))
    if listed:
        blocks.append(AllQueries(f"All {counted(listed, 'query', 'queries')}", _ABOUT_ALL))
    return Section("queries", title, lead, tuple(blocks))


_ABOUT_ALL = (
    "Open one to see what both retrieved. j and k, or the arrows, go down and up, Enter opens, and "
    "Escape closes."
)


def changes(review: Review) -> Numbers:
    """Return every query's composite with both, and its change, for a CSV file."""
    return Numbers(
        ("query_id", "query", "query_type", "part", "winner", "baseline", "change"),
        tuple(
            (
                row.query_id,
                row.query,
                row.query_type,
                row.part,
                row.winner.composite,
                row.baseline.composite,
                row.change,
            )
            for row in review.rows
        ),
    )


def _missing(review: Review) -> str:
    if not review.header.dataset:
        return "The system measures itself, so its queries are not known here."
    if review.summary.baseline is None:
        return (
            "There is no baseline to compare with, query by query, so there is no list of queries. "
            "Name one in the configuration, as baseline: {…}, in the next study."
        )
    if review.summary.winner is None:
        # Texts of queries and answers are not in the journal; a report asks nothing for them.
        return (
            "Queries are compared at the end of a study, when the winner is known: the list of "
            "queries is made then."
        )
    return "No answers of winner and baseline were kept."


def _types(review: Review) -> list[Block]:
    rows = review.rows
    types = [row.query_type for row in rows]
    if len(set(types)) < 2:
        return []
    winner, baseline = (
        np.array([np.nan if one.composite is None else one.composite for one in sides])
        for sides in ([row.winner for row in rows], [row.baseline for row in rows])
    )
    groups = per_group(
        winner,
        baseline,
        types,
        seed=review.header.seed,
        confidence=review.confidence,
        largest=largest_difference(review.weights),
        permutations=0,
        resamples=0,
    )
    shares = f"{100 * review.confidence:g} % interval"
    columns = ("query type", "queries", "winner", "baseline", "difference", shares)
    table = Table(
        "Composite by query type; clear: still so when corrected for the number of types",
        (*columns, "better / worse", "reading"),
        tuple(_type_row(group) for group in groups),
        frozenset((*columns[1:], "better / worse")),
    )
    drawn = [group for group in groups if group.comparison.interval is not None]
    if not 0 < len(drawn) <= MOST_TYPES:
        return [table]
    return [Charts("types", (_chart(drawn),)), table]


def _type_row(group: GroupComparison) -> tuple[str, ...]:
    one = group.comparison
    interval = MISSING
    if one.interval is not None:
        interval = f"{signed(one.interval[0])} to {signed(one.interval[1])}"
    return (
        group.group or "(none)",
        f"{one.n:,}",
        shown(one.treatment_mean),
        shown(one.control_mean),
        signed(one.mean_difference),
        interval,
        f"{one.wins} / {one.losses}",
        _reading(group),
    )


def _reading(group: GroupComparison) -> str:
    if group.adjusted_p is None:
        return "too few queries to tell"
    if not is_clear(group.adjusted_p):
        return "not clear"
    return "clearly better" if (group.comparison.mean_difference or 0.0) > 0 else "clearly worse"


def _chart(groups: Sequence[GroupComparison]) -> Chart:
    found = [group.comparison for group in groups]
    ends = [one.interval or (0.0, 0.0) for one in found]
    described = [
        f"{group.group or '(none)'}: {signed(group.comparison.mean_difference)}, {_reading(group)}"
        for group in groups
    ]
    return chart_of_rows(
        "types",
        "Winner less baseline, by query type",
        "To the right of the line the winner is better on queries of that type. Few queries make "
        "wide bars: believe the types that are called clear.",
        Axis("difference in the composite", zero=True),
        [
            (
                cut(group.group or "(none)"),
                one.mean_difference or 0.0,
                *end,
                f"{text} ({counted(one.n, 'query', 'queries')})",
            )
            for group, one, end, text in zip(groups, found, ends, described, strict=True)
        ],
        Numbers(
            ("query_type", "queries", "winner", "baseline", "difference", "low", "high"),
            tuple(
                (g.group, one.n, one.treatment_mean, one.control_mean, one.mean_difference, *end)
                for g, one, end in zip(groups, found, ends, strict=True)
            ),
        ),
        description="; ".join(described),
    )


def _card(row: SideBySide, change: float) -> QueryCard:
    kind = f", {row.query_type}" if row.query_type else ""
    relevant = counted(len(row.relevant), "relevant passage")
    return QueryCard(
        query=shortened(row.query, LONGEST_TEXT) or row.query_id,
        facts=f"{row.query_id}{kind}; {relevant}",
        change=signed(change),
        winner=_shown(row.winner.retrieved),
        baseline=_shown(row.baseline.retrieved),
        winner_found=_found(row.winner),
        baseline_found=_found(row.baseline),
    )


def _found(side: Side) -> str:
    return f"composite {shown(side.composite)}"


def _shown(passages: Sequence[Passage]) -> tuple[Shown, ...]:
    return tuple(
        Shown(one.id, shortened(one.title, LONGEST_TITLE), one.relevant) for one in passages
    )
