"""Texts in arrays: the same texts again, each found where it stands, from memory and from files."""

from __future__ import annotations

from zlib import crc32

import pytest

from tuner.retrieval.hybrid.columns import Places, Texts

WORDS = ["plumless", "", "buckeroo", "北京", "é", "ann lee"]


def test_texts_come_back_in_their_order(tmp_path):
    made = Texts.of(WORDS)
    made.save(tmp_path, "words")
    for texts in (made, Texts.load(tmp_path, "words")):
        assert list(texts) == WORDS
        assert [texts[place] for place in range(len(texts))] == WORDS
        assert texts[-1] == "ann lee"
        assert texts[1:3] == WORDS[1:3]
        with pytest.raises(IndexError, match="position 6 of 6 texts"):
            texts[6]
    assert list(Texts.of([])) == []


def test_texts_are_found_even_where_two_have_the_same_sum(tmp_path):
    assert crc32(b"plumless") == crc32(b"buckeroo")
    made = Places.of(Texts.of(WORDS))
    made.save(tmp_path, "words")
    for places in (made, Places.load(tmp_path, "words")):
        assert [places.get(word) for word in WORDS] == [0, 1, 2, 3, 4, 5]
        assert places.get("lee") is None
    assert Places.of(Texts.of([])).get("") is None
