"""Values as JSON that every reader takes, whatever numbers and texts are in them; and digests."""

from __future__ import annotations

import hashlib
import json
import math
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import date
from enum import StrEnum
from functools import cache
from itertools import islice
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_ROWS_AT_ONCE = 1_000


def json_text(value: Any, *, indent: int | None = None) -> str:
    r"""Return JSON in which what is undefined or infinite is null.

    JSON knows no NaN, so many readers refuse a file with one. Half of a surrogate pair, as Python
    makes it of a file's name that is no UTF-8, stays escaped, since no file could hold it.

    >>> json_text({"name": "café"})
    '{"name": "café"}'
    >>> json_text({"recall@5": float("nan"), "name": "café \udce9"})
    '{"recall@5": null, "name": "café \\udce9"}'
    """
    try:
        text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(without_undefined(value), indent=indent, ensure_ascii=False)
    return encodable(text)


def encodable(text: str) -> str:
    r"""Return a text that files and databases can hold: half of a surrogate pair is escaped.

    >>> print(encodable("cannot open caf\udce9.txt"))
    cannot open caf\udce9.txt
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def without_undefined(value: Any) -> Any:
    """Return a record of mappings, lists and scalars with None for each number that is none."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {key: without_undefined(item) for key, item in value.items()}
        case list() | tuple():
            return [without_undefined(item) for item in value]
    return value


def text_digest(text: str, digits: int = 16) -> str:
    """Return the first hexadecimal digits of a text's SHA-256; half a character counts as it is."""
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()[:digits]


def digest_of(value: Any, digits: int = 16) -> str:
    """Return the digest of plain data, whatever the order of its keys.

    >>> digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    True
    """
    return text_digest(json.dumps(value, sort_keys=True, default=dict), digits)


def fingerprint_of(parts: Any) -> str:
    """Return all 64 digits of the SHA-256 of plain data, for what is known by it."""
    # JSON keeps "a", "bc" apart from "ab", "c", and in ASCII form it is the same everywhere.
    return text_digest(json.dumps(parts, separators=(",", ":")), 64)


def fingerprint_of_lists(lists: Iterable[Iterable[Any]]) -> str:
    """Return ``fingerprint_of`` lists of plain data, of which few rows are held at once.

    >>> fingerprint_of_lists([[["a", 1], [2]], []]) == fingerprint_of([[["a", 1], [2]], []])
    True
    """
    digest = hashlib.sha256(b"[")
    for number, rows in enumerate(lists):
        digest.update(b",[" if number else b"[")
        left, comma = iter(rows), b""
        while block := [*islice(left, _ROWS_AT_ONCE)]:
            digest.update(comma + json.dumps(block, separators=(",", ":"))[1:-1].encode())
            comma = b","
        digest.update(b"]")
    digest.update(b"]")
    return digest.hexdigest()


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
    if kind is date and isinstance(value, str):
        return date.fromisoformat(value)
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
    # By exact type: JSON knows no others, and True is an int to isinstance. A whole number is a
    # float too, where one can hold it.
    if type(value) is kind or (kind is float and type(value) is int and abs(value) < 2**1024):
        return value
    raise ValueError(f"{name or 'it'} is {reprlib.repr(value)}")


_hints = cache(get_type_hints)  # a journal holds thousands of one kind


def _dataclass(kind: type, value: object, name: str) -> Any:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name or 'it'} is {reprlib.repr(value)}")
    hints = _hints(kind)
    known = {}
    for part in fields(kind):
        if part.name in value:
            known[part.name] = read_as(hints[part.name], value[part.name], _joined(name, part.name))
        elif part.default is MISSING and part.default_factory is MISSING:
            raise ValueError(f"{_joined(name, part.name)} is missing")
    return kind(**known)


def _joined(name: str, key: object) -> str:
    return f"{name}.{key}" if name else str(key)
