"""Secrets kept out of all that is shown: stars stand in their place."""

from __future__ import annotations

import re
from collections.abc import Iterable

STARS = "***"
# A number, a date or a truth value: no secret, whatever it is called.
OPEN_VALUE = re.compile(r"[-+.:\d]{1,12}|true|false", re.IGNORECASE)
# What is left of a secret that was cut off says less than this many letters of it.
SHORTEST_BEGINNING = 4


def starred(text: str, secrets: Iterable[str], *, whole_word_below: int = 0) -> str:
    """Return the text with stars for each secret, the longest first.

    So are their beginnings where the text was cut short in the middle of one. One of fewer letters
    than ``whole_word_below`` is looked for as a whole word only: a text must stay readable without
    its "e".

    >>> starred("no answer to word-of-mine, wor… or a", ["word", "a"], whole_word_below=3)
    'no answer to ***-of-mine, wor… or ***'
    """
    for secret in sorted(secrets, key=lambda secret: (-len(secret), secret)):
        found = re.escape(secret)
        found = found if len(secret) >= whole_word_below else rf"(?<!\w){found}(?!\w)"
        text = re.sub(found, STARS, text)
        for length in range(len(secret) - 1, SHORTEST_BEGINNING - 1, -1):
            text = text.replace(f"{secret[:length]}…", f"{STARS}…")
    return text
