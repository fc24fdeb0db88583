"""Names found in a passage without a language model: its title, and capitalised phrases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice

from tuner.core.corpus import Document
from tuner.core.words import name_words
from tuner.retrieval.hybrid.text import STOP_WORDS

Name = tuple[str, ...]

LONGEST_NAME = 12
_PARENTHESES = re.compile(r"\s*\([^()]*\)")
_HIGH = re.compile("[\U00010000-\U0010ffff]")
# Small words that stand inside names (Bank of England, Ludwig van Beethoven, Musée de la Mer).
_JOINERS = frozenset("of the de la le du da di del der den des von van al el for and".split())
_OPENERS = STOP_WORDS | frozenset(
    "after although also before both during each from he her his however i its many most one "
    "other our she several since some these those through under until we what when where which "
    "while who whose you your".split()
)


def own_names(document: Document) -> list[Name]:
    """Return the names of the passage itself: its title, and the title without parentheses.

    A passage without a title takes the first phrase of its text.
    """
    if document.title:
        forms = (document.title, _PARENTHESES.sub("", document.title))
        names = dict.fromkeys(name[:LONGEST_NAME] for name in map(name_words, forms) if name)
        return list(names)
    return list(islice(phrases(document.text), 1))


def phrases(text: str) -> Iterator[Name]:
    """Yield the capitalised phrases of a text, in order, repeats included.

    A phrase begins with a capitalised word. It goes on over one space or dash, to another one, with
    up to two joiners between them, or to a number; after a number there is no joiner.

    >>> list(phrases("In 1910 the Bank of England hired Ann Lee. She left."))
    [('bank', 'of', 'england'), ('ann', 'lee')]
    """
    highest = 0x7F if text.isascii() else 0x10FFFF if _HIGH.search(text) else 0xFFFF
    for run in _runs(highest).findall(text):
        if run and (name := _named(run)):
            yield name


@lru_cache(maxsize=3)
def _runs(highest: int) -> re.Pattern[str]:
    """Return what finds the phrases of texts up to a code point; the last match is empty.

    Each match takes whatever stands before a phrase, and the phrase: no search ever begins within
    a word.
    """
    upper, digit = (
        _char_class(chr(code) for code in range(highest + 1) if is_one(chr(code)))
        for is_one in (_is_upper, _is_digit)
    )
    rest = r"(?:[\w'’]+|[.&/-](?=\w))*+"
    capitalised, number = f"[{upper}]{rest}", f"[{digit}]{rest}"
    joiner = rf"(?:{'|'.join(sorted(_JOINERS))})(?![\w'’]|[.&/-]\w)"
    gap = "[ –-]"
    between = rf"(?:(?:{gap}{joiner}){{0,2}}|(?:{gap}{number})+)"
    run = rf"{capitalised}(?:{between}{gap}{capitalised})*(?:{gap}{number})*"
    return re.compile(rf"(?:[\W_]+|[^\W_{upper}]{rest})*+(?:({run})|\Z)")


def _is_upper(char: str) -> bool:
    return char.isupper() and char.isalnum()


def _is_digit(char: str) -> bool:
    return char.isdigit() and char.isalnum()


def _char_class(chars: Iterable[str]) -> str:
    """Return the inside of a character class: as ranges, which the matcher turns into a table."""
    ranges: list[list[str]] = []
    for char in chars:
        if ranges and ord(char) == ord(ranges[-1][1]) + 1:
            ranges[-1][1] = char
        else:
            ranges.append([char, char])
    return "".join(f"{first}-{last}" for first, last in ranges)


# Names are few beside the places where they stand.
@lru_cache(maxsize=100_000)
def _named(run: str) -> Name:
    """Return the name in a phrase, or nothing where it can tell no passages apart."""
    name = name_words(run)
    # A sentence opens with a capital whatever its first word is.
    # What is left of "In 1910" is a number, not a name.
    while name and (name[0] in _OPENERS or name[0].isdigit()):
        name = name[1:]
    return name if is_usable(name) else ()


def is_usable(name: Name) -> bool:
    """Say whether a name can tell passages apart: not empty, not one character, not a sentence."""
    return 0 < len(name) <= LONGEST_NAME and (len(name) > 1 or len(name[0]) > 1)
