"""Where parameters' values lie in a figure, which trials are shown there, and what is marked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from tuner.core.shown import shortened
from tuner.core.space import Categorical, Integer, Parameter
from tuner.core.study_record import Standing
from tuner.core.trial import Scalar, Trial
from tuner.report.chart import Axis, Role, Series, spread
from tuner.report.parts import shown_param
from tuner.report.review import Review

# A range with more values than this is cut into so many equal cells.
CELLS = 10
LONGEST_LABEL = 24


def place(parameter: Parameter, value: Scalar) -> float | None:
    """Return the position of a value: its index among choices, log10 on a log scale, else itself.

    None for what cannot be placed, such as a baseline's choice outside the space.
    """
    if isinstance(parameter, Categorical):
        found = [n for n, choice in enumerate(parameter.choices) if _is_same(choice, value)]
        return float(found[0]) if found else None
    if isinstance(value, bool | str) or value is None:
        return None
    if parameter.scale == "log":
        return math.log10(value) if value > 0 else None
    return float(value)


def axis(name: str, parameter: Parameter, placed: Sequence[float] = ()) -> Axis:
    """Return the axis of a parameter over its whole range, and what was placed outside of it.

    With ticks where its values are not their positions.
    """
    found = [*edges(parameter), *placed]
    low, high = min(found), max(found)
    # A little more, so that no mark is cut.
    room = 0.04 * (high - low) or 0.5
    span, of = (low - room, high + room), f"param:{name}"
    if isinstance(parameter, Categorical):
        labels = [cut(shown_param(choice)) for choice in parameter.choices]
        ticks = tuple((float(n), label) for n, label in enumerate(labels))
        return Axis(name, ticks, span, of=of)
    if isinstance(parameter, Integer) and parameter.count <= CELLS:
        return Axis(name, tuple(_levels(parameter)), span, of=of)
    if parameter.scale == "log":
        ticks = _log_ticks(10**low, 10**high)
        return Axis(f"{name} (log scale)", ticks, span, of=of)
    return Axis(name, span=span, of=of)


def edges(parameter: Parameter) -> list[float]:
    """Return the edges of the cells that a parameter's range is cut into, ascending."""
    if parameter.count is not None and parameter.count <= max(CELLS, _choices(parameter)):
        centres = [position for position, _ in _levels(parameter)]
        if len(centres) == 1:
            return [centres[0] - 0.5, centres[0] + 0.5]
        inner = [(a + b) / 2 for a, b in pairwise(centres)]
        first, last = 2 * centres[0] - inner[0], 2 * centres[-1] - inner[-1]
        return [first, *inner, last]
    ends = [place(parameter, parameter.at(position)) or 0.0 for position in (0.0, 1.0)]
    return [ends[0] + (ends[1] - ends[0]) * n / CELLS for n in range(CELLS + 1)]


def cut(label: str) -> str:
    """Shorten a label that would push a figure aside."""
    return shortened(label, LONGEST_LABEL)


def _levels(parameter: Parameter) -> list[tuple[float, str]]:
    levels = parameter.levels(parameter.count or CELLS)
    placed = [(place(parameter, level), cut(shown_param(level))) for level in levels]
    return [(position, label) for position, label in placed if position is not None]


def _choices(parameter: Parameter) -> int:
    return len(parameter.choices) if isinstance(parameter, Categorical) else 0


def _log_ticks(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """Return 1, 2, 5 of each decade within the range, or 1 alone where that is many decades."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    marks = (1, 2, 5) if last - first <= 3 else (1,)
    values = [mark * 10.0**power for power in range(first, last + 1) for mark in marks]
    within = [value for value in values if low * 0.999 <= value <= high * 1.001]
    return tuple((math.log10(value), f"{value:g}") for value in within)


def _is_same(choice: Scalar, value: Scalar) -> bool:
    # 1 and True are equal to Python, and different choices.
    return choice == value and isinstance(choice, bool) == isinstance(value, bool)


# More points than this hide each other; all of them stand in the CSV files.
MOST_POINTS = 500
BEST_POINTS = 100


def worth(trial: Trial) -> float:
    """Return what a trial is worth, minus infinity where that is not known."""
    return -float("inf") if trial.worth is None else trial.worth


def shown_trials(trials: Sequence[Trial], limit: int = MOST_POINTS) -> list[Trial]:
    """Return all trials, or the best and others evenly spread over the search."""
    if len(trials) <= limit:
        return list(trials)
    best = sorted(trials, key=lambda trial: -worth(trial))[:BEST_POINTS]
    numbers = {trial.number for trial in best}
    rest = [trial for trial in trials if trial.number not in numbers]
    return best + [rest[n] for n in spread(len(rest), limit - len(best))]


def marked(review: Review) -> list[tuple[str, Role, Standing]]:
    """Return what every figure marks, the chosen one last so that it lies on top."""
    found: list[tuple[str, Role, Standing]] = []
    if review.baseline is not None:
        found.append(("baseline", "baseline", review.baseline))
    if review.chosen is not None:
        found.append((review.called, "chosen", review.chosen))
    return found


def crossed(lost: Sequence[tuple[float, Trial]], heights: Sequence[float]) -> list[Series]:
    """Return the failed trials as crosses at these heights."""
    if not lost:
        return []
    kept = spread(len(lost), MOST_POINTS)
    points = ((lost[n][0], heights[n], lost[n][1].number) for n in kept)
    return [Series.of_trials("failed", "points", "failed", points)]
