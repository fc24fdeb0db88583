"""The objective against a free parameter as one answer tells it: a line with its band."""

from __future__ import annotations

import math
from dataclasses import replace

from tuner.core.profile import Curve
from tuner.core.shown import counted
from tuner.core.space import Parameter
from tuner.core.trial import Trial
from tuner.report.chart import Numbers, Series
from tuner.report.parts import shown_param
from tuner.report.places import place, worth
from tuner.report.review import Review

# 1.96 standard errors: what 95 % of paired differences lie within.
BAND = 1.96


def shown_curve(review: Review, name: str) -> tuple[Trial, Curve] | None:
    """Return the curve to show: the chosen trial's, or where that has none, the best that has."""
    profiled = [t for t in review.trials if t.profile is not None and t.worth is not None]
    profiled.sort(key=worth, reverse=True)
    if review.chosen is not None:
        number = review.chosen.trial
        profiled.sort(key=lambda trial: trial.number != number)
    found = (
        (trial, curve)
        for trial in profiled
        for curve in (trial.profile.curves if trial.profile is not None else ())
        if curve.name == name
    )
    return next(found, None)


def curve_series(review: Review, trial: Trial, curve: Curve, parameter: Parameter) -> list[Series]:
    """Return the line of a curve, and the edges of the band that chance alone may explain."""
    points: list[tuple[float, float, str]] = []
    low, high = [], []
    for value, objective, error in zip(curve.at, curve.objective, curve.error, strict=True):
        at = place(parameter, _native(parameter, value))
        if at is None:
            continue
        margin = 0.0 if error is None else BAND * error
        text = f"{curve.name} {shown_param(value)}: {objective:.4f} ± {margin:.4f}"
        points.append((at, objective, text))
        low.append(objective - margin)
        high.append(objective + margin)
    if not points:
        return []
    number = review.arm_places.get(trial.arm, 0)
    of_it = f"{trial.arm} #{trial.number}, computed"
    band = "95 % of its difference to the chosen value"
    line = Series.of(of_it, "line", "arm", points, place=number)
    around = replace(line, name=band, form="band", texts=(), low=tuple(low), high=tuple(high))
    return [around, line]


def computed_trials(trial: Trial, *, most: int | None = None) -> list[Trial]:
    """Return a trial as it would have been with other values of its free parameters.

    One for each value of each curve, but for the chosen one; at most so many of a curve, evenly
    spread. Their objective is what the answer told, and nothing else of them is known. None of a
    trial without a profile.
    """
    found = []
    for curve in () if trial.profile is None else trial.profile.curves:
        points = list(zip(curve.at, curve.objective, strict=True))
        step = 1 if most is None else max(1, math.ceil(len(points) / most))
        for value, objective in points[::step]:
            chosen = trial.params.get(curve.name)
            native = int(value) if isinstance(chosen, int) else value
            if native != chosen:
                params = {**trial.params, curve.name: native}
                of_it = replace(trial, params=params, objective=objective, race=None, profile=None)
                found.append(of_it)
    return found


def curve_numbers(curve: Curve) -> Numbers:
    """Return the figures of a curve."""
    columns = (curve.name, "objective", "standard_error")
    return Numbers(columns, tuple(zip(curve.at, curve.objective, curve.error, strict=True)))


def curve_text(trial: Trial, curve: Curve) -> str:
    """Say what a curve is made of."""
    values = 0 if trial.profile is None else trial.profile.looked_at
    return (
        f"{curve.name} is free: its line is computed from one answer to trial {trial.number}, "
        f"which tells of {counted(values, 'setting')}."
    )


def _native(parameter: Parameter, value: float) -> float | int:
    return int(value) if parameter.count is not None and value == int(value) else value
