"""What the options of the graph change: whose names it has, and where walks go from them."""

from __future__ import annotations

import numpy as np
import pytest

from tuner.core.corpus import Corpus, Document, Triple
from tuner.retrieval.hybrid import synonyms as module
from tuner.retrieval.hybrid.graph import build_graph
from tuner.retrieval.hybrid.options import HybridOptions
from tuner.retrieval.hybrid.synonyms import MOST, synonyms
from tuner.retrieval.hybrid.words import Words

DOCUMENTS = (
    Document("1", "Holm", "In Holm stands the Old Mill."),
    Document("2", "Lissa", "From Holm a road leads to Lissa."),
)
CORPUS = Corpus(DOCUMENTS, (Triple("1", "holm", "has", "harbour"),))


def graph(corpus: Corpus = CORPUS, **options: object):
    documents = corpus.documents
    return build_graph(corpus, documents, Words.of(documents), HybridOptions(**options))


def test_names_of_titles_are_titles_and_phrases():
    assert list(graph(names="titles").names) == ["holm", "lissa", "old mill"]


def test_names_of_triples_are_own_titles_and_facts():
    made = graph(names="triples")
    assert list(made.names) == ["harbour", "holm", "lissa"]
    # Lissa's passage mentions Holm in its text alone.
    np.testing.assert_array_equal(made.degrees, [1, 1, 1])


def test_names_of_both_are_facts_where_there_are_any_and_phrases_elsewhere():
    made = graph()
    assert list(made.names) == ["harbour", "holm", "lissa"]
    np.testing.assert_array_equal(made.degrees, [1, 2, 1])


def test_a_walk_goes_to_the_passage_of_the_name_by_the_edge_weight():
    row = graph(edge_weight=3.0).to_passages[[1]].toarray()[0]
    np.testing.assert_allclose(row, [3 / 4, 1 / 4])


def test_a_name_that_is_nearly_everywhere_is_cut():
    places = [f"Town{n}" for n in range(30)]
    documents = tuple(Document(f"{n:02}", p, f"{p} lies in Moravia.") for n, p in enumerate(places))
    corpus = Corpus(documents)
    assert "moravia" not in list(graph(corpus).names)
    assert "moravia" in list(graph(corpus, hub_cut=1.0).names)


def test_synonyms_are_written_alike():
    names = ["bombay dyeing", "bombay dying", "night ferry"]
    alike = synonyms(names, 0.3).toarray()
    assert alike[0, 1] == alike[1, 0] > 0.3
    np.testing.assert_array_equal(np.diag(alike), 0)
    np.testing.assert_array_equal(alike[2], 0)
    assert synonyms(names, 0.99).nnz == 0


def test_names_that_mean_alike_are_synonyms_where_there_are_vectors():
    names = ["ocean liner", "steamship", "violin"]
    vectors = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]], dtype=np.float32)
    assert synonyms(names, 0.7).nnz == 0
    alike = synonyms(names, 0.7, vectors).toarray()
    np.testing.assert_allclose(alike, [[0, 0.8, 0], [0.8, 0, 0], [0, 0, 0]], atol=1e-6)
    # Those written alike stay so where their vectors are less alike.
    letters = synonyms(["holm bridge", "holm bridges"], 0.3)[0, 1]
    both = synonyms(["holm bridge", "holm bridges"], 0.3, np.eye(2, dtype=np.float32))
    assert both[0, 1] == letters > 0.3


def test_a_name_has_so_many_synonyms_at_most():
    alike = synonyms([f"wordy {n:02}" for n in range(40)], 0.01)
    assert np.diff(alike.indptr).max() == MOST


@pytest.mark.parametrize("threshold", [0.3, 0.6, 0.8, 0.95, 1.0])
def test_lists_of_names_that_can_be_alike_leave_nothing_out(monkeypatch, threshold):
    random = np.random.default_rng(5)
    parts = ["holm", "holms", "bridge", "bridges", "ada", "ferry", "old ferry", "night", "nights"]
    names = sorted({" ".join(random.choice(parts, 3)) for _ in range(150)})
    monkeypatch.setattr(module, "_PAIR_COST", np.inf)
    expected = synonyms(names, threshold)
    monkeypatch.setattr(module, "_PAIR_COST", 0.0)
    monkeypatch.setattr(module, "_MOST_FOUND", 50)
    for together in (1, 40):
        monkeypatch.setattr(module, "_TOGETHER", together)
        found = synonyms(names, threshold)
        np.testing.assert_array_equal(found.toarray(), expected.toarray())
    assert expected.nnz > 0


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.8, 1.0])
def test_vectors_are_compared_in_tiles_as_all_at_once(monkeypatch, threshold):
    random = np.random.default_rng(3)
    parts = ["holm", "holms", "bridge", "bridges", "ferry", "ferries", "lamp", "camp"]
    names = sorted({" ".join(random.choice(parts, 2)) for _ in range(60)})
    vectors = random.normal(size=(len(names), 3))
    vectors[5] = vectors[4] = vectors[11]  # several mean the same
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    # The greater cosine of each pair, by hand; then the ten best of each name.
    near = np.maximum(synonyms_of_all(names), np.round(vectors @ vectors.T, 6))
    np.fill_diagonal(near, 0.0)
    near[near < threshold] = 0.0
    for row in near:
        row[np.argsort(-row, kind="stable")[MOST:]] = 0.0
    assert near.any()
    for tile, most in ((2048, 1 << 23), (7, 20)):
        monkeypatch.setattr(module, "_TILE", tile)
        monkeypatch.setattr(module, "_MOST_FOUND", most)
        found = synonyms(names, threshold, vectors.astype(np.float32)).toarray()
        np.testing.assert_allclose(found, near, atol=2e-6)


def synonyms_of_all(names):
    """Return how alike names are written, each with each."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    weights = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3), lowercase=False)
    found = weights.fit_transform(names)
    return np.round((found @ found.T).toarray(), 6)


def test_a_walk_goes_to_the_passages_of_synonyms():
    documents = (Document("1", "Bombay Dyeing", "cloth"), Document("2", "Bombay Dying", "film"))
    corpus = Corpus(documents)
    assert graph(corpus).to_passages[[0]].nnz == 1
    alike = synonyms(["bombay dyeing", "bombay dying"], 0.3)[0, 1]
    row = graph(corpus, synonym_threshold=0.3).to_passages[[0]].toarray()[0]
    np.testing.assert_allclose(row, np.array([1, alike]) / (1 + alike), rtol=1e-6)
