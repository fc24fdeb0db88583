"""Names of annotators: each is part of the name of a file, and two that look alike are one."""

from __future__ import annotations

import re

from tuner.core.errors import InputError
from tuner.core.words import normalise

SETTLED = "settled"
"""In the place of a name, in the file of settled grades."""

MOST_CHARACTERS = 40
# A file of any system may be called so.
_NAME = re.compile(rf"[^\W_](?:[\w .-]{{0,{MOST_CHARACTERS - 2}}}[\w-])?")


def checked_name(written: object) -> str:
    """Return a name as it is kept: in one form of Unicode, with single spaces.

    >>> checked_name("  Anna  B. Smith ")
    'Anna B. Smith'

    Raises:
        InputError: it is no text, is blank or too long, or holds what a file's name cannot.
    """
    name = normalise(written) if isinstance(written, str) else ""
    if not _NAME.fullmatch(name):
        message = (
            f"the name {written!r}: write 1 to {MOST_CHARACTERS} letters, digits, spaces, dots or "
            "hyphens, a letter or a digit first"
        )
        raise InputError(message)
    if same(name) == SETTLED:
        raise InputError(f"the name {written!r} is kept for the grades that are settled")
    return name


def same(name: str) -> str:
    """Return what two spellings of one name share.

    >>> same("Anna") == same("anna")
    True
    """
    return name.casefold()
