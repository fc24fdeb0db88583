"""Passwords in tracking URIs: found however badly the URI is written, and kept out of sight."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from tuner.core.secrets import OPEN_VALUE, STARS, starred

# As parameters (?password=…) and within ODBC's own string (PWD=…), which is percent-encoded.
_NAMED = re.compile(
    r"(?:pass(?:word|wd|phrase)?|pwd|secret|token|api_?key)"
    r"(?:=|%3D)(\{.*?\}|%7B.*?%7D|.*?)(?=[&;\s]|%3B|%26|$)",
    re.IGNORECASE,
)
# Of a server's address whatever stands in a parameter, whose name nobody knows, but for numbers;
# and a user without a password, who is a token.
_PARAMETER = re.compile(r"[?&][^=&#\s]+=([^&#\s]+)")
_TOKEN = re.compile(r"://([^:@/?#\s]+)@")
# A shorter password is looked for as a whole word only.
_SHORT = 6


def holds_password(uri: str) -> bool:
    """Say whether a URI holds a password; in doubt it does.

    >>> holds_password("http://me:word@host:5000"), holds_password("http://host:5000")
    (True, False)
    """
    return bool(_passwords(uri))


def without_password(text: str, uri: str) -> str:
    """Return the text with the URI's passwords, if it has any, replaced by stars.

    So are their beginnings where the text was cut short in the middle of one.

    >>> without_password("no answer from http://me:word@host", "http://me:word@host")
    'no answer from http://me:***@host'
    """
    passwords = _passwords(uri)
    for password in passwords:  # where they stand in a URI
        text = re.sub(rf"(?<=[:=/]){re.escape(password)}(?=@|&|;|$)", STARS, text)
    return starred(text, passwords, whole_word_below=_SHORT)


def mask(uri: str) -> str:
    """Return a URI as it may be shown: with stars for its passwords."""
    return without_password(uri, uri)


def masked(value: Any, uri: str) -> Any:
    """Return a JSON-like value in which every string that holds the URI holds it masked."""
    match value:
        case str():
            return value.replace(uri, mask(uri))
        case dict():
            return {key: masked(item, uri) for key, item in value.items()}
        case list() | tuple():
            return [masked(item, uri) for item in value]
    return value


def _passwords(uri: str) -> list[str]:
    """Return all that may be a password in the URI, as written and decoded, longest first.

    No parser of URIs is asked: a password may hold the characters that mislead it (``/?#[@``), and
    the URI may be one that it refuses.
    """
    found = {match[1] for match in _NAMED.finditer(uri)}
    found |= {match[1] for match in _NAMED.finditer(unquote_plus(uri))}
    if uri.startswith(("http://", "https://")):
        found |= {
            match[1] for match in _PARAMETER.finditer(uri) if not OPEN_VALUE.fullmatch(match[1])
        }
        found |= {match[1] for match in _TOKEN.finditer(uri)}
    scheme, separator, rest = uri.partition("://")
    rest = rest if separator else uri
    if not (scheme.split("+")[0] == "sqlite" and rest.startswith("/")):  # a path holds anything
        ends = [place for place, letter in enumerate(rest) if letter == "@"]
        for start in (place for place, letter in enumerate(rest) if letter == ":"):
            found |= {rest[start + 1 : end] for end in ends if end > start + 1}
    decoded = found | {unquote(password) for password in found}
    every = decoded | {quote(word, safe="") for word in decoded} | set(map(quote_plus, decoded))
    return sorted(every - {"", STARS, "{}"}, key=lambda word: (-len(word), word))
