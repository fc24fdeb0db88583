"""Which parameters matter, and which do nothing."""

from __future__ import annotations

from collections.abc import Mapping

from tuner.report.chart import Axis, Chart, Numbers, Series, named_rows
from tuner.report.optuna_study import FEWEST_TRIALS, importances
from tuner.report.parts import Block, Charts, Items, Section, Text
from tuner.report.review import Review

# Below this share a parameter hardly moves the objective.
LITTLE = 0.05
MOST_NAMED = 5
SHARES = tuple((n / 10, f"{n * 10} %") for n in range(11))


def shares(review: Review) -> dict[str, float]:
    """Return each parameter's share of what moves the objective; ``{}`` where that is unknown."""
    return importances(review.header, review.trials)


def section(review: Review, found: Mapping[str, float]) -> Section:
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


def _chart(found: Mapping[str, float]) -> Chart:
    ranked = sorted(found.items(), key=lambda one: one[1])
    rows = tuple(float(row) for row in range(len(ranked)))
    little = [name for name, share in reversed(ranked) if share < LITTLE]
    caption = f"{ranked[-1][0]} matters most, with {100 * ranked[-1][1]:.0f} %."
    if little:
        more = f" and {len(little) - MOST_NAMED} more" if len(little) > MOST_NAMED else ""
        caption += f" {', '.join(little[:MOST_NAMED])}{more} hardly: any value does nearly as well."
    return Chart(
        "importance",
        "Importance of the parameters",
        f"{caption} Shares add up to 100 % (fANOVA, over a forest fitted to the trials).",
        "; ".join(f"{name} {100 * share:.0f} %" for name, share in reversed(ranked)),
        # Room for the figures beside the bars.
        Axis("share", SHARES, span=(0.0, 1.15 * ranked[-1][1])),
        named_rows([name for name, _ in ranked]),
        (
            Series(
                "share",
                "bars",
                "bar",
                tuple(share for _, share in ranked),
                rows,
                tuple(f"{name}: {100 * share:.1f} %" for name, share in ranked),
            ),
        ),
        Numbers(("parameter", "share"), tuple(reversed(ranked))),
        height=5 + 2 * len(ranked),
        has_legend=False,
    )
