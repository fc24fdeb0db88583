"""Records read back from JSON: each part has the type that its dataclass promises, or is named."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints


def read_as(kind: Any, value: object, name: str = "") -> Any:
    """Return a value from JSON as a dataclass, a tuple, a mapping, or what else ``kind`` says.

    Keys that a dataclass does not know, from a later version, are left out. A number by name may
    be null: undefined.

    >>> read_as(tuple[int, ...], [1, 2])
    (1, 2)

    Raises:
        ValueError: a part that is missing or of another type, by its name, which ``name`` begins.
    """
    origin, parts = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if isinstance(kind, type) and is_dataclass(kind):
        return _dataclass(kind, value, name)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        if isinstance(value, str) and value in tuple(kind):
            return kind(value)
        raise ValueError(f"{name or 'it'} is {reprlib.repr(value)}")
    if origin in (Union, UnionType):
        # Null first: what else is wrong is told of the other.
        if value is None and NoneType in parts:
            return None
        *others, last = (part for part in parts if part is not NoneType)
        for other in others:
            if type(value) is other:
                return value
        return read_as(last, value, name)
    if origin is Literal and value in parts:
        return value
    if origin is tuple and isinstance(value, list):
        kinds = parts[:1] * len(value) if parts[-1] is Ellipsis else parts
        if len(kinds) == len(value):
            return tuple(
                read_as(part, one, f"{name}[{place}]")
                for place, (part, one) in enumerate(zip(kinds, value, strict=True))
            )
    if origin in (Mapping, dict) and isinstance(value, Mapping):
        of = parts[1]
        return {
            key: math.nan if of is float and one is None else read_as(of, one, _joined(name, key))
            for key, one in value.items()
        }
    # By exact type: JSON knows no others, and True is an int to isinstance.
    if type(value) is kind or (kind is float and type(value) is int):
        return value
    raise ValueError(f"{name or 'it'} is {reprlib.repr(value)}")


def _dataclass(kind: type, value: object, name: str) -> Any:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name or 'it'} is {reprlib.repr(value)}")
    hints = get_type_hints(kind)
    known = {}
    for part in fields(kind):
        if part.name in value:
            known[part.name] = read_as(hints[part.name], value[part.name], _joined(name, part.name))
        elif part.default is MISSING and part.default_factory is MISSING:
            raise ValueError(f"{_joined(name, part.name)} is missing")
    return kind(**known)


def _joined(name: str, key: object) -> str:
    return f"{name}.{key}" if name else str(key)
