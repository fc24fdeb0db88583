"""Who was champion when: each study or night with its figures and its verdict, oldest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tuner.report.chart import Axis, Chart, Numbers, Series, chart_of_rows, spread
from tuner.report.parts import MISSING, Block, Charts, Items, Section, Table, shown, signed
from tuner.report.places import cut
from tuner.report.review import Review

MOST_TICKS = 8
# More rows than this make no figure that can be read; the table holds them all.
MOST_DRAWN = 30


@dataclass(frozen=True)
class Step:
    """One study or night; None where something was not measured.

    Attributes:
        when: its date, or its name.
        champion: what ran when it began, and its objective on the tune queries.
        challenger: what it found, and its objective on the tune queries; empty where nothing.
        difference: challenger less champion as the verdict has it, with its interval.
        verdict: the verdict's outcome in words.
        outcome: what came of it.
        drift: what was said of the champion's drift; empty where nobody looked.
        is_promoted: whether the challenger is what ran afterwards, as far as is known.
    """

    when: str
    champion: str
    champion_score: float | None = None
    challenger: str = ""
    challenger_score: float | None = None
    difference: float | None = None
    interval: tuple[float, float] | None = None
    verdict: str = ""
    outcome: str = ""
    drift: str = ""
    is_promoted: bool = False


def steps_of(studies: Sequence[Review], labels: Sequence[str]) -> tuple[Step, ...]:
    """Return the timeline of studies: the baseline as champion, the winner as what challenged it.

    A baseline that is an earlier study's winner is called so. Nobody wrote down what went into
    service, so ``is_promoted`` is what the verdict says.
    """
    found, winners = [], dict[str, str]()
    for label, review in zip(labels, studies, strict=True):
        chosen, baseline = review.chosen, review.baseline
        champion = (
            "none" if baseline is None else winners.get(_key(baseline.params), "the baseline")
        )
        comparison = review.verdict.get("comparison") or {}
        interval = comparison.get("interval")
        outcome = str(review.verdict.get("outcome", ""))
        is_new = chosen is not None and not review.is_baseline
        found.append(
            Step(
                label,
                champion,
                None if baseline is None else baseline.tune_objective,
                "" if chosen is None or not is_new else f"{chosen.arm} #{chosen.trial}",
                None if chosen is None or not is_new else chosen.tune_objective,
                comparison.get("mean_difference"),
                None if interval is None else (float(interval[0]), float(interval[1])),
                outcome,
                _ended(review),
                is_promoted=outcome == "deploy",
            )
        )
        if chosen is not None:
            winners.setdefault(_key(chosen.params), f"winner of {label}")
    return tuple(found)


def section(steps: Sequence[Step], moves: Sequence[str] = (), *, called: str) -> Section:
    """Draw the champions over time, and tabulate every study or night.

    ``called`` is what a step is: "study" or "night". ``moves`` say who made what champion.
    """
    lead = (
        f"What ran when each {called} began, what challenged it, and what the verdict said. Scores "
        "are the objective on the queries that were tuned on, which flatters what was chosen by "
        "them; the difference is the verdict's, on held-out queries where there are any."
    )
    blocks: list[Block] = []
    charts = [chart for chart in (_scores(steps, called), _differences(steps, called)) if chart]
    if charts:
        blocks.append(Charts("champions", tuple(charts)))
    blocks.append(_table(steps, called))
    if moves:
        blocks.append(Items(tuple(moves)))
    return Section("champions", "Champions over time", lead, tuple(blocks))


def _scores(steps: Sequence[Step], called: str) -> Chart | None:
    champions = [(float(n), one.champion_score, one) for n, one in enumerate(steps)]
    known = [(n, score, one) for n, score, one in champions if score is not None]
    challengers = [
        (float(n), one.challenger_score, one)
        for n, one in enumerate(steps)
        if one.challenger_score is not None
    ]
    if not known and not challengers:
        return None
    series: list[Series] = []
    if known:
        points = ((n, score, _text(one, score, one.champion)) for n, score, one in known)
        series.append(Series.of("champion", "steps", "arm", points, place=0))
    promoted = [row for row in challengers if row[2].is_promoted]
    others = [row for row in challengers if not row[2].is_promoted]
    if others:
        points = ((n, score, _text(one, score, one.challenger)) for n, score, one in others)
        series.append(Series.of("challenger", "points", "arm", points, place=1))
    if promoted:
        points = ((n, score, _text(one, score, one.challenger)) for n, score, one in promoted)
        series.append(Series.of("challenger that was better", "points", "chosen", points))
    ticks = tuple((float(n), cut(steps[n].when)) for n in spread(len(steps), MOST_TICKS))
    rows = tuple(
        (one.when, one.champion, one.champion_score, one.challenger, one.challenger_score,
         one.difference, *(one.interval or (None, None)), one.verdict, one.outcome, one.drift)
        for one in steps
    )  # fmt: skip
    columns = (called, "champion", "champion_score", "challenger", "challenger_score", "difference",
               "low", "high", "verdict", "outcome", "drift")  # fmt: skip
    return Chart(
        "champions",
        f"Objective of champion and challenger, by {called}",
        "The line is what ran, points are what was found. Data may have changed in between: then "
        "two points are not on the same queries.",
        "; ".join(f"{one.when}: {_said(one)}" for one in steps[-MOST_DRAWN:]),
        Axis(called, ticks, span=(-0.5, len(steps) - 0.5)),
        Axis("objective, tune queries"),
        tuple(series),
        Numbers(columns, rows),
    )


def _differences(steps: Sequence[Step], called: str) -> Chart | None:
    known = [one for one in steps if one.difference is not None and one.interval is not None]
    drawn = known[-MOST_DRAWN:]
    if not drawn:
        return None
    last = f" The last {len(drawn)} of {len(known)}." if len(known) > len(drawn) else ""
    return chart_of_rows(
        "verdicts",
        f"Challenger less champion, by {called}",
        "Dots are the differences that the verdicts went by, bars their intervals, each at the "
        f"level of that verdict.{last}",
        Axis("difference", zero=True),
        [
            (cut(one.when), one.difference or 0.0, *(one.interval or (0.0, 0.0)),
             f"{one.when}: {_said(one)}")
            for one in drawn
        ],
        Numbers(
            (called, "difference", "low", "high", "verdict"),
            tuple(
                (one.when, one.difference, *(one.interval or (None, None)), one.verdict)
                for one in known
            ),
        ),
        description="; ".join(f"{one.when}: {_said(one)}" for one in drawn),
    )  # fmt: skip


def _table(steps: Sequence[Step], called: str) -> Table:
    has_drift = any(one.drift for one in steps)
    columns = (called, "champion", "score", "challenger", "its score", "difference", "interval",
               "verdict", "outcome", *(("drift",) if has_drift else ()))  # fmt: skip
    rows = []
    for one in steps:
        interval = MISSING
        if one.interval is not None:
            interval = f"{signed(one.interval[0])} to {signed(one.interval[1])}"
        rows.append(
            (
                one.when,
                one.champion or MISSING,
                shown(one.champion_score),
                one.challenger or MISSING,
                shown(one.challenger_score),
                signed(one.difference),
                interval,
                one.verdict or MISSING,
                one.outcome or MISSING,
                *((one.drift or MISSING,) if has_drift else ()),
            )
        )
    strong = frozenset(n for n, one in enumerate(steps) if one.is_promoted)
    numeric = frozenset(("score", "its score", "difference", "interval"))
    caption = f"Every {called}, oldest first; bold: the challenger is the champion from there on"
    if called == "study":
        caption = "Every study, oldest first; bold: the verdict is to deploy what it found"
    return Table(caption, columns, tuple(rows), numeric, strong)


def _text(step: Step, score: float, called: str) -> str:
    return f"{step.when}: {called or 'nothing'} {shown(score)}; {_said(step)}"


def _said(step: Step) -> str:
    parts = [step.verdict or "no verdict"]
    if step.difference is not None:
        parts.append(f"difference {signed(step.difference)}")
    if step.outcome:
        parts.append(step.outcome)
    if step.drift:
        parts.append(f"drift: {step.drift}")
    return ", ".join(parts)


def _ended(review: Review) -> str:
    summary = review.summary
    return f"{summary.state}, as {summary.ended_by}" if summary.ended_by else summary.state


def begun(review: Review) -> str:
    """Return when a study was begun, for people."""
    when = datetime.fromtimestamp(review.header.created_at, UTC)
    return when.strftime("%Y-%m-%d %H:%M UTC")


def _key(params: Mapping[str, Any]) -> str:
    """Name parameters: equal for equal ones."""
    return "; ".join(f"{name}={params[name]!r}" for name in sorted(params))
