"""Whether a value is the number or the day that is wanted, and in words why it is not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any, TypeGuard

import numpy as np

from tuner.core.errors import InputError, Problem
from tuner.core.shown import shortened

# Beyond it, neighbouring integers are no longer different as floats.
LARGEST_INTEGER = 2**53
# Beyond it, sums and products of a few numbers overflow.
LARGEST_NUMBER = 1e100


def native(value: object) -> Any:
    """Return a numpy scalar as the Python value it stands for, and anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def is_number(value: object) -> TypeGuard[int | float]:
    """Say whether a value is an int or a float; True and False are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_whole(value: object) -> TypeGuard[int]:
    """Say whether a value is an int; True and False are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def number_problem(value: object) -> str | None:
    """Return why a value is no finite number of sensible size, or None."""
    value = native(value)
    if isinstance(value, str):
        return f"{value!r} is text, a number is wanted{_unquoted(value)}"
    if not is_number(value):
        return f"{value!r} is not a number"
    if value != value or abs(value) == math.inf:
        return f"{value!r} is not a finite number"
    if abs(value) > LARGEST_NUMBER:
        return f"is too large: numbers go up to {LARGEST_NUMBER:g}"
    return None


def integer_problem(value: object) -> str | None:
    """Return why a value is no integer (2.0 is one), or None."""
    value = native(value)
    problem = number_problem(value)
    if problem:
        return problem
    if value != int(value):  # type: ignore[call-overload]  # a number by now
        return f"{value!r} is not an integer"
    if abs(value) > LARGEST_INTEGER:  # type: ignore[arg-type]
        return f"{value!r} is too large: integers go up to 2**53"
    return None


def check_whole(name: str, value: object, *, least: int) -> None:
    """Refuse anything but an integer of at least ``least``.

    Raises:
        InputError: with the option's name as its key.
    """
    if not is_whole(value) or value < least:
        message = f"must be a whole number of at least {least}, got {value!r}"
        raise InputError(message, key=(name,))


def check_number(name: str, value: object, *, least: float) -> None:
    """Refuse anything but a finite number of at least ``least``.

    Raises:
        InputError: with the option's name as its key.
    """
    if not is_number(value) or not least <= value < math.inf:
        raise InputError(f"must be a number of at least {least}, got {value!r}", key=(name,))


def option_problems(
    given: Mapping[str, Any], lows: Mapping[str, float], whole: tuple[str, ...] = ()
) -> Iterator[Problem]:
    """Yield a problem for each option that is not a finite number from its low up.

    A low of 0 excludes 0 itself unless the number is a ``whole`` one, which 2.0 is too.
    """
    for name, low in lows.items():
        value = given[name]
        is_right = is_number(value) and low <= value < math.inf
        if name in whole:
            if not is_right or value != int(value):
                yield Problem(f"must be a whole number from {low:g} up, got {value!r}", key=(name,))
        elif not is_right or value <= 0:
            above = "above 0" if low == 0 else f"from {low:g} up"
            yield Problem(f"must be a number {above}, got {value!r}", key=(name,))


def _unquoted(text: str) -> str:
    try:
        number = float(text)
    except ValueError:
        return ""
    if not math.isfinite(number):
        return ""
    mantissa, has_exponent, exponent = text.lower().partition("e")
    if not has_exponent:
        return f"; write {text} without quotes"
    # YAML 1.1 reads 1e-3 as text, since it has no dot.
    return f"; write {float(mantissa)!r}e{int(exponent):+d}"


def parse_day(text: str) -> date:
    """Return the day of an ISO 8601 date or time; one with an offset counts in UTC.

    >>> parse_day("2024-03-01T23:30:00-02:00")
    datetime.date(2024, 3, 2)

    Raises:
        ValueError: it is not one, in words.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
        return (moment if moment.tzinfo is None else moment.astimezone(UTC)).date()
    except (ValueError, OverflowError):  # the first and the last day have no day before and after
        shown = shortened(text, 40)
        message = f"{shown!r} is not a date; write 2024-03-01, or 2024-03-01T08:00:00+00:00"
        raise ValueError(message) from None
