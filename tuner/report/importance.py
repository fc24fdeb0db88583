"""Which parameters matter, and which do nothing."""

from __future__ import annotations

from collections.abc import Mapping

from tuner.core.shown import as_percent, joined
from tuner.report.chart import Axis, Chart, Numbers, Series, named_rows
from tuner.report.fanova import FEWEST_TRIALS, FORESTS, Importance, importances, leader
from tuner.report.parts import Block, Charts, Items, Section, Text
from tuner.report.review import Review

# A parameter whose whole range lies below this share hardly moves the objective.
LITTLE = 0.1
MOST_NAMED = 5
SHARES = tuple((n / 10, f"{n * 10} %") for n in range(11))


def shares(review: Review) -> dict[str, Importance]:
    """Return each parameter's share of what moves the objective; ``{}`` where that is unknown."""
    return importances(review.header, review.trials)


def section(review: Review, found: Mapping[str, Importance]) -> Section:
    """Rank the parameters, and name dead knobs and whatever else is odd about the system."""
    blocks: list[Block] = []
    if found:
        blocks.append(Charts("importance", (_chart(found),)))
    else:
        blocks.append(
            Text(
                f"It cannot be said: that takes at least {FEWEST_TRIALS} different trials that "
                "are not all worth the same."
            )
        )
    if review.summary.remarks:
        blocks.append(Items(review.summary.remarks))
    elif review.summary.winner is not None and review.header.dataset:
        blocks.append(Text("Every parameter changes some ranking: no dead knob was found."))
    lead = "Each parameter's share of what moves the objective, over the whole space."
    return Section("importance", "What matters", lead, tuple(blocks))


def _chart(found: Mapping[str, Importance]) -> Chart:
    ranked = list(found.items())[::-1]
    rows = tuple(float(row) for row in range(len(ranked)))
    described = [
        f"{name} {as_percent(one.share)} ({as_percent(one.low)} to {as_percent(one.high)})"
        for name, one in ranked
    ]
    return Chart(
        "importance",
        "Importance of the parameters",
        f"{_reading(found)} Shares add up to 100 %. They are means over {FORESTS} forests (fANOVA),"
        " each fitted to trials drawn anew; the thin lines span all of them.",
        "; ".join(reversed(described)),
        Axis("share", SHARES, span=(0.0, 1.03 * max(one.high for one in found.values()))),
        named_rows([f"{name}  {as_percent(one.share)}" for name, one in ranked]),
        (
            Series(
                "share",
                "bars",
                "bar",
                tuple(one.share for _, one in ranked),
                rows,
                tuple(described),
                tuple(one.low for _, one in ranked),
                tuple(one.high for _, one in ranked),
            ),
        ),
        Numbers(
            ("parameter", "share", "low", "high"),
            tuple((name, one.share, one.low, one.high) for name, one in found.items()),
        ),
        height=5 + 2 * len(ranked),
        has_legend=False,
    )


def _reading(found: Mapping[str, Importance]) -> str:
    """Name the leader where there is one, and what hardly matters."""
    first, *others = found
    little = [name for name, one in found.items() if one.high < LITTLE]
    if leader(found) is not None:
        text = f"{first} matters most, with {as_percent(found[first].share)}."
    elif not others:
        text = f"{first} is all that varies."
    else:
        rivals = [name for name in others if found[name].high >= found[first].low]
        text = f"{_named([first, *rivals])} cannot be ranked: their ranges overlap."
    if little:
        text += f" {_named(little)} hardly: any value does nearly as well."
    return text


def _named(names: list[str]) -> str:
    more = len(names) - MOST_NAMED
    if more > 0:
        return f"{', '.join(names[:MOST_NAMED])} and {more} more"
    return joined(names)
