"""Embedders of systems that search by vectors: built-in ones have a vector for every text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tuner.core.errors import InputError
from tuner.retrieval.adapters.embedding import (
    EMBEDDERS,
    Counting,
    embedder_knob,
    make_embedder,
    open_embedder,
    save_embedder,
)

TEXTS = [
    "Night Ferry is a film by Ada Holm.",
    "Ada Holm was born in Kvarnby.",
    "The Lissa flows to the sea.",
    "Kvarnby lies on the Lissa.",
]


@pytest.fixture(params=EMBEDDERS)
def name(request: pytest.FixtureRequest) -> str:
    if request.param == "wordllama":
        pytest.importorskip("wordllama", reason="wordllama is not installed: .[wordllama]")
    return str(request.param)


def likeness(first: np.ndarray, second: np.ndarray) -> float:
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


def test_like_texts_have_like_vectors(name: str) -> None:
    model = make_embedder(name, TEXTS)
    asked, near, far = model(["Where was Ada Holm born?", TEXTS[1], TEXTS[2]])
    assert likeness(asked, near) > likeness(asked, far)


def test_a_text_without_a_known_word_has_a_vector_of_its_own(name: str) -> None:
    model = make_embedder(name, TEXTS)
    first, again, other = model(["zymurgy", "zymurgy", "qat?"])
    assert np.array_equal(first, again)
    assert first.any()
    assert not np.array_equal(first, other)
    assert not model([""]).any() or name == "wordllama"


def test_what_was_learned_is_read_back(name: str, tmp_path: Path) -> None:
    model = make_embedder(name, TEXTS)
    save_embedder(model, tmp_path)
    again = open_embedder(name, tmp_path)
    asked = [*TEXTS, "zymurgy"]
    assert np.array_equal(model(asked), again(asked))


def test_words_that_are_read_are_counted() -> None:
    counting = Counting(make_embedder("hashed-words", TEXTS))
    counting(TEXTS[:2])
    counting(["The sea"])
    assert counting.tokens == 8 + 6 + 2


def test_an_embedder_of_the_users_is_one_of_the_choices() -> None:
    knob = embedder_knob("my_models:embed")
    assert knob.choices == (*EMBEDDERS, "my_models:embed")
    assert (knob.default, knob.stage, knob.is_open) == ("my_models:embed", "index", True)


def test_unknown_embedders_are_named() -> None:
    with pytest.raises(InputError, match="cannot import the embedder 'no_such:embed'"):
        make_embedder("no_such:embed", TEXTS)
