"""A query's terms are found in any form and script, and the text is never changed by it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.evalset.grading.marking import in_pieces, query_terms


def marked(query, text):
    return in_pieces(text, query_terms(query))[1::2]


@pytest.mark.parametrize(
    ("query", "text", "found"),
    [
        ("Who founded Rome?", "The founder of ROME: Rome's founding", ["ROME", "Rome", "founding"]),
        ("running dogs", "A dog runs; cats ran.", ["dog runs"]),
        ("Café Zürich", "the cafe in Zu\u0308rich", ["cafe", "Zu\u0308rich"]),
        ("北京大学", "在北京的大学", ["北京", "大学"]),
        ("北京", "京北", []),
        ("What is it?", "It is what it is", []),
        ("كتاب", "هذا كتاب جديد", ["كتاب"]),
        ("C", "", []),
    ],
)
def test_terms_are_marked(query, text, found):
    assert marked(query, text) == found


@given(st.text(max_size=60), st.text(max_size=200))
def test_the_pieces_are_the_text(query, text):
    pieces = in_pieces(text, query_terms(query))
    assert "".join(pieces) == text
    assert len(pieces) % 2 == 1


@given(st.lists(st.sampled_from(["Rome", " ", "founder", "北", "京", "'s", "½", "\u0301"])))
def test_every_marked_piece_holds_a_word(words):
    pieces = in_pieces("".join(words), query_terms("the founders of Rome 北京 half 1"))
    assert all(piece.strip() for piece in pieces[1::2])
