"""Digests of data: short names that are the same on every machine and in every run."""

from __future__ import annotations

import hashlib
import json
from typing import Any


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
