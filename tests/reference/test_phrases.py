"""Phrases that one pattern finds against a plain reading of the text, word by word."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from tuner.core.words import name_words
from tuner.retrieval.hybrid.names import is_usable, phrases
from tuner.retrieval.hybrid.text import STOP_WORDS

TOKEN = re.compile(r"[^\W_](?:[\w'’]|[.&/-](?=\w))*")
JOINERS = frozenset("of the de la le du da di del der den des von van al el for and".split())
OPENERS = STOP_WORDS | frozenset(
    "after although also before both during each from he her his however i its many most one "
    "other our she several since some these those through under until we what when where which "
    "while who whose you your".split()
)

WORDS = [
    "Ann",
    "Élan",
    "Ⅷ",
    "\U00010400b",
    "of",
    "the",
    "van",
    "der",
    "The",
    "In",
    "1910",
    "²",
    "3D",
    "new",
    "O'Neil",
    "U.S.",
    "A&B",
    "iPhone",
    "北京",
    "ß",
]
GAPS = [" ", " ", " ", "", "  ", "-", "–", ". ", ", ", "'", "’s ", "_", "\n", "//"]
texts = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(GAPS)), max_size=12).map(
    lambda parts: "".join(word + gap for word, gap in parts)
)


def plain_phrases(text: str) -> Iterator[tuple[str, ...]]:
    run: list[str] = []
    pending: list[str] = []  # joiners that count only if a capitalised word follows
    end = -1
    for match in TOKEN.finditer(text):
        word = match.group()
        gap = text[end : match.start()] if end >= 0 else ""
        end = match.end()
        if run and gap not in (" ", "-", "–"):
            yield from finish(run)
            run, pending = [], []
        if word[0].isupper():
            run += [*pending, word]
            pending = []
        elif run and word in JOINERS and len(pending) < 2 and not run[-1][0].isdigit():
            pending.append(word)
        elif run and word[0].isdigit() and not pending:
            run.append(word)
        elif run:
            yield from finish(run)
            run, pending = [], []
    yield from finish(run)


def finish(run: list[str]) -> Iterator[tuple[str, ...]]:
    name = name_words(" ".join(run))
    while name and (name[0] in OPENERS or name[0].isdigit()):
        name = name[1:]
    if is_usable(name):
        yield name


@settings(max_examples=400)
@given(texts | st.text())
def test_the_pattern_finds_the_same_phrases(text):
    assert list(phrases(text)) == list(plain_phrases(text))
