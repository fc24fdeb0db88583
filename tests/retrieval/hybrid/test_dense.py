"""Dense vectors inside the text leg, from matrices made before."""

from __future__ import annotations

import numpy as np
import pytest

from tuner.core.corpus import Document, Query
from tuner.core.errors import InputError

DOCUMENTS = [
    Document("b", "", "the big dog barks"),
    Document("a", "", "a feline sleeps"),
    Document("c", "", "stocks fall again"),
]
QUERIES = [Query("q1", "cat nap"), Query("q2", "dog noise")]


@pytest.fixture
def vectors(tmp_path):
    """Files in the order of the corpus: dog, cat, money."""
    np.save(tmp_path / "documents.npy", np.array([[1.0, 0.1], [0.1, 2.0], [-1.0, -1.0]]))
    np.save(tmp_path / "queries.npy", np.array([[0.0, 3.0], [1.0, 0.0]]))
    (tmp_path / "ids.txt").write_text("q1\nq2\n")
    return {
        "matrix": str(tmp_path / "documents.npy"),
        "queries": str(tmp_path / "queries.npy"),
        "query_ids": str(tmp_path / "ids.txt"),
    }


def test_vectors_find_what_words_do_not(build, vectors):
    lexical = build(DOCUMENTS).retrieve(QUERIES, {"graph_weight": 0.0})
    assert lexical.ids(0) == []
    dense = build(DOCUMENTS, dense=vectors)
    dense.prepare(QUERIES)
    found = dense.retrieve(QUERIES, {"graph_weight": 0.0})
    assert found.ids(0)[0] == "a"
    assert found.ids(1)[0] == "b"
    np.testing.assert_array_equal(found.scores[:, 0], [1.0, 1.0])


def test_dense_weight_mixes_the_two(build, vectors):
    def scores(weight):
        engine = build(DOCUMENTS, dense=vectors, dense_weight=weight)
        rankings = engine.retrieve(QUERIES[1:], {"graph_weight": 0.0})
        return dict(zip(rankings.ids(0), rankings.scores[0], strict=False))

    assert scores(0.0) == {"b": 1.0}
    # cosines with (1, 0): b .995, a .0499, c -.7071; the share of the span: b 1, a .445, c 0
    span = 0.99504 + 0.70711
    assert scores(1.0)["a"] == pytest.approx((0.04994 + 0.70711) / span, abs=1e-4)
    # b has all of both legs, 1; a half of its dense share
    assert scores(0.5)["a"] == pytest.approx(0.5 * (0.04994 + 0.70711) / span, abs=1e-4)


def test_the_weight_of_vectors_is_tuned_on_prepared_queries(build, tmp_path):
    random = np.random.default_rng(1)
    words = "cat dog stock river tea night ferry film".split()
    documents = [Document(f"{n:03}", "", " ".join(random.choice(words, 9))) for n in range(150)]
    queries = [Query(str(n), " ".join(random.choice(words, 3))) for n in range(20)]
    np.save(tmp_path / "documents.npy", random.normal(size=(150, 5)))
    np.save(tmp_path / "queries.npy", random.normal(size=(20, 5)))
    (tmp_path / "ids.txt").write_text("\n".join(query.id for query in queries))
    names = {"matrix": "documents.npy", "queries": "queries.npy", "query_ids": "ids.txt"}
    dense = {name: str(tmp_path / file) for name, file in names.items()}
    engine = build(documents, dense=dense)
    settings = [{"dense_weight": w, "graph_weight": 0.0} for w in (0.0, 0.1, 0.5, 0.9, 1.0)]
    live = [engine.retrieve(queries, each) for each in settings]
    engine.prepare(queries)
    for each, expected in zip(settings, live, strict=True):
        found = engine.retrieve(queries, each)
        # Not all of the same order: scores that are equal but for rounding may change places.
        np.testing.assert_allclose(found.scores, expected.scores, atol=3e-6)
        built = build(documents, dense=dense, dense_weight=each["dense_weight"])
        np.testing.assert_allclose(
            built.serve(queries[3], {"graph_weight": 0}).scores[0], expected.scores[3], atol=3e-6
        )
    assert not np.allclose(live[1].scores, live[3].scores, atol=1e-3)


def test_a_new_matrix_is_a_new_index(build, vectors):
    first = build(DOCUMENTS, dense=vectors)
    np.save(vectors["matrix"], np.eye(3, 2) + 0.5)
    assert build(DOCUMENTS, dense=vectors).fingerprint != first.fingerprint


def test_a_query_without_a_vector_is_an_error(build, vectors):
    engine = build(DOCUMENTS, dense=vectors)
    with pytest.raises(InputError, match="no dense vector for query 'new'"):
        engine.serve(Query("new", "cat"), {})


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("matrix", np.ones((2, 2)), "2 rows for 3 documents"),
        ("matrix", np.array([[1.0, 0], [0, 0], [1, 1]]), "row 1 is zero or not finite"),
        ("matrix", np.array([[1.0, 0], [np.nan, 0], [1, 1]]), "row 1 is zero or not finite"),
        ("matrix", np.ones(3), r"must be a matrix of numbers, got shape \(3,\)"),
        ("queries", np.ones((2, 5)), "vectors of 5 numbers, but the documents' have 2"),
        ("queries", np.ones((3, 2)), "2 ids for 3 vectors"),
    ],
)
def test_matrices_that_do_not_fit_are_refused(build, vectors, name, content, message):
    np.save(vectors[name], content)
    with pytest.raises(InputError, match=message):
        build(DOCUMENTS, dense=vectors)


def test_a_missing_matrix_is_named(build, vectors):
    with pytest.raises(InputError, match=r"nowhere\.npy"):
        build(DOCUMENTS, dense={**vectors, "matrix": "nowhere.npy"})
