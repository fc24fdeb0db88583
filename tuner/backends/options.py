"""Checks of the options that backends take."""

from __future__ import annotations

import math

from tuner.core.errors import InputError


def check_whole(name: str, value: object, *, least: int) -> None:
    """Refuse anything but an integer of at least ``least``.

    Raises:
        InputError: with the option's name as its key.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        message = f"must be a whole number of at least {least}, got {value!r}"
        raise InputError(message, key=(name,))


def check_budget(budget: object) -> None:
    """Refuse a budget that is no number of trials; configurations call it ``trials``."""
    check_whole("trials", budget, least=1)


def check_number(name: str, value: object, *, least: float) -> None:
    """Refuse anything but a finite number of at least ``least``.

    Raises:
        InputError: with the option's name as its key.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value < least:  # type: ignore[arg-type,operator]
        raise InputError(f"must be a number of at least {least}, got {value!r}", key=(name,))
