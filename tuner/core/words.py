"""Words of a text, in any script: folded, split, counted."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

# Scripts written without spaces (Thai to Lao, Myanmar, Khmer, Kana, Han): a word is not to be
# had without a dictionary, so each character stands alone.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
# Python's \w leaves out combining marks, which would cut Indic and Arabic words into pieces.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0dff"
_WORD = re.compile(rf"[{UNSPACED}]|(?:[^\W_{UNSPACED}]+|[{_MARKS}]+)+")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_LATIN_ACCENT = re.compile("[\u0300-\u036f]+")
# The look behind comes second, so that a search leaps from one apostrophe to the next.
_POSSESSIVE = re.compile(r"['’ʼ](?<=\w.)s\b", re.IGNORECASE)
# Those that leave the words around them as they are: ʼ is a letter, and a mark would find another.
_PLAIN_POSSESSIVE = re.compile(r"['’](?<=\w.)[sS]\b(?=[\x00-\x7f’–—”]|\Z)")
POSSESSIVE = "'s"
# Marks that part words and are all that keeps many a text from being ASCII.
_DASHES_AND_QUOTES = "–—‘’“”"
_ASCII_WORDS = bytes(c if chr(c).isalnum() else 32 for c in range(128)).ljust(256)
_INVISIBLE = {"Cc", "Cf"}  # control characters and zero-width ones


def fold(text: str) -> str:
    """Return ``text`` in compatibility form, without letter case and without accents.

    >>> fold("Café ＡＢＣ")
    'cafe abc'
    """
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFKC", _LATIN_ACCENT.sub("", decomposed))


def split_words(text: str) -> list[str]:
    """Split into folded words; characters of scripts without spaces come one by one.

    >>> split_words("The River-Boat 北京")
    ['the', 'river', 'boat', '北', '京']
    """
    if not text.isascii():
        for mark in _DASHES_AND_QUOTES:
            text = text.replace(mark, " ")
    text = fold(text)
    if not text.isascii():
        return _WORD.findall(text)
    # What the pattern finds in ASCII, in a fifth of the time.
    return text.encode().translate(_ASCII_WORDS).decode().split()


def word_spans(text: str) -> Iterator[tuple[int, int]]:
    """Return where the words of a text begin and end, as it is written.

    >>> ["The River-Boat"[begin:end] for begin, end in word_spans("The River-Boat")]
    ['The', 'River', 'Boat']
    """
    return (found.span() for found in _WORD.finditer(text))


def name_words(text: str) -> tuple[str, ...]:
    """Split a name into the words by which it is compared: possessive endings are dropped.

    >>> name_words("Neil Peart's")
    ('neil', 'peart')
    """
    has_apostrophe = "'" in text or "’" in text or "ʼ" in text
    return tuple(split_words(_POSSESSIVE.sub("", text) if has_apostrophe else text))


def marked_words(text: str) -> list[str] | None:
    """Split as ``split_words`` does, but write each possessive ending as ``POSSESSIVE``.

    Without these it is what ``name_words`` returns; with "s" in their place, ``split_words``. None
    where there is no such list, as the ending is more than a word of its own.

    >>> marked_words("Neil Peart's drums")
    ['neil', 'peart', "'s", 'drums']
    """
    if not ("'" in text or "’" in text or "ʼ" in text):
        return split_words(text)
    first, *others = _PLAIN_POSSESSIVE.split(text)
    if len(others) != len(_POSSESSIVE.findall(text)):
        return None
    words = split_words(first)
    for part in others:
        words.append(POSSESSIVE)
        words += split_words(part)
    return words


def is_unspaced(word: str) -> bool:
    """Say whether a word of ``split_words`` is one character of a script without spaces."""
    return len(word) == 1 and _UNSPACED.match(word) is not None


def count_tokens(text: str) -> int:
    """Count words, and characters where the script has no spaces: the length of a context."""
    return len(split_words(text))


def terms(text: str) -> list[str]:
    """Return words, and bigrams of neighbouring characters where the script has no spaces.

    A character alone between words stands for itself. By bigrams 北京 is not in 京北.

    >>> terms("Is 北京大学 an art school?")
    ['is', '北京', '京大', '大学', 'an', 'art', 'school']
    """
    found: list[str] = []
    run: list[str] = []
    for word in [*split_words(text), ""]:
        if is_unspaced(word):
            run.append(word)
            continue
        found += run if len(run) < 2 else [a + b for a, b in pairwise(run)]
        run = []
        if word:
            found.append(word)
    return found


def normalise(text: str) -> str:
    """Return text in Unicode form NFKC, without invisible characters, each gap one space.

    Letter case stays, since names depend on it: see ``compare_key``.

    >>> normalise("  Ｗho　is\\u200b Ada？ ")
    'Who is Ada?'
    """
    text = unicodedata.normalize("NFKC", text)
    kept = (c for c in text if c.isspace() or unicodedata.category(c) not in _INVISIBLE)
    return " ".join("".join(kept).split())


def compare_key(text: str) -> str:
    """Return what two spellings of one query share: letter case and final marks do not count.

    >>> compare_key("Who is Ada?") == compare_key("who is ada")
    True
    """
    return normalise(text).casefold().rstrip(" ?!.。…").strip()
