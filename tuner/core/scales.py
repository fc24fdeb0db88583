"""Numeric scales: where a number lies between two ends, and which steps there are between them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tuner.core.parameter_check import native
from tuner.core.trial import Scalar

if TYPE_CHECKING:
    from tuner.core.parameters import Integer, Real

# A value this close to a lattice point, as a share of the step, is that point.
LATTICE_TOLERANCE = 1e-6


def outside(value: object, low: float, high: float) -> str:
    """Say that a value is out of range."""
    return f"{native(value)!r} is outside {low} .. {high}"


def lattice_count(low: float, high: float, step: float) -> int:
    """Return how many multiples of ``step`` fit between the ends, both counted."""
    return math.floor((high - low) / step + LATTICE_TOLERANCE) + 1


def checked_lattice_value(span: Real, number: float) -> float:
    """Return the lattice point that ``number`` is.

    Raises:
        ValueError: out of range, or between two lattice points.
    """
    count, low, step = span.count or 1, span.low, span.step or 1.0
    offset = (number - low) / step
    index = round(offset)
    if not -LATTICE_TOLERANCE <= offset <= (span.high - low) / step + LATTICE_TOLERANCE:
        raise ValueError(outside(number, low, span.high))
    nearest = span.lattice_value(min(index, count - 1))
    if abs(offset - index) > LATTICE_TOLERANCE or index >= count:
        raise ValueError(f"{number!r} is off the step of {step} from {low}; nearest: {nearest!r}")
    return nearest


def checked_whole_value(span: Integer, number: int) -> int:
    """Return the lattice point that ``number`` is, in integer arithmetic: floats end at 2**53.

    Raises:
        ValueError: out of range, or between two lattice points.
    """
    if not span.low <= number <= span.high:
        raise ValueError(outside(number, span.low, span.high))
    if (number - span.low) % span.step:
        nearest = span.lattice_value(nearest_whole_index(span, number))
        message = f"{number!r} is off the step of {span.step} from {span.low}; nearest: {nearest!r}"
        raise ValueError(message)
    return number


def _edges(span: Real | Integer) -> tuple[float, float]:
    """Return where the unit interval begins and ends, on the span's scale."""
    low, high = float(span.low), float(span.high)
    if span.step is not None and span.low < span.high:
        top = low + ((span.count or 1) - 1) * span.step
        low, high = low - span.step / 2, top + span.step / 2
        if span.scale == "log":
            low = max(low, span.low / 2)  # Half a step down may reach 0.
    return (math.log(low), math.log(high)) if span.scale == "log" else (low, high)


def position_of(span: Real | Integer, value: float) -> float:
    """Return where a value lies in the unit interval."""
    start, end = _edges(span)
    if start == end or span.low == span.high:
        return 0.5
    place = math.log(value) if span.scale == "log" else value
    return min(max((place - start) / (end - start), 0.0), 1.0)


def number_at(span: Real | Integer, position: float) -> float:
    """Return the number at a position of the unit interval, off the lattice."""
    start, end = _edges(span)
    place = start + min(max(position, 0.0), 1.0) * (end - start)
    if span.step is None and position >= 1.0:
        return float(span.high)  # exp(log(high)) may miss it by a digit.
    if span.step is None and position <= 0.0:
        return float(span.low)
    return math.exp(place) if span.scale == "log" else place


def nearest_index(span: Real, raw: float) -> int:
    """Return the index of the lattice point closest to a number."""
    index = round((raw - span.low) / (span.step or 1))
    return min(max(index, 0), (span.count or 1) - 1)


def nearest_whole_index(span: Integer, raw: float) -> int:
    """Return the index of the lattice point closest to a number, of two the even index.

    A difference of large integers is no exact float, so that only the part below one step is one.
    """
    whole = math.floor(raw)
    index, rest = divmod(whole - span.low, span.step)
    odd = index % 2  # Rounding goes to the even neighbour, so that it has to know.
    index += round(odd + (rest + (raw - whole)) / span.step) - odd
    return min(max(index, 0), span.count - 1)


def spaced_levels(span: Real | Integer, number: int) -> list[Scalar]:
    """Return up to ``number`` evenly spaced values, ends included; the middle one for 1."""
    count = span.count
    if count is not None and number >= count:
        return [span.lattice_value(index) for index in range(count)]
    if number == 1:
        return [span.at(0.5)]
    low = float(span.low)
    high = low + (count - 1) * (span.step or 0) if count else float(span.high)
    if span.scale == "log":
        spaced = np.geomspace(low, high, number)
    else:
        spaced = np.linspace(low, high, number)
    if count is None:
        return list(dict.fromkeys(span.canonical(float(value)) for value in spaced))
    indices = _distinct([span.lattice_index(float(value)) for value in spaced], count)
    return [span.lattice_value(index) for index in indices]


def _distinct(indices: list[int], count: int) -> list[int]:
    """Move equal neighbours up, then down from the end, so that all differ within ``count``.

    Log levels of small integers collide: 1, 1, 2, 5 becomes 1, 2, 3, 5.
    """
    moved = list(indices)
    for i in range(1, len(moved)):
        moved[i] = max(moved[i], moved[i - 1] + 1)
    moved[-1] = min(moved[-1], count - 1)
    for i in range(len(moved) - 2, -1, -1):
        moved[i] = min(moved[i], moved[i + 1] - 1)
    return moved
