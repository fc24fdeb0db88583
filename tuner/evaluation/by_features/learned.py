"""Learn a policy by features, and write it as a rule of numbers and names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.feature_rule import (
    DEFAULT,
    FeatureRule,
    Gains,
    Line,
    Scale,
    Seen,
    Split,
    standardised,
)
from tuner.core.rankings import BoolArray, FloatArray
from tuner.core.trial import Params
from tuner.evaluation.by_features.choice import Chosen, choose_model
from tuner.evaluation.by_features.menu import Menu
from tuner.evaluation.by_features.models import (
    Fitted,
    FittedGains,
    FittedLine,
    FittedSplit,
    candidates,
)

# Beside the winner's, a line has so many values at most: an index or a batch for each.
VALUES = 9


@dataclass(frozen=True, eq=False)
class Learned:
    """A rule, the settings that it chooses from, and what to know of them.

    Attributes:
        settings: by name, without the default.
        model: how it was learned, in words; "": the winner stays.
        gain, error: as in ``Chosen``.
        left_out: features that are the same for every query, and why.
        missing: of features that are not known of all queries, of how many they are not.
        queries: how many it was learned from.
    """

    rule: FeatureRule
    settings: Mapping[str, Params]
    model: str
    gain: float
    error: float
    left_out: Mapping[str, str]
    missing: Mapping[str, int]
    queries: int


def learn(
    seen: Seen, menu: Menu, clusters: npt.NDArray[Any], *, seed: int, function: str = ""
) -> Learned:
    """Learn from the queries of a menu; those whose objective is undefined are passed over."""
    is_known: BoolArray = np.isfinite(menu.gains.sum(axis=0))
    known = {name: np.asarray(values)[is_known] for name, values in seen.items()}
    menu = Menu(menu.settings, menu.gains[:, is_known], menu.lines)
    scales, left_out = scales_of(known)
    count = int(is_known.sum())
    z = matrix(scales, known, count)
    chosen = choose_model(z, menu, candidates(list(menu.lines)), clusters[is_known], seed=seed)
    rule, settings = as_rule(chosen.fitted, scales, menu, z)
    missing = {name: int(np.isnan(known[name]).sum()) for name in scales}
    return Learned(
        FeatureRule(rule.features, rule.line, rule.gains, rule.split, function),
        settings,
        _name(chosen),
        chosen.gain,
        chosen.error,
        left_out,
        {name: number for name, number in missing.items() if number},
        count,
    )


def scales_of(seen: Seen) -> tuple[dict[str, Scale], dict[str, str]]:
    """Return how features are standardised, and of those that tell nothing, why."""
    scales, left_out = {}, {}
    for name, values in seen.items():
        known = values[np.isfinite(values)]
        if not known.size:
            left_out[name] = "not known of any query"
            continue
        mean, deviation = float(known.mean()), float(known.std())
        if deviation <= 1e-9 * max(abs(mean), 1.0):
            left_out[name] = "the same for every query"
            continue
        scales[name] = Scale(_rounded(mean), _rounded(deviation))
    return scales, left_out


def matrix(scales: Mapping[str, Scale], seen: Seen, count: int) -> FloatArray:
    """Return standardised features, shape (queries, features)."""
    z = standardised(scales, seen, count)
    return np.column_stack([z[name] for name in scales]) if scales else np.zeros((count, 0))


def as_rule(
    fitted: Fitted, scales: Mapping[str, Scale], menu: Menu, z: FloatArray
) -> tuple[FeatureRule, dict[str, Params]]:
    """Return the rule that chooses as a model does, and its settings; the winner is the default.

    Of a line, values are kept as far as the queries ``z`` reach.
    """
    names = list(scales)
    if isinstance(fitted, FittedLine) and fitted.weights.any():
        return _as_line(fitted, scales, menu, z)
    if isinstance(fitted, FittedGains) and len(fitted.places):
        settings = _named(menu, fitted.places.tolist())
        gains = Gains(
            {name: _rounded(start) for name, start in zip(settings, fitted.start, strict=True)},
            {
                name: {feature: _rounded(w) for feature, w in zip(names, weights, strict=True)}
                for name, weights in zip(settings, fitted.weights.T, strict=True)
            },
        )
        return FeatureRule(scales, gains=gains), settings
    if isinstance(fitted, FittedSplit):
        settings = _named(menu, [place for place in _leaves(fitted) if place])
        by_place = {0: DEFAULT, **_by_place(menu, _leaves(fitted))}
        split = _as_split(fitted, names, by_place)
        looked_at = _features(split)
        kept = {name: scale for name, scale in scales.items() if name in looked_at}
        return FeatureRule(kept, split=split), settings
    return FeatureRule(), {}


def _as_line(
    fitted: FittedLine, scales: Mapping[str, Scale], menu: Menu, z: FloatArray
) -> tuple[FeatureRule, dict[str, Params]]:
    parameter = fitted.parameter
    reached = fitted.values(z)
    values, places = menu.values(parameter), menu.lines[parameter]
    wanted = np.linspace(reached.min(), reached.max(), VALUES)
    nearest = np.unique(np.abs(wanted[:, None] - values).argmin(axis=1))
    settings = _named(menu, [int(place) for place in places[nearest] if place])
    weights = {n: _rounded(w) for n, w in zip(scales, fitted.weights, strict=True)}
    line = Line(parameter, _rounded(fitted.start), weights)
    return FeatureRule(scales, line=line), settings


def _named(menu: Menu, places: Sequence[int]) -> dict[str, Params]:
    return {name: menu.settings[place] for place, name in _by_place(menu, places).items()}


def _by_place(menu: Menu, places: Sequence[int]) -> dict[int, str]:
    """Return names of settings: what they have otherwise than the winner."""
    winner = menu.settings[0]
    found: dict[int, str] = {}
    for place in dict.fromkeys(place for place in places if place):
        other = {n: v for n, v in menu.settings[place].items() if v != winner.get(n)}
        parts = [f"{n}={v:.4g}" if isinstance(v, float) else f"{n}={v}" for n, v in other.items()]
        name = " ".join(parts) or "the winner"
        found[place] = name if name not in found.values() else f"{name} ({place})"
    return found


def _leaves(fitted: FittedSplit) -> list[int]:
    sides = (fitted.below, fitted.above)
    parts = [_leaves(side) if isinstance(side, FittedSplit) else [side] for side in sides]
    return [int(place) for part in parts for place in part]


def _as_split(fitted: FittedSplit, names: Sequence[str], by_place: Mapping[int, str]) -> Split:
    below, above = (
        _as_split(side, names, by_place) if isinstance(side, FittedSplit) else by_place[int(side)]
        for side in (fitted.below, fitted.above)
    )
    return Split(names[fitted.feature], _rounded(fitted.at), below, above)


def _features(split: Split) -> set[str]:
    found = {split.feature}
    for side in (split.below, split.above):
        if isinstance(side, Split):
            found |= _features(side)
    return found


def _rounded(value: float) -> float:
    """Return so many digits as a file is read by people with."""
    return float(f"{value:.6g}")


def _name(chosen: Chosen) -> str:
    return "" if chosen.model is None else chosen.model.name
