"""Values as JSON that every reader takes, whatever numbers and texts are in them; and digests."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any


def json_text(value: Any, *, indent: int | None = None) -> str:
    r"""Return JSON in which what is undefined or infinite is null.

    JSON knows no NaN, so many readers refuse a file with one. Half of a surrogate pair, as Python
    makes it of a file's name that is no UTF-8, stays escaped, since no file could hold it.

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


def metrics_of(record: Mapping[str, float | None] | None) -> dict[str, float]:
    """Return the metrics of a record as they were: null is NaN, undefined."""
    values = {} if record is None else record
    return {name: math.nan if value is None else value for name, value in values.items()}


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
