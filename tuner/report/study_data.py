"""The study as the page's script reads it: columns of all trials, rounded, in a stable order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from tuner.core.index_costs import has_failed_index
from tuner.core.shown import shortened
from tuner.core.space import Categorical, Parameter
from tuner.core.trial import Scalar, Trial, TrialState
from tuner.evaluation.system_metrics import is_better_lower
from tuner.report.differing import differing
from tuner.report.indexes import index_parameters
from tuner.report.parts import shown_param, shown_params
from tuner.report.places import axis, edges
from tuner.report.review import Review
from tuner.study.failures import reason_of

# So many digits tell any two trials apart that a figure can, and are half of what a float takes.
DIGITS = 6
LONGEST_CHOICE = 80
LONGEST_REASON = 200
# Along the curves of free parameters: what a page may hold of them, best trials first.
MOST_CURVE_POINTS = 40_000


def study_data(review: Review) -> dict[str, Any]:
    """Return what the page's script knows of a study, JSON-ready; ``{}`` without a trial.

    Row ``n`` of every column is trial ``n``. ``fields`` says what there is of each: the objective,
    then in the order of the space, then of the metrics. ``columns`` holds the values by a field's
    key, such as ``param:max_hops``: a number, the place of a choice among ``choices``, or None.
    See ``store.js``.
    """
    trials = review.trials
    if not trials:
        return {}
    arms = list(dict.fromkeys(trial.arm for trial in trials))
    reasons = _Texts()
    groups = _Texts()
    index_names = index_parameters(review)
    fields, columns = [], {}
    for field, values in _columns(review, index_names):
        fields.append(field)
        columns[field["key"]] = values
    standings = {"chosen": review.chosen, "baseline": review.baseline}
    return {
        "called": review.called,
        **{name: None if one is None else one.trial for name, one in standings.items()},
        "arms": [{"name": arm, "place": review.arm_places.get(arm)} for arm in arms],
        "states": [state.value for state in TrialState],
        "arm": [arms.index(trial.arm) for trial in trials],
        "state": [list(TrialState).index(trial.state) for trial in trials],
        "reason": [
            reasons.place(shortened(reason_of(trial), LONGEST_REASON))
            if trial.state is TrialState.FAILED
            else None
            for trial in trials
        ],
        "index": [_group(groups, trial, index_names) for trial in trials],
        "reasons": reasons.texts,
        "indexes": groups.texts,
        "hasConstraints": bool(review.header.objective.get("constraints")),
        "fields": fields,
        "columns": columns,
        "queries": {str(t.number): t.race.queries for t in trials if t.race is not None},
        "shared": {str(t.number): t.shared_from for t in trials if t.shared_from is not None},
        "curves": _curves(review),
        "differing": differing(review),
    }


class _Texts:
    """Texts that many trials have, each written once."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def place(self, text: str) -> int:
        return self._places.setdefault(text, len(self._places))

    @property
    def texts(self) -> list[str]:
        return list(self._places)


def _group(groups: _Texts, trial: Trial, names: Sequence[str]) -> int | None:
    if not names or (trial.index is None and not has_failed_index(trial)):
        return None
    own = {name: trial.params[name] for name in names if name in trial.params}
    return groups.place(shown_params(own))


def _columns(
    review: Review, index_names: Sequence[str]
) -> Iterable[tuple[dict[str, Any], list[float | None]]]:
    trials = review.trials
    yield (
        {"key": "objective", "name": "objective", "group": "result", "kind": "real"},
        [_rounded(trial.worth) for trial in trials],
    )
    if review.is_priced:
        composite = {"key": "composite", "name": "composite", "group": "result", "kind": "real"}
        yield composite, [_rounded(review.composite(trial)) for trial in trials]
    for name, parameter in review.space.parameters.items():
        yield _parameter_field(review, name, parameter, name in index_names)
    for name in _metric_names(review):
        field = {"key": f"metric:{name}", "name": name, "group": "metric", "kind": "real"}
        if is_better_lower(name):
            field["lower"] = "yes"
        yield field, [_rounded(trial.metrics.get(name)) for trial in trials]
    seconds = {"key": "seconds", "name": "seconds", "group": "cost", "kind": "real", "lower": "yes"}
    yield seconds, [_rounded(trial.seconds.get("total")) for trial in trials]
    if any(trial.violation for trial in trials):
        broken = {"key": "violation", "name": "constraint broken by", "group": "result"}
        yield (
            {**broken, "kind": "real", "lower": "yes"},
            [_rounded(t.violation if t.is_scored else None) for t in trials],
        )


def _parameter_field(
    review: Review, name: str, parameter: Parameter, is_of_index: bool
) -> tuple[dict[str, Any], list[float | None]]:
    """Return a parameter with what figures need to place its values, and its values."""
    shown = axis(name, parameter)
    field: dict[str, Any] = {
        "key": f"param:{name}",
        "name": name,
        "group": "index" if is_of_index else "param",
        "kind": parameter.to_mapping()["type"],
        "title": shown.title,
        "edges": [_rounded(edge) for edge in edges(parameter)],
        "ticks": [[_rounded(at), label] for at, label in shown.ticks],
        "isLog": not isinstance(parameter, Categorical) and parameter.scale == "log",
    }
    values = [trial.params.get(name) for trial in review.trials]
    if not isinstance(parameter, Categorical):
        return field, [_rounded(value) for value in values]
    # A baseline may have a choice that the space has not: it comes after those of the space.
    choices: dict[str, int] = {}
    for choice in (*parameter.choices, *_present(review.trials, name)):
        choices.setdefault(_choice_key(choice), len(choices))
    field["choices"] = [shortened(key.partition(":")[2], LONGEST_CHOICE) for key in choices]
    places = [
        choices[_choice_key(trial.params[name])] if name in trial.params else None
        for trial in review.trials
    ]
    return field, list(places)


def _present(trials: Sequence[Trial], name: str) -> Iterable[Scalar]:
    return (trial.params[name] for trial in trials if name in trial.params)


def _choice_key(choice: Scalar) -> str:
    # 1, 1.0 and True are equal to Python, and different choices.
    return f"{type(choice).__name__}:{shown_param(choice)}"


def _metric_names(review: Review) -> list[str]:
    """Return the metrics of the trials: those of the composite first, then by name."""
    found = {name for trial in review.trials for name in trial.metrics}
    weighted = [name for name in review.weights if name in found]
    return [*weighted, *sorted(found - set(weighted))]


def _curves(review: Review) -> dict[str, Any]:
    """Return the objective along the free parameters of each trial that tells it, best first."""
    profiled = [t for t in review.trials if t.profile is not None and t.profile.curves]
    chosen = None if review.chosen is None else review.chosen.trial
    profiled.sort(key=lambda t: (t.number != chosen, -(t.worth or -math.inf), t.number))
    found: dict[str, Any] = {}
    left = MOST_CURVE_POINTS
    for trial in profiled:
        curves = () if trial.profile is None else trial.profile.curves
        left -= sum(len(curve.at) for curve in curves)
        if left < 0:
            break
        found[str(trial.number)] = {
            f"param:{curve.name}": {
                "at": [_rounded(value) for value in curve.at],
                "objective": [_rounded(value) for value in curve.objective],
                "error": [_rounded(value, 3) for value in curve.error],
            }
            for curve in curves
        }
    return found


def _rounded(value: Scalar, digits: int = DIGITS) -> float | int | None:
    """Return a number with so many digits; None for what is undefined or no number.

    >>> _rounded(0.123456789), _rounded(1234567), _rounded(2.0), _rounded(float("nan"))
    (0.123457, 1234567, 2, None)
    """
    if value is None or isinstance(value, str) or not math.isfinite(value):
        return None
    if isinstance(value, int):
        return int(value)
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
