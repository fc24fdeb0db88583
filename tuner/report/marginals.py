"""Which way a parameter moves the objective, and how far, with what chance leaves open."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tuner.core.rankings import FloatArray
from tuner.core.space import Categorical, Parameter
from tuner.report.parts import shown_param

# Where along a range a marginal is looked at.
POINTS = 21
# An end higher than the other by so much of the whole movement is a direction, and no hill.
SLOPE = 0.6
# So many of the forests must see the same, or no sign is told.
AGREED = 0.9


@dataclass(frozen=True)
class Movement:
    """How a parameter moves the objective, the others averaged over the whole space.

    Attributes:
        sign: "+" more is better, "−" less is better, "∩" best inside its range, "∪" best at its
            ends; of choices, the best one; empty where the forests do not agree.
        size: the objective at its best value less that at its worst, as a mean over the forests.
        low, high: the range of ``size`` over the forests.
    """

    sign: str
    size: float
    low: float
    high: float

    @property
    def words(self) -> str:
        """Say which way it moves the objective."""
        known = {
            "+": "more is better",
            "−": "less is better",
            "∩": "best inside its range",
            "∪": "best at the ends of its range",
            "": "no clear direction",
        }
        return known.get(self.sign, f"best: {self.sign}")


def sampled(values: FloatArray, sizes: FloatArray, *, is_choice: bool) -> FloatArray:
    """Return a marginal at ``POINTS`` even places of the range, or at each choice.

    ``values`` and ``sizes`` are of its cells, in their order; sizes add up to 1.

    >>> sampled(np.array([0.0, 1.0]), np.array([0.5, 0.5]), is_choice=False)[[0, 9, 11, 20]]
    array([0., 0., 1., 1.])
    """
    if is_choice:
        return values
    places = (np.arange(POINTS) + 0.5) / POINTS
    cells = np.searchsorted(np.cumsum(sizes), places, side="left")
    found: FloatArray = values[np.minimum(cells, len(values) - 1)]
    return found


def movement(parameter: Parameter, marginals: FloatArray) -> Movement:
    """Return how a parameter moves the objective from its marginals, shape (forests, places)."""
    sizes = marginals.max(axis=1) - marginals.min(axis=1)
    signs = [_sign(parameter, one) for one in marginals]
    common = max(dict.fromkeys(signs), key=signs.count)
    sign = common if signs.count(common) >= AGREED * len(signs) else ""
    return Movement(sign, *map(float, (sizes.mean(), sizes.min(), sizes.max())))


def _sign(parameter: Parameter, marginal: FloatArray) -> str:
    span = float(marginal.max() - marginal.min())
    if span <= 0.0:
        return ""
    if isinstance(parameter, Categorical):
        return shown_param(parameter.choices[int(marginal.argmax())])
    third = len(marginal) // 3
    first, middle, last = (
        float(part.mean()) for part in (marginal[:third], marginal[third:-third], marginal[-third:])
    )
    if abs(last - first) >= SLOPE * span and (last - middle) * (middle - first) >= 0.0:
        return "+" if last > first else "−"
    if middle > max(first, last):
        return "∩"
    return "∪" if middle < min(first, last) else "+" if last > first else "−"
