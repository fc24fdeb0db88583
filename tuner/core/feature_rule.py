"""The rule of a policy that looks at features of a query: numbers seen before it is answered."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tuner.core.errors import InputError
from tuner.core.json_text import read_as
from tuner.core.rankings import BoolArray, FloatArray
from tuner.core.trial import Params

Seen = Mapping[str, FloatArray]
"""Feature -> its value for each query, shape (queries,); NaN where it is not known."""

# The setting that a query gets where nothing speaks for another: the policy's default.
DEFAULT = ""
# Deviations from the mean beyond which a feature counts no more.
FURTHEST = 3.0


@dataclass(frozen=True)
class Scale:
    """Mean and standard deviation of a feature over the queries that a rule was learned from."""

    mean: float
    deviation: float


@dataclass(frozen=True)
class Line:
    """A parameter's value as a sum: ``start + sum(weight * standardised feature)``.

    A query gets the setting whose value of the parameter is nearest.
    """

    parameter: str
    start: float
    weights: Mapping[str, float]


@dataclass(frozen=True)
class Gains:
    """What each setting is expected to gain over the default: linear in standardised features.

    A query gets the setting with the highest gain above 0, else the default.
    """

    start: Mapping[str, float]
    weights: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Split:
    """Parts queries by whether a standardised feature is at least ``at``.

    ``below`` and ``above`` are names of settings, or further splits.
    """

    feature: str
    at: float
    below: str | Split
    above: str | Split


@dataclass(frozen=True)
class FeatureRule:
    """Tells which setting a query gets by what is seen of it.

    Attributes:
        features: how each feature that is looked at is standardised. One that is not known counts
            as its mean, and none as more than three deviations from it.
        line, gains, split: the rule; of these one is there, or none: then all get the default.
        function: ``module:function`` of the user's that tells further features; "": none.
    """

    features: Mapping[str, Scale] = field(default_factory=dict)
    line: Line | None = None
    gains: Gains | None = None
    split: Split | None = None
    function: str = ""

    def choose(self, seen: Seen, count: int, settings: Mapping[str, Params]) -> list[str]:
        """Return the name of the setting for each of ``count`` queries.

        ``settings`` are those of the policy by name, its default as ``DEFAULT`` first.
        """
        z = standardised(self.features, seen, count)
        if self.line is not None:
            return _nearest(self.line, z, settings, count)
        if self.gains is not None:
            return _highest(self.gains, z, count)
        if self.split is not None:
            found = np.full(count, DEFAULT, dtype=object)
            _part(self.split, z, np.ones(count, dtype=bool), found)
            return [str(name) for name in found]
        return [DEFAULT] * count

    @property
    def settings(self) -> set[str]:
        """Return the names of the settings that the rule speaks of."""
        if self.gains is not None:
            return {*self.gains.start, *self.gains.weights}
        return set() if self.split is None else {*_leaves(self.split)} - {DEFAULT}

    def to_record(self) -> dict[str, Any]:
        """Return the rule as plain data."""
        record: dict[str, Any] = {
            "features": {
                name: {"mean": scale.mean, "deviation": scale.deviation}
                for name, scale in self.features.items()
            }
        }
        if self.line is not None:
            record["line"] = {
                "parameter": self.line.parameter,
                "start": self.line.start,
                "weights": dict(self.line.weights),
            }
        if self.gains is not None:
            record["gains"] = {
                "start": dict(self.gains.start),
                "weights": {name: dict(of) for name, of in self.gains.weights.items()},
            }
        if self.split is not None:
            record["split"] = _split_record(self.split)
        if self.function:
            record["function"] = self.function
        return record


def standardised(scales: Mapping[str, Scale], seen: Seen, count: int) -> dict[str, FloatArray]:
    """Return standardised features, each of shape (count,); what is not known is 0."""
    found = {}
    for name, scale in scales.items():
        values = np.asarray(seen.get(name, np.full(count, np.nan)), dtype=np.float64)
        z = (values - scale.mean) / scale.deviation
        found[name] = np.clip(np.where(np.isfinite(z), z, 0.0), -FURTHEST, FURTHEST)
    return found


def read_rule(record: Mapping[str, Any]) -> FeatureRule:
    """Read a rule back.

    Raises:
        ValueError: a part is missing, or a number is none.
    """
    rule: FeatureRule = read_as(FeatureRule, record, "rule")
    for name, number in _numbers(rule):
        if not math.isfinite(number):
            raise ValueError(f"{name} is not a finite number")
    for name, scale in rule.features.items():
        if scale.deviation <= 0:
            raise ValueError(f"the deviation of {name!r} is not above 0")
    if unknown := _looked_at(rule) - set(rule.features):
        raise ValueError(
            f"the rule looks at {', '.join(sorted(unknown))} without mean or deviation"
        )
    return rule


def check_settings(rule: FeatureRule, settings: Mapping[str, Params]) -> None:
    """Refuse a rule that speaks of what the policy does not have.

    Raises:
        InputError: names it.
    """
    if unknown := sorted(rule.settings - set(settings)):
        raise InputError(f"the rule speaks of settings that are not there: {', '.join(unknown)}")
    if rule.line is None:
        return
    name = rule.line.parameter
    for params in settings.values():
        value = params.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"the rule is a line of {name!r}, and a setting has no number of it")


def _nearest(
    line: Line, z: Mapping[str, FloatArray], settings: Mapping[str, Params], count: int
) -> list[str]:
    total = np.full(count, line.start)
    for name, weight in line.weights.items():
        total = total + weight * z[name]
    names = list(settings)
    values = np.array([float(params[line.parameter]) for params in settings.values()])  # type: ignore[arg-type]  # a number, see check_settings
    return [names[place] for place in np.abs(total[:, None] - values).argmin(axis=1)]


def _highest(gains: Gains, z: Mapping[str, FloatArray], count: int) -> list[str]:
    names = [DEFAULT, *gains.start]
    scores = np.zeros((count, len(names)))
    for place, name in enumerate(gains.start, start=1):
        scores[:, place] = gains.start[name]
        for feature, weight in gains.weights.get(name, {}).items():
            scores[:, place] += weight * z[feature]
    return [names[place] for place in scores.argmax(axis=1)]


def _part(split: Split, z: Mapping[str, FloatArray], rows: BoolArray, found: Any) -> None:
    is_above = z[split.feature] >= split.at
    for side, part in ((split.below, rows & ~is_above), (split.above, rows & is_above)):
        if isinstance(side, Split):
            _part(side, z, part, found)
        else:
            found[part] = side


def _sides(split: Split) -> Sequence[str | Split]:
    return (split.below, split.above)


def _leaves(split: Split) -> Iterator[str]:
    for side in _sides(split):
        if isinstance(side, Split):
            yield from _leaves(side)
        else:
            yield side


def _splits(split: Split) -> Iterator[Split]:
    yield split
    for side in _sides(split):
        if isinstance(side, Split):
            yield from _splits(side)


def _looked_at(rule: FeatureRule) -> set[str]:
    line = set() if rule.line is None else set(rule.line.weights)
    gains = set() if rule.gains is None else {n for of in rule.gains.weights.values() for n in of}
    split = set() if rule.split is None else {one.feature for one in _splits(rule.split)}
    return line | gains | split


def _numbers(rule: FeatureRule) -> Iterator[tuple[str, float]]:
    for name, scale in rule.features.items():
        yield f"the mean of {name!r}", scale.mean
        yield f"the deviation of {name!r}", scale.deviation
    if rule.line is not None:
        yield "the start of the line", rule.line.start
        for name, weight in rule.line.weights.items():
            yield f"the weight of {name!r}", weight
    if rule.gains is not None:
        for name, start in rule.gains.start.items():
            yield f"the gain of {name!r}", start
        for weights in rule.gains.weights.values():
            for name, weight in weights.items():
                yield f"the weight of {name!r}", weight
    if rule.split is not None:
        for one in _splits(rule.split):
            yield f"the split at {one.feature!r}", one.at


def _split_record(split: Split) -> dict[str, Any]:
    def side(one: str | Split) -> Any:
        return _split_record(one) if isinstance(one, Split) else one

    return {
        "feature": split.feature,
        "at": split.at,
        "below": side(split.below),
        "above": side(split.above),
    }
