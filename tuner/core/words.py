"""Words of a text, in any script: folded, split, counted."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

# Scripts written without spaces (Thai to Lao, Myanmar, Khmer, Kana, Han): a word is not to be
# had without a dictionary, so each character stands alone.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
# Python's \w leaves out combining marks, which would cut Indic and Arabic words into pieces.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0dff"
_WORD = re.compile(rf"[{UNSPACED}]|(?:(?![{UNSPACED}_])[\w{_MARKS}])+")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_LATIN_ACCENT = re.compile("[\u0300-\u036f]+")
_POSSESSIVE = re.compile(r"(?<=\w)['’ʼ]s\b", re.IGNORECASE)
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
    return _WORD.findall(fold(text))


def name_words(text: str) -> tuple[str, ...]:
    """Split a name into the words by which it is compared: possessive endings are dropped.

    >>> name_words("Neil Peart's")
    ('neil', 'peart')
    """
    return tuple(split_words(_POSSESSIVE.sub("", text)))


def is_unspaced(word: str) -> bool:
    """Say whether a word of ``split_words`` is one character of a script without spaces."""
    return len(word) == 1 and _UNSPACED.match(word) is not None


def count_tokens(text: str) -> int:
    """Count words, and characters where the script has no spaces: the length of a context."""
    return len(_WORD.findall(fold(text)))


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
