"""The objective against each parameter, and over two of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from tuner.core.shown import counted
from tuner.core.space import Categorical, Parameter
from tuner.core.trial import Params, Trial, TrialState
from tuner.report.chart import Axis, Cells, Chart, Numbers, Role, Series
from tuner.report.curves import (
    computed_trials,
    curve_numbers,
    curve_series,
    curve_text,
    shown_curve,
)
from tuner.report.parts import Block, Charts, Section, Text, shown_param, shown_params
from tuner.report.places import (
    BEST_POINTS,
    axis,
    crossed,
    edges,
    marked,
    place,
    shown_trials,
    worth,
)
from tuner.report.review import Review

# The pair of parameters that a GraphRAG system has, wherever it has them.
GRAPH_PAIR = ("graph_weight", "max_hops")

COMPUTED = "Other values of a free parameter are computed from each trial's answer. "

Place = tuple[float, float]


def pair_of(review: Review, names: Sequence[str]) -> tuple[str, str] | None:
    """Return which two parameters to show: the graph's, or the first two that vary."""
    varied = [name for name in names if review.space.parameters[name].count != 1]
    if set(GRAPH_PAIR) <= set(varied):
        return GRAPH_PAIR
    return (varied[0], varied[1]) if len(varied) >= 2 else None


def surface(
    review: Review, known: Sequence[Trial], failed: Sequence[Trial], x_name: str, y_name: str
) -> Chart:
    """Draw the best objective in each cell of two parameters, with trials and marks on top.

    What breaks a constraint is left out of the cells, unless everything does. ``failed`` trials
    have no objective: they are crosses. What a trial's answer tells of other values of a free
    parameter is in the cells too, but where there are constraints: of these it tells nothing.
    """
    parameters = [(name, review.space.parameters[name]) for name in (x_name, y_name)]
    x_edges, y_edges = (edges(parameter) for _, parameter in parameters)
    placed = [(at, t) for t in known if (at := _at(parameters, t.params)) is not None]
    told = [] if review.header.objective.get("constraints") else known
    others = [one for trial in told for one in computed_trials(trial)]
    computed = [(at, one) for one in others if (at := _at(parameters, one.params)) is not None]
    is_any_feasible = any(trial.violation <= 0.0 for _, trial in placed)
    in_cells: dict[tuple[int, int], list[Trial]] = {}
    for (x, y), trial in (*placed, *computed):
        column, row = cell(x_edges, x), cell(y_edges, y)
        if column is None or row is None:
            continue
        if trial.violation <= 0.0 or not is_any_feasible:
            in_cells.setdefault((row, column), []).append(trial)
    best = {at: max(found, key=worth) for at, found in in_cells.items()}
    values = {at: trial.worth for at, trial in best.items()}
    lost = [(at, t) for t in failed if (at := _at(parameters, t.params)) is not None]
    tried = {(cell(y_edges, y), cell(x_edges, x)) for (x, y), _ in (*placed, *computed, *lost)}
    without = sum(None not in at and at not in best for at in tried)
    rows, columns = range(len(y_edges) - 1), range(len(x_edges) - 1)
    return Chart(
        "surface",
        f"Best objective over {x_name} and {y_name}",
        "Each cell shows the best objective that was found in it, over all values of the other "
        f"parameters; dots are trials{', crosses failed ones' if lost else ''}. "
        f"{COMPUTED if computed else ''}"
        f"{_empty(len(rows) * len(columns) - len(best), without)}"
        "A broad area of strong colour is a safe choice, a single strong cell may be luck.",
        f"{len(best) + without} of {len(rows) * len(columns)} cells were tried"
        f"{f', {without} of them without a result that counts' if without else ''}",
        axis(*parameters[0], [x for (x, _), _ in (*placed, *lost)]),
        axis(*parameters[1], [y for (_, y), _ in (*placed, *lost)]),
        _series(review, parameters, placed, lost),
        Numbers(
            ("trial", "arm", "state", x_name, y_name, "objective"),
            tuple(
                (t.number, t.arm, t.state.value, t.params[x_name], t.params[y_name], t.worth)
                for _, t in sorted((*placed, *lost), key=lambda one: one[1].number)
            ),
        ),
        Cells(
            "best objective",
            tuple(x_edges),
            tuple(y_edges),
            tuple(tuple(values.get((row, column)) for column in columns) for row in rows),
            tuple(
                tuple(
                    best[row, column].number if (row, column) in best else None
                    for column in columns
                )
                for row in rows
            ),
        ),
        height=24,
    )


def _empty(empty: int, without: int) -> str:
    """Say of the cells without a colour what is true: were they tried?"""
    if not empty:
        return ""
    if not without:
        return "Empty cells were not tried. "
    if without == empty:
        return "Every trial in an empty cell failed or broke a constraint. "
    cells = "1 of the empty cells" if without == 1 else f"{without} of the empty cells"
    return f"Every trial in {cells} failed or broke a constraint; the others were not tried. "


def cell(limits: Sequence[float], position: float) -> int | None:
    """Return which cell a position lies in; None outside all of them.

    >>> cell([0.0, 1.0, 2.0], 1.0), cell([0.0, 1.0, 2.0], 2.0), cell([0.0, 1.0], 3.0)
    (1, 1, None)
    """
    for number, (low, high) in enumerate(pairwise(limits)):
        if low <= position < high:
            return number
    return len(limits) - 2 if position == limits[-1] else None


def _at(parameters: Sequence[tuple[str, Parameter]], params: Params) -> Place | None:
    x, y = (place(p, params[name]) if name in params else None for name, p in parameters)
    return None if x is None or y is None else (x, y)


def _series(
    review: Review,
    parameters: Sequence[tuple[str, Parameter]],
    placed: Sequence[tuple[Place, Trial]],
    lost: Sequence[tuple[Place, Trial]],
) -> tuple[Series, ...]:
    numbers = {trial.number for trial in shown_trials([trial for _, trial in placed])}
    dots = [(x, y, trial.number) for (x, y), trial in placed if trial.number in numbers]
    trials = [Series.of_trials("trials", "points", "trials", dots)] if dots else []
    marks = [
        Series(
            *(called, "points", role, at[:1], at[1:]),
            (f"{called}: {shown_params(one.params)}",),
            trials=(one.trial,),
        )
        for called, role, one in marked(review)
        if (at := _at(parameters, one.params)) is not None
    ]
    crosses = crossed([(x, t) for (x, _), t in lost], [y for (_, y), _ in lost])
    return (*trials, *crosses, *marks)


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
    free = [found for name in names[:MOST_SLICES] if (found := shown_curve(review, name))]
    blocks += [Text(curve_text(*found), True) for found in free]
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
            trials=(standing.trial,),
        )
        for called, role, standing in marked(review)
        if name in standing.params and (at := place(parameter, standing.params[name])) is not None
    ]
    heights = [worth(trial) for _, trial in points]
    found = shown_curve(review, name)
    lines = [] if found is None else curve_series(review, *found, parameter)
    # Each trial has the best value of a free parameter: their dots would tell of nothing else.
    dots = [] if lines else by_arm(review, points, heights)
    ends = (
        heights
        if not lines
        else [height for line in lines for height in (*line.y, *line.low, *line.high)]
    )
    y = _heights([*ends, *(at for mark in marks for at in mark.y)])
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
        Axis("objective", span=y, of="objective"),
        (*lines, *dots, *crosses, *marks),
        curve_numbers(found[1])
        if found is not None and lines
        else Numbers(
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
        roles: dict[Role, str] = {"arm": arm, "stopped": f"{arm}, stopped early"}
        for role, name in roles.items():
            mine = [
                (at, height, trial.number)
                for (at, trial), height in zip(points, heights, strict=True)
                if trial.arm == arm and (trial.race is not None) == (role == "stopped")
            ]
            if mine:
                place = review.arm_places[arm]
                series.append(Series.of_trials(name, "points", role, mine, place=place))
    return series


def _legend(charts: Sequence[Chart]) -> tuple[tuple[str, str, int], ...]:
    entries = ((one.name, one.role, one.place) for chart in charts for one in chart.series)
    return tuple(dict.fromkeys(entries))
