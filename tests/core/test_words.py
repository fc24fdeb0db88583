"""Words: ASCII and possessive endings are split on a quicker way, to the same words."""

from __future__ import annotations

import re

from hypothesis import assume, given
from hypothesis import strategies as st

from tuner.core.words import POSSESSIVE, marked_words, name_words, split_words

PARTS = [
    "Ada",
    "'s",
    "’s",
    "ʼs",
    "'S",
    "s",
    " ",
    "-",
    "_",
    "–",
    "“",
    "é",
    "e\u0301",
    "½",
    "ᴬ",
    "北",
    "か\u3099",
    "\u0901",
]
texts = st.lists(st.sampled_from(PARTS), max_size=10).map("".join)


@given(st.text(st.characters(max_codepoint=127)))
def test_words_of_ascii_are_runs_of_letters_and_digits_in_small_letters(text):
    assert split_words(text) == re.findall("[a-z0-9]+", text.lower())


@given(texts | st.text())
def test_marked_words_are_those_of_the_text_and_those_of_names(text):
    marked = marked_words(text)
    assume(marked is not None)
    assert [word for word in marked if word != POSSESSIVE] == [*name_words(text)]
    assert ["s" if word == POSSESSIVE else word for word in marked] == split_words(text)


def test_an_ending_that_is_no_word_of_its_own_is_not_marked():
    assert marked_words("Adaʼs river") is None  # ʼ is a letter
    assert split_words("Adaʼs") == ["adaʼs"]
    assert name_words("Adaʼs") == ("ada",)
