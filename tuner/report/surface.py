"""The best objective over two parameters at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tuner.core.space import Parameter
from tuner.core.trial import Params, Trial
from tuner.report.chart import Cells, Chart, Numbers, Series
from tuner.report.parts import shown_params
from tuner.report.places import axis, edges, place
from tuner.report.points import crossed, marked, shown_trials, trial_text, worth
from tuner.report.review import Review

# The pair of parameters that a GraphRAG system has, wherever it has them.
GRAPH_PAIR = ("graph_weight", "max_hops")

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
    have no objective: they are crosses.
    """
    parameters = [(name, review.space.parameters[name]) for name in (x_name, y_name)]
    x_edges, y_edges = (edges(parameter) for _, parameter in parameters)
    placed = [(at, t) for t in known if (at := _at(parameters, t.params)) is not None]
    is_any_feasible = any(trial.violation <= 0.0 for _, trial in placed)
    in_cells: dict[tuple[int, int], list[Trial]] = {}
    for (x, y), trial in placed:
        column, row = cell(x_edges, x), cell(y_edges, y)
        if column is None or row is None:
            continue
        if trial.violation <= 0.0 or not is_any_feasible:
            in_cells.setdefault((row, column), []).append(trial)
    best = {at: max(found, key=worth) for at, found in in_cells.items()}
    values = {at: trial.worth for at, trial in best.items()}
    texts = {
        at: f"best of {len(in_cells[at])} here: {trial_text(trial)}" for at, trial in best.items()
    }
    lost = [(at, t) for t in failed if (at := _at(parameters, t.params)) is not None]
    tried = {(cell(y_edges, y), cell(x_edges, x)) for (x, y), _ in (*placed, *lost)}
    without = sum(None not in at and at not in best for at in tried)
    rows, columns = range(len(y_edges) - 1), range(len(x_edges) - 1)
    return Chart(
        "surface",
        f"Best objective over {x_name} and {y_name}",
        "Each cell shows the best objective that was found in it, over all values of the other "
        f"parameters; dots are trials{', crosses failed ones' if lost else ''}. "
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
            tuple(tuple(texts.get((row, column), "") for column in columns) for row in rows),
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
    dots = [at for at, trial in placed if trial.number in numbers]
    xs, ys = tuple(x for x, _ in dots), tuple(y for _, y in dots)
    trials = Series("trials", "points", "trials", xs, ys)
    marks = [
        Series(called, "points", role, at[:1], at[1:], (f"{called}: {shown_params(one.params)}",))
        for called, role, one in marked(review)
        if (at := _at(parameters, one.params)) is not None
    ]
    crosses = crossed([(x, t) for (x, _), t in lost], [y for (_, y), _ in lost])
    return (*((trials,) if dots else ()), *crosses, *marks)
