"""Names found in a passage without a language model: its title, and capitalised phrases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from tuner.core.corpus import Document
from tuner.core.words import name_words
from tuner.retrieval.hybrid.text import STOP_WORDS

Name = tuple[str, ...]

LONGEST_NAME = 12
_PARENTHESES = re.compile(r"\s*\([^()]*\)")
_TOKEN = re.compile(r"[^\W_](?:[\w'’]|[.&/-](?=\w))*")
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

    >>> list(phrases("In 1910 the Bank of England hired Ann Lee. She left."))
    [('bank', 'of', 'england'), ('ann', 'lee')]
    """
    run: list[str] = []
    pending: list[str] = []  # joiners that count only if a capitalised word follows
    end = -1
    for match in _TOKEN.finditer(text):
        word = match.group()
        gap = text[end : match.start()] if end >= 0 else ""
        end = match.end()
        if run and gap not in (" ", "-", "–"):
            yield from _finish(run)
            run, pending = [], []
        if word[0].isupper():
            run += [*pending, word]
            pending = []
        elif run and word in _JOINERS and len(pending) < 2 and not run[-1][0].isdigit():
            pending.append(word)
        elif run and word[0].isdigit() and not pending:
            run.append(word)
        elif run:
            yield from _finish(run)
            run, pending = [], []
    yield from _finish(run)


def _finish(run: list[str]) -> Iterator[Name]:
    name = name_words(" ".join(run))
    # A sentence opens with a capital whatever its first word is.
    # What is left of "In 1910" is a number, not a name.
    while name and (name[0] in _OPENERS or name[0].isdigit()):
        name = name[1:]
    if is_usable(name):
        yield name


def is_usable(name: Name) -> bool:
    """Say whether a name can tell passages apart: not empty, not one character, not a sentence."""
    return 0 < len(name) <= LONGEST_NAME and (len(name) > 1 or len(name[0]) > 1)


def known_names(words: Name, known: dict[Name, int], *, longest: int) -> Iterator[int]:
    """Yield the numbers of the known names in ``words``, from the left, long ones first."""
    place = 0
    while place < len(words):
        for length in range(min(longest, len(words) - place), 0, -1):
            number = known.get(words[place : place + length])
            if number is not None:
                yield number
                place += length
                break
        else:
            place += 1
