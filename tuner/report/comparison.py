"""Winner against baseline: every metric with its paired difference, and the parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tuner.core.rankings import FloatArray
from tuner.core.study_facts import whole_params
from tuner.evaluation.objective import COMPOSITE, paid_metric
from tuner.evaluation.system_metrics import is_better_lower, largest_difference
from tuner.report.chart import Axis, Numbers, chart_of_rows
from tuner.report.parts import (
    MISSING,
    Block,
    Charts,
    Section,
    Table,
    Text,
    shown,
    shown_param,
    signed,
)
from tuner.report.review import Review
from tuner.stats import PairedComparison, compare_paired

OBJECTIVE = "objective, with its price"


@dataclass(frozen=True)
class Compared:
    """One metric of both; ``paired`` is None where its values by query are not known."""

    name: str
    winner: float | None
    baseline: float | None
    paired: PairedComparison | None = None

    @property
    def difference(self) -> float | None:
        """Return winner less baseline: paired where that is known, else of the means."""
        if self.paired is not None and self.paired.mean_difference is not None:
            return self.paired.mean_difference
        if self.winner is None or self.baseline is None:
            return None
        return self.winner - self.baseline

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the interval of the difference."""
        return None if self.paired is None else self.paired.interval

    @property
    def reading(self) -> str:
        """Say in a word what the interval tells."""
        if self.paired is None:
            return "not known by query" if self.difference else MISSING
        if self.interval is None:
            return "no interval"
        low, high = self.interval
        if low == high == 0.0:
            return "the same"
        if is_better_lower(self.name):
            low, high = -high, -low
        return "better" if low > 0 else "worse" if high < 0 else "not clear"


def section(review: Review) -> Section:
    """Show both side by side, with intervals."""
    compared = compare(review)
    if not compared:
        missing = "There is no baseline to compare with."
        if review.chosen is None:
            missing = "There is nothing to compare: no trial was scored."
        blocks: tuple[Block, ...] = (Text(missing), *_parameters(review))
    elif review.is_baseline:
        text = "The winner is the baseline itself: no configuration did better than it."
        blocks = (Text(text), _table(review, compared), *_parameters(review))
    else:
        blocks = (
            *_figures(review, compared),
            _table(review, compared),
            *_formula(review),
            *_guardrails(review.verdict.get("guardrails") or {}),
            *_parts(review.verdict.get("parts") or []),
            *_parameters(review),
        )
    title = f"{review.called.capitalize()} against baseline"
    return Section("comparison", title, _lead(review, compared), blocks)


def _lead(review: Review, compared: Sequence[Compared]) -> str:
    if not any(one.paired is not None for one in compared):
        return "Means as they were reported; without values by query there are no intervals."
    share = f"{100 * review.confidence:g} %"
    paired = (
        f"Differences are {review.called} less baseline, query by query; the true one lies in the "
        f"interval with {share} confidence. An interval that leaves out 0 is a clear difference"
    )
    if review.rows and review.rows[0].part == "holdout":
        return f"{paired}. All on held-out queries, which the search has not seen."
    return (
        f"{paired}, but these are the queries that the search has seen: they flatter what it chose."
    )


def _table(review: Review, compared: Sequence[Compared]) -> Table:
    is_paired = any(one.paired is not None for one in compared)
    strong = frozenset({0}) if compared[0].name == COMPOSITE else frozenset()
    rows = tuple(_row(one, is_paired=is_paired) for one in compared)
    columns: tuple[str, ...] = ("metric", review.called, "baseline", "difference")
    if not is_paired:
        return Table("Means", columns, rows, frozenset(columns[1:]), strong)
    columns += (f"{100 * review.confidence:g} % interval", "d_z", "queries better / worse")
    caption = (
        "Each interval is for its metric alone; the verdict rests on the composite. d_z: Cohen's d "
        "of paired values, the mean difference in standard deviations of the differences"
    )
    return Table(caption, (*columns, "reading"), rows, frozenset(columns[1:]), strong)


def _row(one: Compared, *, is_paired: bool) -> tuple[str, ...]:
    cost, like, paired = is_better_lower(one.name), one.baseline, one.paired
    values = (
        f"{one.name} (lower is better)" if cost else one.name,
        shown(one.winner),
        shown(one.baseline),
        signed(one.difference, like),
    )
    if not is_paired:
        return values
    interval = MISSING
    if one.interval is not None:
        interval = f"{signed(one.interval[0], like)} to {signed(one.interval[1], like)}"
    counts = MISSING if paired is None else f"{paired.wins} / {paired.losses}"
    size = None if paired is None else paired.effect_size
    effect_size = MISSING if size is None else f"{size:+.2f}"
    return (*values, interval, effect_size, counts, one.reading)


def _figures(review: Review, compared: Sequence[Compared]) -> tuple[Block, ...]:
    """Draw the differences of the metrics that are shares, which one axis can hold."""
    drawn = [
        one
        for one in compared
        if one.interval is not None
        and not is_better_lower(one.name)
        and max(abs(one.winner or 0.0), abs(one.baseline or 0.0)) <= 1.0
    ]
    if not drawn:
        return ()
    bars = []
    for one in drawn:
        low, high = one.interval or (0.0, 0.0)
        text = f"{one.name}: {signed(one.difference)} ({signed(low)} to {signed(high)})"
        bars.append((one.name, one.difference or 0.0, low, high, text))
    share = f"{100 * review.confidence:g} %"
    chart = chart_of_rows(
        "differences",
        f"{review.called.capitalize()} less baseline, by metric",
        f"Dots are mean differences, bars their {share} intervals. To the right of the line the "
        f"{review.called} is better; a bar that crosses the line leaves it open.",
        Axis("difference", zero=True),
        bars,
        Numbers(
            ("metric", "winner", "baseline", "difference", "low", "high"),
            tuple(
                (one.name, one.winner, one.baseline, one.difference, *(one.interval or (None,) * 2))
                for one in compared
            ),
        ),
        description="; ".join(
            f"{one.name} {signed(one.difference)}, {one.reading}" for one in drawn
        ),
    )
    return (Charts("differences", (chart,)),)


def _formula(review: Review) -> tuple[Block, ...]:
    """Say what the composite and the objective are made of."""
    total = sum(review.weights.values())
    if not total:
        return ()
    parts = (f"{weight / total:.3g} × {name}" for name, weight in review.weights.items() if weight)
    text = f"Composite = {' + '.join(parts)}."
    paid = [
        f" − {price:g} × {metric}{f' / {units:g}' if units > 1 else ''}"
        for name, price in review.header.objective.get("price", {}).items()
        for metric, units in (paid_metric(name),)
        if price
    ]
    if paid:
        text += f" Objective = composite{''.join(paid)}."
    return (Text(text, is_note=True),)


def _guardrails(tests: Mapping[str, Mapping[str, Any]]) -> tuple[Block, ...]:
    if not tests:
        return ()
    rows = tuple(
        (
            name,
            shown(test["treatment"]),
            shown(test["control"]),
            MISSING if test["loss_bound"] is None else signed(test["loss_bound"]),
            shown(test["margin"]),
            "kept" if test["is_non_inferior"] else "not shown to be kept",
        )
        for name, test in tests.items()
    )
    columns = ("guard-rail", "winner", "baseline", "worse by at most", "allowed", "reading")
    caption = "What must not get much worse; bounds of times, tokens and counts are shares."
    return (Table(caption, columns, rows, frozenset(columns[1:5])),)


def _parts(choices: Sequence[Mapping[str, Any]]) -> tuple[Block, ...]:
    """Show what was chosen without each part, where all queries decided."""
    if not choices:
        return ()
    names = dict.fromkeys(name for choice in choices for name in choice["params"])
    rows = tuple(
        (
            str(choice["part"]),
            f"{choice['queries']:,}",
            MISSING if choice["gain"] is None else signed(choice["gain"]),
            "baseline" if choice["trial"] is None else "{trial} of parts/{part}".format_map(choice),
            *(
                shown_param(choice["params"][name]) if name in choice["params"] else MISSING
                for name in names
            ),
        )
        for choice in choices
    )
    columns = ("part", "queries", "gain on it", "chosen without it", *names)
    caption = (
        "What the search without each part chose, and its gain in the composite on that part: "
        "where they are far apart, the choice is not stable"
    )
    return (Table(caption, columns, rows, frozenset(columns[1:3])),)


def _parameters(review: Review) -> tuple[Block, ...]:
    chosen, baseline, best = review.chosen, review.baseline, review.summary.best
    if chosen is None:
        return ()
    shown_sides = [(f"{review.called} ({chosen.arm} #{chosen.trial})", chosen)]
    if baseline is not None:
        shown_sides.append(("baseline", baseline))
    if best is not None and best.trial != chosen.trial:
        shown_sides.append((f"best ({best.arm} #{best.trial})", best))
    whole = partial(whole_params, review.header, review.summary)
    sides = [(called, whole(standing)) for called, standing in shown_sides]
    names = dict.fromkeys(name for _, params in sides for name in params)
    rows = []
    for name in names:
        values = [shown_param(p[name]) if name in p else MISSING for _, p in sides]
        is_changed = baseline is not None and values[0] != values[1]
        rows.append((name, *values, "changed" if is_changed else ""))
    columns = ("parameter", *(called for called, _ in sides), "")
    caption = "Parameters"
    if best is not None and best.trial != chosen.trial:
        caption += (
            ": the winner is the cheapest of the configurations that cannot be told from the best"
        )
    return (Table(caption, columns, tuple(rows), frozenset(columns[1:-1])),)


def compare(review: Review) -> tuple[Compared, ...]:
    """Return every metric of winner and baseline, composite first.

    By the queries on which they were put side by side; of an older or an unfinished study by the
    tune queries, where their values were kept; else the means alone.
    """
    chosen, baseline = review.chosen, review.baseline
    if chosen is None or baseline is None:
        return ()
    first, second = _values(review)
    confidence, seed = review.confidence, review.header.seed
    found = [
        _paired(name, first[name], second[name], confidence=confidence, seed=seed)
        for name in first
        if name in second
    ]
    on_holdout = bool(review.rows) and chosen.holdout_objective is not None
    means = (
        (chosen.holdout_metrics, baseline.holdout_metrics)
        if on_holdout
        else (chosen.tune_metrics, baseline.tune_metrics)
    )
    names = [name for name in means[0] if name in means[1] and name not in first]
    found += [Compared(name, means[0][name], means[1][name]) for name in names]
    if not first and not any(one.name == "objective" for one in found):
        objective = Compared("objective", chosen.tune_objective, baseline.tune_objective)
        found.insert(0, objective)
    return _as_judged(review, found)


def _values(review: Review) -> tuple[Mapping[str, FloatArray], Mapping[str, FloatArray]]:
    chosen, baseline = review.chosen, review.baseline
    assert chosen is not None
    assert baseline is not None
    if not review.rows:
        first, second = review.tune_values(chosen), review.tune_values(baseline)
        same = {n for n in first if n in second and first[n].shape == second[n].shape}
        return {n: first[n] for n in first if n in same}, second
    sides: list[dict[str, FloatArray]] = []
    for side in ([row.winner for row in review.rows], [row.baseline for row in review.rows]):
        names = dict.fromkeys(name for one in side for name in one.metrics)
        values = {COMPOSITE: _array([one.composite for one in side])}
        sides.append(values | {n: _array([one.metrics.get(n) for one in side]) for n in names})
    return sides[0], sides[1]


def _array(values: Sequence[float | None]) -> FloatArray:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _paired(
    name: str, first: FloatArray, second: FloatArray, *, confidence: float, seed: int
) -> Compared:
    paired = compare_paired(
        first, second, seed=seed, confidence=confidence, permutations=0, resamples=0
    )
    paired = paired.of_a_cost() if is_better_lower(name) else paired
    paired = paired.within(largest_difference([name]))
    return Compared(name, paired.treatment_mean, paired.control_mean, paired)


def _as_judged(review: Review, compared: Sequence[Compared]) -> tuple[Compared, ...]:
    """Show the composite and the objective with the figures that the verdict was given by."""
    judged = {COMPOSITE: review.verdict.get("comparison")}
    rest = [
        replace(one, paired=_from_record(record)) if (record := judged.get(one.name)) else one
        for one in compared
    ]
    price = review.verdict.get("price")
    if not price:
        return tuple(rest)
    paired = _from_record(price["objective"])
    objective = Compared(OBJECTIVE, paired.treatment_mean, paired.control_mean, paired)
    return (*rest[:1], objective, *rest[1:])


def _from_record(record: Mapping[str, Any]) -> PairedComparison:
    known: dict[str, Any] = {n: record.get(n) for n in PairedComparison.__dataclass_fields__}
    for name in ("interval", "bca_interval"):
        known[name] = None if known[name] is None else tuple(known[name])
    return PairedComparison(**known)
