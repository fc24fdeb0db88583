"""Small models that choose a setting for a query by its standardised features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tuner.core.rankings import BoolArray, FloatArray, IntArray
from tuner.evaluation.by_features.menu import Menu

# Curves over a parameter are looked at in so many places, smoothed by so much of its range: a step
# of one query's curve would else have no slope that a search could follow.
PLACES = 101
WIDTH = 0.1
# Gains are predicted of so many settings beside the winner at most.
MOST_SETTINGS = 4
# A side of a split has so many queries at least, and the values of a feature are cut in so many.
LEAST_QUERIES = 8
CUTS = 10


class Fitted(Protocol):
    """A model that was learned from some queries."""

    def choose(self, z: FloatArray) -> IntArray:
        """Return the place of a setting in the menu for each row of ``z`` (queries, features)."""
        ...


class Model(Protocol):
    """A way of learning, with its strength of regularisation."""

    @property
    def name(self) -> str:
        """Return what it is called in words."""
        ...

    def fit(self, z: FloatArray, menu: Menu, rows: IntArray) -> Fitted:
        """Learn from the queries in ``rows``; ``z`` has shape (queries, features)."""
        ...


@dataclass(frozen=True, eq=False)
class FittedLine:
    """A parameter's value as ``start + z @ weights``."""

    menu: Menu
    parameter: str
    start: float
    weights: FloatArray

    def values(self, z: FloatArray) -> FloatArray:
        """Return the parameter's value for each row, within the values of the line."""
        values = self.menu.values(self.parameter)
        found: FloatArray = np.clip(self.start + z @ self.weights, values[0], values[-1])
        return found

    def choose(self, z: FloatArray) -> IntArray:
        """Return the places of the nearest settings."""
        values = self.menu.values(self.parameter)
        nearest = np.abs(self.values(z)[:, None] - values).argmin(axis=1)
        places: IntArray = self.menu.lines[self.parameter][nearest]
        return places


@dataclass(frozen=True)
class LineModel:
    """Ascends the mean objective over a parameter's values that are linear in the features.

    Each query's curve is smoothed along the parameter. The squared weights, in ranges of the
    parameter, are taken off, times ``strength`` and the curves' root mean square: so with nothing
    to be gained the weights stay 0, and the value that of the winner.
    """

    parameter: str
    strength: float

    @property
    def name(self) -> str:
        """Return what it is called in words."""
        return f"a line of {self.parameter}"

    def fit(self, z: FloatArray, menu: Menu, rows: IntArray) -> FittedLine:
        """Learn by L-BFGS, begun at the winner."""
        from scipy.optimize import minimize

        values = menu.values(self.parameter)
        low, span = values[0], values[-1] - values[0]
        begin = float(menu.settings[0][self.parameter])  # type: ignore[arg-type]  # a number
        nothing = FittedLine(menu, self.parameter, begin, np.zeros(z.shape[1]))
        if span <= 0 or not len(rows):
            return nothing
        curves = _smoothed((values - low) / span, menu.gains[menu.lines[self.parameter]][:, rows])
        scale = float(np.sqrt((curves**2).mean()))
        if scale == 0.0:
            return nothing
        x = np.column_stack([np.ones(len(rows)), z[rows]])
        start, cost = (begin - low) / span, self.strength * scale
        slopes = np.diff(curves, axis=0) * (PLACES - 1)
        each = np.arange(len(rows))

        def loss(weights: FloatArray) -> tuple[float, FloatArray]:
            at = start + x @ weights
            place = np.clip(at, 0.0, 1.0) * (PLACES - 1)
            left = np.minimum(place.astype(np.int64), PLACES - 2)
            slope = slopes[left, each]
            worth = curves[left, each] + slope * (place - left) / (PLACES - 1)
            inside = np.where((at >= 0.0) & (at <= 1.0), slope, 0.0)
            gradient = 2.0 * cost * weights - inside @ x / len(rows)
            return cost * float(weights @ weights) - float(worth.mean()), gradient

        found = minimize(loss, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B").x
        if loss(found)[0] >= loss(np.zeros(x.shape[1]))[0]:
            return nothing
        return FittedLine(menu, self.parameter, begin + span * float(found[0]), span * found[1:])


def _smoothed(at: FloatArray, gains: FloatArray) -> FloatArray:
    """Return curves at even places over [0, 1], smoothed by a Gaussian; (places, queries)."""
    places = np.linspace(0.0, 1.0, PLACES)
    # Each value stands for the part of the range around it, however uneven they lie.
    edges = np.concatenate([[0.0], (at[1:] + at[:-1]) / 2, [1.0]])
    kernel = np.exp(-0.5 * ((places[:, None] - at) / WIDTH) ** 2) * np.maximum(np.diff(edges), 1e-9)
    kernel /= kernel.sum(axis=1, keepdims=True)
    curves: FloatArray = kernel @ gains
    return curves


@dataclass(frozen=True, eq=False)
class FittedGains:
    """Gains of some settings over the winner, linear in the features."""

    places: IntArray
    start: FloatArray
    weights: FloatArray

    def choose(self, z: FloatArray) -> IntArray:
        """Return the setting with the highest gain above 0, else the winner."""
        gains = np.column_stack([np.zeros(len(z)), self.start + z @ self.weights])
        places: IntArray = np.concatenate([[0], self.places])[gains.argmax(axis=1)]
        return places


@dataclass(frozen=True)
class GainsModel:
    """Predicts by ridge regression what a few settings gain over the winner.

    ``strength`` is the ridge's penalty for each query.
    """

    strength: float

    @property
    def name(self) -> str:
        """Return what it is called in words."""
        return "predicted gains of a few settings"

    def fit(self, z: FloatArray, menu: Menu, rows: IntArray) -> FittedGains:
        """Learn; the settings are those that together are worth most, query by query."""
        places = _portfolio(menu, rows)
        gains = menu.gains[places][:, rows].T
        n = len(rows)
        if not len(places) or not n:
            return FittedGains(places, np.zeros(len(places)), np.zeros((z.shape[1], len(places))))
        x, centre = z[rows], z[rows].mean(axis=0)
        mean = gains.mean(axis=0)
        square = (x - centre).T @ (x - centre) + self.strength * n * np.eye(x.shape[1])
        weights = np.linalg.solve(square, (x - centre).T @ (gains - mean))
        return FittedGains(places, mean - centre @ weights, weights)


def _portfolio(menu: Menu, rows: IntArray) -> IntArray:
    """Return places of settings, one after the other those that add most to the best of all."""
    few = menu.few[1:]
    gains = menu.gains[few][:, rows]
    best = np.zeros(len(rows))
    chosen: list[int] = []
    for _ in range(min(MOST_SETTINGS, len(few))):
        worth = np.maximum(gains, best).mean(axis=1)
        at = int(worth.argmax())
        if worth[at] <= best.mean() + 1e-12:
            break
        best = np.maximum(best, gains[at])
        chosen.append(int(few[at]))
    return np.array(chosen, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class FittedSplit:
    """A split of queries at a value of a feature; each side is a setting, or split further."""

    feature: int
    at: float
    below: int | FittedSplit
    above: int | FittedSplit

    def choose(self, z: FloatArray) -> IntArray:
        """Return the setting of the part that each query falls in."""
        is_above = z[:, self.feature] >= self.at
        sides = [
            side.choose(z) if isinstance(side, FittedSplit) else np.full(len(z), side)
            for side in (self.below, self.above)
        ]
        places: IntArray = np.where(is_above, sides[1], sides[0])
        return places


@dataclass(frozen=True, eq=False)
class FittedLeaf:
    """One setting for all."""

    place: int

    def choose(self, z: FloatArray) -> IntArray:
        """Return it."""
        return np.full(len(z), self.place)


@dataclass(frozen=True)
class SplitModel:
    """Parts queries once, or each part once more, and gives each part a setting.

    A setting counts with its gain in a part less ``strength`` standard errors of it; the winner
    with 0.
    """

    depth: int
    strength: float

    @property
    def name(self) -> str:
        """Return what it is called in words."""
        return "a tree of one split" if self.depth == 1 else "a tree of up to three splits"

    def fit(self, z: FloatArray, menu: Menu, rows: IntArray) -> Fitted:
        """Learn, one split after the other."""
        few = menu.few
        found = self._grown(z[rows], menu.gains[few][:, rows], few, self.depth)
        return found if isinstance(found, FittedSplit) else FittedLeaf(found)

    def _grown(
        self, z: FloatArray, gains: FloatArray, few: IntArray, depth: int
    ) -> int | FittedSplit:
        worth, alone = self._best(np.ones((1, len(z)), dtype=bool), gains)
        best: tuple[float, int, float, BoolArray] | None = None
        for feature in range(z.shape[1] if depth else 0):
            cuts = _cuts(z[:, feature])
            if not len(cuts):
                continue
            is_above = z[:, feature] >= cuts[:, None]
            counts = is_above.sum(axis=1)
            is_usable = (counts >= LEAST_QUERIES) & (len(z) - counts >= LEAST_QUERIES)
            if not is_usable.any():
                continue
            cuts, is_above = cuts[is_usable], is_above[is_usable]
            both = self._best(is_above, gains)[0] + self._best(~is_above, gains)[0]
            at = int(both.argmax())
            if best is None or both[at] > best[0] + 1e-12:
                best = (float(both[at]), feature, float(cuts[at]), is_above[at])
        if best is None or best[0] <= worth[0] + 1e-12:
            return int(few[alone[0]])
        _, feature, cut, part = best
        sides = [self._grown(z[of], gains[:, of], few, depth - 1) for of in (~part, part)]
        return FittedSplit(feature, cut, sides[0], sides[1])

    def _best(self, parts: BoolArray, gains: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return the highest bounded sum of gains of each part, and of which setting it is."""
        inside = parts.astype(np.float64)
        sums, squares = inside @ gains.T, inside @ (gains**2).T
        counts = np.maximum(inside.sum(axis=1), 1.0)[:, None]
        spread = np.sqrt(np.maximum(squares - sums**2 / counts, 0.0))
        bounded = sums - self.strength * spread
        bounded[:, 0] = 0.0
        places: IntArray = bounded.argmax(axis=1)
        return np.take_along_axis(bounded, places[:, None], axis=1)[:, 0], places


def _cuts(values: FloatArray) -> FloatArray:
    """Return values that lie between neighbours, and cut so many queries into equal parts."""
    apart = np.unique(values)
    if len(apart) < 2:
        return np.zeros(0)
    quantiles = np.quantile(values, np.linspace(0.0, 1.0, CUTS + 1)[1:-1])
    above = np.clip(np.searchsorted(apart, quantiles), 1, len(apart) - 1)
    cuts: FloatArray = np.unique((apart[above] + apart[above - 1]) / 2)
    return cuts


def candidates(parameters: Sequence[str]) -> list[Model]:
    """Return the models among which one is chosen, for lines of some parameters."""
    return [
        *(LineModel(name, strength) for name in parameters for strength in (0.3, 1.0, 3.0, 10.0)),
        *(GainsModel(strength) for strength in (0.1, 0.3, 1.0, 3.0)),
        *(SplitModel(depth, strength) for depth in (1, 2) for strength in (1.0, 2.0)),
    ]
