"""Quality against what it costs: tokens of context and latency, with the Pareto front."""

from __future__ import annotations

from collections.abc import Sequence

from tuner.core.trial import Trial
from tuner.report.chart import Axis, Chart, Numbers, Series, Value
from tuner.report.parts import (
    MISSING,
    Block,
    Charts,
    Section,
    Table,
    Text,
    percent,
    shown,
    shown_params,
)
from tuner.report.places import marked, shown_trials
from tuner.report.review import Review
from tuner.report.slices import by_arm
from tuner.study.pareto import Point, points_of

# Of each kind of cost the first that was measured, with its title and the name of its figure.
_COSTS = (
    (("context_tokens", "context_tokens_p95"), "tokens of context a query", "tokens"),
    (("latency_p95_ms", "latency_p50_ms", "latency_mean_ms"), "latency in ms", "latency"),
)


def section(review: Review) -> Section:
    """Draw what each trial found against what it cost."""
    title = "Quality against cost"
    lead = "What does better retrieval cost, and is there something as good that is cheaper?"
    scored = [t for t in review.trials if t.is_scored and t.shared_from is None]
    charts = []
    for names, called, name in _COSTS:
        measured = next((n for n in names if any(n in t.metrics for t in scored)), None)
        if measured is not None:
            charts.append(_chart(review, scored, measured, called, name))
    blocks: list[Block] = [Charts("tradeoff", tuple(charts))] if charts else []
    if not charts:
        blocks.append(Text("Neither tokens of context nor latency were measured."))
    blocks += _front(review)
    return Section("tradeoff", title, lead, tuple(blocks))


def cheapest_best(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return the places of (cost, quality) that none beats in both, cheapest first.

    >>> cheapest_best([(10.0, 0.5), (5.0, 0.5), (20.0, 0.7), (30.0, 0.6)])
    [1, 2]
    """
    order = sorted(range(len(points)), key=lambda n: (points[n][0], -points[n][1], n))
    kept: list[int] = []
    for number in order:
        if not kept or points[number][1] > points[kept[-1]][1]:
            kept.append(number)
    return kept


def _chart(review: Review, scored: Sequence[Trial], cost: str, called: str, name: str) -> Chart:
    known = [
        (point, point.metrics[cost], quality)
        for point in points_of(scored)
        if point.metrics.get(cost, float("nan")) == point.metrics.get(cost)
        and (quality := review.composite(point.as_trial)) is not None
    ]
    feasible = [one for one in known if one[0].trial.is_feasible] or known
    best = [feasible[n] for n in cheapest_best([(price, value) for _, price, value in feasible])]
    on_front = {(point.trial.number, point.place) for point, _, _ in best}
    own = [one for one in known if not one[0].place]
    numbers = {trial.number for trial in shown_trials([point.trial for point, _, _ in own])}
    numbers |= {number for number, _ in on_front}
    points = [one for one in own if one[0].trial.number in numbers]
    along = [(price, value, _text(point, price, value, cost)) for point, price, value in best]
    front = [Series.of("Pareto front", "steps", "front", along)] if len(best) > 1 else []
    told = [
        (price, value, _text(point, price, value, cost))
        for point, price, value in known
        if point.place and point.trial.number in numbers
    ]
    others = [Series.of("computed from their answers", "points", "trials", told)] if told else []
    marks = []
    for label, role, standing in marked(review):
        trial = review.trial(standing)
        quality = None if trial is None else review.composite(trial)
        price = standing.tune_metrics.get(cost)
        if quality is not None and price is not None:
            text = f"{label}: {shown(quality)} for {shown(price)} {cost}"
            here = ((price,), (quality,), (text,))
            marks.append(Series(label, "points", role, *here, trials=(standing.trial,)))
    scale = "composite" if review.weights else "objective"
    return Chart(
        f"quality-by-{name}",
        f"Quality against {called}",
        "The line is the best that was found at so much or less: it rises at the trials that no "
        "other beats in both. "
        f"{_reading(review, cost)}",
        f"{len(best)} of {len(known)} {'settings' if told else 'trials'} are on the front",
        Axis(called, of=f"metric:{cost}"),
        Axis(
            f"{scale}, before any price" if review.is_priced else scale,
            of="composite" if review.is_priced else "objective",
        ),
        (
            *others,
            *by_arm(review, [(p, one.trial) for one, p, _ in points], [v for _, _, v in points]),
            *front,
            *marks,
        ),
        Numbers(
            ("trial", "arm", cost, scale, "objective", "is_on_front"),
            tuple(
                _row(one, p, v, (one.trial.number, one.place) in on_front) for one, p, v in known
            ),
        ),
    )


def _row(point: Point, price: float, value: float, is_on_front: bool) -> tuple[Value, ...]:
    objective = None if point.place else point.trial.objective
    return point.trial.number, point.trial.arm, price, value, objective, is_on_front


def _text(point: Point, price: float, value: float, cost: str) -> str:
    number = f"{point.trial.arm} #{point.trial.number}{', computed' if point.place else ''}"
    return f"{number}: {shown(value)} for {shown(price)} {cost}; {shown_params(point.params)}"


def _reading(review: Review, cost: str) -> str:
    chosen, baseline = review.chosen, review.baseline
    if chosen is None or baseline is None:
        return ""
    is_held_out = cost in chosen.holdout_metrics and cost in baseline.holdout_metrics
    sides = [one.holdout_metrics if is_held_out else one.tune_metrics for one in (chosen, baseline)]
    mine, theirs = (side.get(cost) for side in sides)
    if mine is None or theirs is None or review.is_baseline:
        return ""
    share = f" ({percent(mine, theirs)})" if theirs else ""
    takes = f"he {review.called} takes {shown(mine)}, the baseline {shown(theirs)}{share}."
    where = "On the held-out queries t" if is_held_out else "T"
    if cost.startswith("latency"):
        # The baseline is evaluated first and alone, later trials beside others.
        noise = "Trials that run beside others are slower than they are alone: dots show a trend."
        return f"{noise} {where}{takes}"
    return f"{where}{takes}"


def _front(review: Review) -> list[Block]:
    """Show the front of a study that sought several goals at once."""
    front = review.summary.front
    if not front:
        return []
    goals = tuple(front[0]["goals"])
    rows = tuple(
        (
            f"{point['arm']} #{point['trial']}{' (knee)' if point['is_knee'] else ''}",
            *(shown(point["goals"].get(goal)) for goal in goals),
            shown_params(point["params"]) or MISSING,
        )
        for point in front
    )
    strong = frozenset(row for row, point in enumerate(front) if point["is_knee"])
    caption = (
        "The Pareto front of the goals that were sought side by side: what no trial beats by more "
        "than chance. At the knee, giving up a little of one no longer buys much of another."
    )
    columns = ("trial", *goals, "parameters")
    return [Table(caption, columns, rows, frozenset(goals), strong)]
