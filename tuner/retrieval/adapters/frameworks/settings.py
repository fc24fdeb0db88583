"""What an object can be set to, as a knob: its type, its range and what it is set to today."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from tuner.core.checks import is_number
from tuner.core.trial import Scalar
from tuner.retrieval.knobs import Knob

# How many of something; by the last part of a name.
_COUNTS = frozenset(
    "adjacent_k at_most fetch_k hybrid_top_k k limit select_k similarity_top_k sparse_top_k "
    "start_k top_k top_n".split()
)
# Shares and similarities, from 0 to 1.
_SHARES = frozenset("alpha lambda_mult mmr_threshold score_threshold similarity_score".split())
_MOST = 100
AT_MOST = "at_most"


@dataclass(frozen=True)
class Setting:
    """One thing that an object can be set to.

    Attributes:
        name: with a dot before each part that it lies in, as ``retriever.top_k``.
        value: what it is set to today; None: to nothing.
        hint: its type, as an annotation; without one the type of ``value`` counts.
        choices: the only values that it takes; else the annotation tells them, where it does.
        within: ends beyond which it is refused; None: no end, or as the name tells.
        when: the values of other settings beside which this one has an effect.
        constraint: a constraint of a space, outside of which the framework says nothing.
        constraint_when: the values of other settings beside which it counts; empty: always.
        is_open: whether nothing tells its type and value: a configuration has to.
    """

    name: str
    value: Any
    hint: Any = None
    description: str = ""
    choices: Sequence[Scalar] = ()
    within: tuple[float | None, float | None] | None = None
    when: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict)
    constraint: str = ""
    constraint_when: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict)
    is_open: bool = False


def at_most() -> Setting:
    """Return the setting of an object that has no depth of its own: its answers are cut."""
    told = "how many results of an answer count, best first; left out: all"
    return Setting(AT_MOST, None, int, told)


def hints_of(function: Any) -> dict[str, Any]:
    """Return the annotations of a function, as far as they can be told."""
    try:
        return get_type_hints(function)
    except Exception:  # a name that is imported for type checkers alone
        return {}


def knob_of(setting: Setting) -> Knob | None:
    """Return a setting as a knob of queries; None where it takes no number and no choice.

    Nobody declares ranges. What is refused is what no system could take; what is suggested is a
    range around today's value.
    """
    value = setting.value.value if isinstance(setting.value, Enum) else setting.value
    plain = _plain(setting.hint, value)
    about: dict[str, Any] = {
        "description": setting.description,
        "when": setting.when,
        "constraint": setting.constraint,
        "constraint_when": setting.constraint_when,
    }
    choices = tuple(setting.choices) or _choices(plain)
    if choices:
        # None mostly means "as it was made", which today's value says better.
        choices = tuple(dict.fromkeys((*choices, value)))
        return Knob(setting.name, "categorical", value, choices=choices, **about)
    if plain not in (int, float) or not (value is None or _is_finite(value)):
        return None
    low, high, suggested, scale = _range(setting, value, whole=plain is int)
    if value is None and low is not None and high is not None:
        suggested = suggested or (low, high)
    if value is not None and plain is float:
        value = float(value)
    kind: Literal["integer", "real"] = "integer" if plain is int else "real"
    return Knob(setting.name, kind, value, low, high, scale=scale, suggested=suggested, **about)


def _is_finite(value: Any) -> bool:
    return is_number(value) and math.isfinite(value)


def _plain(hint: Any, value: Any) -> Any:
    """Return the type of a hint that a knob can have; by the value where none is told."""
    if get_origin(hint) in (Union, UnionType):
        known = [part for part in get_args(hint) if part in (bool, int, float) or _choices(part)]
        if float in known and int in known:
            return float
        return known[0] if known else None
    if hint in (bool, int, float) or _choices(hint):
        return hint
    is_told = hint not in (None, Any) and not isinstance(hint, str)
    return None if is_told or value is None else type(value)


def _choices(hint: Any) -> tuple[Scalar, ...]:
    if hint is bool:
        return (False, True)
    if get_origin(hint) is Literal:
        return tuple(get_args(hint))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return tuple(one.value for one in hint)
    return ()


def _range(
    setting: Setting, value: Any, *, whole: bool
) -> tuple[float | None, float | None, tuple[float, float] | None, Literal["linear", "log"]]:
    """Return the ends beyond which a number is refused, a range to begin with, and its scale."""
    last = setting.name.rpartition(".")[2]
    if setting.within is not None and None not in setting.within:
        low, high = setting.within
        return low, high, None, "linear"
    if last in _SHARES or last.rstrip("0123456789_").endswith("weights"):
        return 0.0, 1.0, None, "linear"
    if whole and last in _COUNTS:
        return 1, None, (1, max(_MOST, 4 * (value or 0))), "log"
    low, high = setting.within or (None, None)
    if value is None:
        return low, high, ((0, 5) if whole else (0.0, 1.0)), "linear"
    if whole:
        return low, high, ((1, 4 * value) if value > 0 else (min(value, 0), 5)), "linear"
    if value == 1:
        # Mostly a weight: a range that ends there could only lower it.
        return low, high, (0.0, 2.0 if high is None else min(2.0, high)), "linear"
    if 0 <= value < 1:
        return low, high, (0.0, 1.0), "linear"
    return low, high, (value / 4, value * 4) if value > 0 else (4 * value, 0.0), "linear"
