"""The objective against each parameter, and over two of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tuner.core.shown import counted
from tuner.core.space import Categorical
from tuner.core.trial import Trial, TrialState
from tuner.report.chart import Axis, Chart, Numbers, Series
from tuner.report.parts import Block, Charts, Section, Text, shown_param
from tuner.report.places import axis, place
from tuner.report.points import BEST_POINTS, crossed, marked, shown_trials, trial_text, worth
from tuner.report.review import Review
from tuner.report.surface import pair_of, surface

MOST_SLICES = 12


def section(review: Review, ranked: Iterable[str]) -> Section:
    """Draw a slice for each parameter, most important first, and the surface over two."""
    title, lead = "Slices and surface", "Where in the space are the good configurations?"
    known = [t for t in review.trials if t.worth is not None and t.shared_from is None]
    names = list(dict.fromkeys((*ranked, *review.space.names)))
    names = [n for n in names if any(n in t.params for t in known)]
    failed = [t for t in review.trials if t.state is TrialState.FAILED]
    if not known or not names:
        return Section("slices", title, lead, (Text("No trial was scored."),))
    blocks: list[Block] = []
    pair = pair_of(review, names)
    if pair is not None:
        blocks.append(Charts("surface", (surface(review, known, failed, *pair),)))
    blocks += _at_edges(review)
    charts = tuple(_slice(review, known, failed, name) for name in names[:MOST_SLICES])
    blocks.append(Charts("slices", charts, is_small=True, legend=_legend(charts)))
    if len(names) > MOST_SLICES:
        blocks.append(Text(f"Shown are the {MOST_SLICES} most important parameters.", True))
    if failed:
        text = f"{counted(len(failed), 'failed trial')}: crosses on the axis, with the reason."
        blocks.append(Text(text, True))
    points = shown_trials(known)
    if len(points) < len(known):
        text = (
            f"Shown are {len(points):,} of {len(known):,} trials: the best {BEST_POINTS}, and "
            "others evenly spread over the search. The CSV files hold all."
        )
        blocks.append(Text(text, True))
    return Section("slices", title, lead, tuple(blocks))


def _at_edges(review: Review) -> list[Block]:
    """Name what was chosen at an end of its range, where the search could go no further."""
    chosen, found = review.chosen, []
    if chosen is None or review.is_baseline:
        return []
    for name, parameter in review.space.parameters.items():
        value = chosen.params.get(name)
        if isinstance(parameter, Categorical) or parameter.low == parameter.high:
            continue
        if value in (parameter.low, parameter.high):
            end = "least" if value == parameter.low else "greatest"
            found.append(f"{name} {shown_param(value)}, the {end} allowed")
    if not found:
        return []
    text = f"The {review.called} lies at an end of a range: {'; '.join(found)}."
    return [Text(f"{text} Where the system takes values beyond it, a wider range may be better.")]


def _slice(review: Review, known: Sequence[Trial], failed: Sequence[Trial], name: str) -> Chart:
    parameter = review.space.parameters[name]
    placed, lost = (
        [
            (at, trial)
            for trial in trials
            if name in trial.params and (at := place(parameter, trial.params[name])) is not None
        ]
        for trials in (known, failed)
    )
    numbers = {trial.number for trial in shown_trials([trial for _, trial in placed])}
    points = [(at, trial) for at, trial in placed if trial.number in numbers]
    marks = [
        Series(
            called,
            "points",
            role,
            (at,),
            (standing.tune_objective,),
            (f"{called}: {name} {shown_param(standing.params[name])}",),
        )
        for called, role, standing in marked(review)
        if name in standing.params and (at := place(parameter, standing.params[name])) is not None
    ]
    heights = [worth(trial) for _, trial in points]
    y = _heights([*heights, *(at for mark in marks for at in mark.y)])
    crosses = crossed(lost, [y[0]] * len(lost))
    positions = [at for at, _ in (*placed, *lost)] + [at for mark in marks for at in mark.x]
    chosen = review.chosen
    value = shown_param(chosen.params[name]) if chosen and name in chosen.params else "not active"
    return Chart(
        f"slice-{name}",
        name,
        "",
        f"objective against {name}; {review.called}: {value}",
        axis(name, parameter, positions),
        Axis("objective", span=y),
        (*by_arm(review, points, heights), *crosses, *marks),
        Numbers(
            ("trial", "arm", "state", name, "objective", "error"),
            tuple(
                (t.number, t.arm, t.state.value, t.params[name], t.worth, t.error)
                for _, t in sorted((*placed, *lost), key=lambda one: one[1].number)
            ),
        ),
        height=16,
        has_legend=False,
    )


def _heights(found: Sequence[float]) -> tuple[float, float]:
    """Return the ends of the axis of objectives, with room for marks at both."""
    if not found:
        return 0.0, 1.0
    low, high = min(found), max(found)
    room = 0.08 * (high - low) or 0.05 * abs(high) or 0.05
    return low - room, high + room


def by_arm(
    review: Review, points: Sequence[tuple[float, Trial]], heights: Sequence[float]
) -> list[Series]:
    """Return a series for each arm, and one for those of its trials that were stopped early."""
    series = []
    for arm in review.arms:
        for is_stopped in (False, True):
            mine = [
                (at, height, trial)
                for (at, trial), height in zip(points, heights, strict=True)
                if trial.arm == arm and (trial.race is not None) == is_stopped
            ]
            if mine:
                series.append(
                    Series(
                        f"{arm}, stopped early" if is_stopped else arm,
                        "points",
                        "stopped" if is_stopped else "arm",
                        tuple(at for at, _, _ in mine),
                        tuple(height for _, height, _ in mine),
                        tuple(trial_text(trial) for _, _, trial in mine),
                        place=review.arm_places[arm],
                    )
                )
    return series


def _legend(charts: Sequence[Chart]) -> tuple[tuple[str, str, int], ...]:
    entries = ((one.name, one.role, one.place) for chart in charts for one in chart.series)
    return tuple(dict.fromkeys(entries))
