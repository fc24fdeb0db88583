"""Which winner is better: paired tests on the queries that two studies have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tuner.core.rankings import FloatArray
from tuner.core.shown import counted
from tuner.core.study_record import is_clear
from tuner.evaluation.objective import composite_values
from tuner.evaluation.system_metrics import largest_difference
from tuner.report.chart import Axis, Numbers, chart_of_rows
from tuner.report.parts import MISSING, Block, Charts, Section, Table, Text, shown, signed
from tuner.report.places import cut
from tuner.report.review import Review
from tuner.run.planning import measuring
from tuner.run.side_by_side import SideBySide
from tuner.stats import PairedComparison, compare_paired, correct_holm
from tuner.verdict.looks import query_digest

# More comparisons than this make no figure that can be read; the table holds them all.
MOST_DRAWN = 20


@dataclass(frozen=True)
class Common:
    """The queries that two studies share, and what both winners are worth on them.

    Attributes:
        before, now: each query's composite, shape (queries,), by the weights of the later study.
        tuned_on: how many of them either study tuned on.
        judged_otherwise: how many share their words and not their relevant passages; left out.
        twice: how many words stand for several queries of one study; left out.
        why_not: why nothing can be compared; empty where it can.
    """

    before: FloatArray
    now: FloatArray
    tuned_on: int = 0
    judged_otherwise: int = 0
    twice: int = 0
    why_not: str = ""


@dataclass(frozen=True)
class Duel:
    """Two winners on common queries; ``paired`` is None where they cannot be compared.

    ``adjusted_p`` is corrected for the number of comparisons on the page.
    """

    before: str
    now: str
    common: Common
    paired: PairedComparison | None = None
    adjusted_p: float | None = None

    @property
    def called(self) -> str:
        """Return which two are compared."""
        return f"{self.now} less {self.before}"

    @property
    def reading(self) -> str:
        """Say in words what the test tells, and what flatters it."""
        if self.paired is None:
            return self.common.why_not
        if self.paired.mean_difference is None:
            return "no query has a value from both"
        if self.paired.losses == self.paired.wins == 0:
            found = "the same"
        elif self.paired.interval is None or self.adjusted_p is None:
            found = "too few queries to tell"
        elif not is_clear(self.adjusted_p):
            found = "not clear"
        else:
            found = "better" if self.paired.mean_difference > 0 else "worse"
        if not self.common.tuned_on:
            return found
        return f"{found}; {self.common.tuned_on:,} of these queries were tuned on"


def duels(studies: Sequence[Review], labels: Sequence[str]) -> tuple[Duel, ...]:
    """Compare each winner with the one before it, and the last with the first.

    All p-values are corrected together, by Holm's method.
    """
    pairs = list(pairwise(range(len(studies))))
    if len(studies) > 2:
        pairs.append((0, len(studies) - 1))
    found = []
    for first, second in pairs:
        common = common_queries(studies[first], studies[second])
        paired = None
        if not common.why_not:
            weights = studies[second].weights
            paired = compare_paired(
                common.now,
                common.before,
                seed=studies[second].header.seed,
                permutations=0,
                resamples=0,
            ).within(largest_difference(weights))
        found.append(Duel(labels[first], labels[second], common, paired))
    adjusted = correct_holm([None if d.paired is None else d.paired.p_value for d in found])
    return tuple(
        Duel(d.before, d.now, d.common, d.paired, None if np.isnan(p) else float(p))
        for d, p in zip(found, adjusted, strict=True)
    )


def common_queries(before: Review, now: Review) -> Common:
    """Return what both winners are worth on the queries that both studies put side by side.

    Queries are known by their words, whatever their ids. Of those, only the ones whose relevant
    passages are the same count, and that stand for one query in each study.
    """
    nothing = np.empty(0)
    if not before.rows or not now.rows:
        return Common(nothing, nothing, why_not="no values by query were kept of one of them")
    if measuring(before.header.config) != measuring(now.header.config):
        return Common(nothing, nothing, why_not="their metrics are not measured alike")
    if not now.weights:
        return Common(nothing, nothing, why_not="the later study has no composite")
    (ours, our_twice), (theirs, their_twice) = _by_words(now.rows), _by_words(before.rows)
    twice = (our_twice & theirs.keys()) | (their_twice & ours.keys()) | (our_twice & their_twice)
    both = [key for key in ours if key in theirs and key not in twice]
    same = [key for key in both if set(ours[key].relevant) == set(theirs[key].relevant)]
    left_out = len(both) - len(same)
    found = Common(nothing, nothing, 0, left_out, len(twice))
    if not same:
        why = "no query is common to both" if not both else "every common query is judged otherwise"
        return Common(nothing, nothing, 0, left_out, len(twice), why)
    sides = [_composite([rows[key] for key in same], now.weights) for rows in (theirs, ours)]
    missing = [name for name, values in sides[0][1].items() if np.isnan(values).all()]
    if missing:
        why = f"the earlier study did not measure {', '.join(missing)}"
        return Common(nothing, nothing, 0, left_out, len(twice), why)
    tuned_on = sum(theirs[key].part == "tune" or ours[key].part == "tune" for key in same)
    return Common(sides[0][0], sides[1][0], tuned_on, found.judged_otherwise, found.twice)


def section(found: Sequence[Duel], studies: Sequence[Review]) -> Section:
    """Tabulate the comparisons, with what they rest on."""
    title = "Is the later winner better?"
    lead = (
        "The winners, each as it answered in its own study, on the queries that two studies have "
        "in common: the same words, and the same relevant passages."
    )
    blocks: list[Block] = []
    tested = [duel for duel in found if duel.paired is not None]
    if tested:
        blocks += _figure(tested)
    blocks.append(_table(found))
    blocks += [Text(text, is_note=True) for text in _remarks(found, studies)]
    return Section("winners", title, lead, tuple(blocks))


def _table(found: Sequence[Duel]) -> Table:
    columns = (
        "winner of",
        "queries",
        "before",
        "now",
        "difference",
        "95 % interval",
        "better / worse",
        "p, corrected",
        "reading",
    )
    tests = sum(duel.adjusted_p is not None for duel in found)
    caption = "Composite of both winners, by the weights of the later study"
    if tests > 1:
        caption += (
            f"; p is corrected for the {tests} comparisons of this table by Holm's method, and the "
            "reading goes by it; each interval is for its comparison alone"
        )
    rows = tuple(_row(duel) for duel in found)
    return Table(caption, columns, rows, frozenset(columns[1:8]))


def _row(duel: Duel) -> tuple[str, ...]:
    one = duel.paired
    if one is None:
        return (duel.called, *(MISSING,) * 7, duel.reading)
    interval = MISSING
    if one.interval is not None:
        interval = f"{signed(one.interval[0])} to {signed(one.interval[1])}"
    return (
        duel.called,
        f"{one.n:,}",
        shown(one.control_mean),
        shown(one.treatment_mean),
        signed(one.mean_difference),
        interval,
        f"{one.wins} / {one.losses}",
        MISSING if duel.adjusted_p is None else _p(duel.adjusted_p),
        duel.reading,
    )


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _figure(tested: Sequence[Duel]) -> list[Block]:
    rows = [
        (
            f"{cut(duel.now)}\nless {cut(duel.before)}",
            one.mean_difference or 0.0,
            *one.interval,
            f"{duel.called}: {duel.reading}",
        )
        for duel in tested
        if (one := duel.paired) is not None and one.interval is not None
    ]
    if not 0 < len(rows) <= MOST_DRAWN:
        return []
    numbers = Numbers(
        ("before", "now", "queries", "mean_before", "mean_now", "difference", "low", "high", "p"),
        tuple(
            (
                duel.before,
                duel.now,
                one.n,
                one.control_mean,
                one.treatment_mean,
                one.mean_difference,
                *(one.interval or (None, None)),
                duel.adjusted_p,
            )
            for duel in tested
            if (one := duel.paired) is not None
        ),
    )
    chart = chart_of_rows(
        "winners",
        "Later winner less earlier winner, on common queries",
        "Dots are mean differences of the composite, bars their 95 % intervals. To the right of "
        "the line the later winner is better; a bar that crosses the line leaves it open.",
        Axis("difference in the composite", zero=True),
        rows,
        numbers,
        description="; ".join(f"{duel.called}: {duel.reading}" for duel in tested),
    )
    return [Charts("winners", (chart,))]


def _remarks(found: Sequence[Duel], studies: Sequence[Review]) -> Iterator[str]:
    """Say what the comparisons rest on, and what weakens them."""
    for duel in found:
        out = [
            text
            for count, text in (
                (duel.common.judged_otherwise, "judged otherwise since"),
                (duel.common.twice, "asked more than once in one study"),
            )
            if count
            for text in (f"{counted(count, 'common query', 'common queries')} {text}",)
        ]
        if out:
            yield f"{duel.called}: left out are {' and '.join(out)}."
    tested = [duel for duel in found if duel.paired is not None]
    if not tested:
        return
    if any(duel.common.tuned_on for duel in tested):
        yield (
            "Queries that a study tuned on flatter its winner: where they decide, only a test on "
            "queries that neither study saw tells."
        )
    else:
        yield (
            "All of these queries were held out in both studies. Each study's verdict was given on "
            "them, so they chose which winners went into service: each further look at the same "
            "queries makes a chance finding likelier."
        )
    prints = {review.header.fingerprints.get("dataset") for review in studies}
    if len(prints) > 1:
        yield (
            "The data changed between these studies, and each winner answered from the documents "
            "of its own study: a difference may come from them, and not from the parameters. To "
            "compare two configurations on one version of the data: tuner compare CONFIG --a "
            "RUN_DIR --b RUN_DIR."
        )
    if any("labels" in review.header.dataset for review in studies):
        yield (
            "Some of the labels are a judge's. A verdict allows for the judge's errors; this table "
            "takes the labels as they are."
        )


def _by_words(rows: Sequence[SideBySide]) -> tuple[dict[str, SideBySide], set[str]]:
    """Return the queries by their words, and the words that stand for several."""
    found: dict[str, SideBySide] = {}
    twice: set[str] = set()
    for row in rows:
        key = query_digest(row.query)
        if key in found:
            twice.add(key)
        found[key] = row
    return {key: row for key, row in found.items() if key not in twice}, twice


def _composite(
    rows: Sequence[SideBySide], weights: Mapping[str, float]
) -> tuple[FloatArray, dict[str, FloatArray]]:
    values = {
        name: np.array(
            [
                np.nan if value is None else value
                for row in rows
                for value in (row.winner.metrics.get(name),)
            ],
            dtype=np.float64,
        )
        for name, weight in weights.items()
        if weight
    }
    return composite_values(values, weights), values
