"""The texts of shown passages: each once, cut and bounded, the largest changes first."""

from __future__ import annotations

import pytest

from tuner.core.corpus import Document
from tuner.core.errors import InputError
from tuner.core.run_files import PASSAGES_FILE
from tuner.run.shown_texts import PassageText, read_passages, shown_texts, write_passages
from tuner.run.side_by_side import Passage, Side, SideBySide

DOCUMENTS = [Document(f"d{n}", f"T{n}", "x" * 8) for n in range(5)]  # 10 characters each


def row(name: str, change: float, relevant: str, retrieved: str) -> SideBySide:
    passages = tuple(Passage(id_, "", False) for id_ in retrieved.split())
    return SideBySide(
        name, name, "", "holdout", (relevant,), Side(change, {}, passages), Side(0.0, {}, ())
    )


def test_each_passage_is_kept_once_and_those_of_the_largest_change_come_first():
    rows = [row("small", 0.1, "d0", "d1 d2"), row("large", -0.9, "d3", "d1 d4")]
    assert [text.id for text in shown_texts(rows, DOCUMENTS)] == ["d3", "d1", "d4", "d0", "d2"]


def test_texts_are_cut_and_all_of_them_are_bounded():
    rows = [row("q", 1.0, "d0", "d1 d2")]
    cut = [
        (text.text, text.length, text.is_cut) for text in shown_texts(rows, DOCUMENTS, longest=3)
    ]
    assert cut == [("xxx", 8, True)] * 3
    # Two passages of 10 characters fit into 25.
    assert [text.id for text in shown_texts(rows, DOCUMENTS, most=25)] == ["d0", "d1"]


def test_what_the_corpus_does_not_have_has_no_text():
    assert list(shown_texts([row("q", 1.0, "gone", "")], DOCUMENTS)) == []


def test_what_is_written_is_read_back(tmp_path):
    texts = [PassageText("d1", "Lima", "\u2028</script>\ud800", 20)]
    write_passages(tmp_path, texts)
    assert read_passages(tmp_path) == {"d1": texts[0]}
    (tmp_path / PASSAGES_FILE).write_text('{"id": 1}\n')
    with pytest.raises(InputError, match=rf"{PASSAGES_FILE}:1.*no text of a passage"):
        read_passages(tmp_path)
