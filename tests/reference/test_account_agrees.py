"""What the engine tells of its answers against the plain reference: legs, names, and every walk."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.reference.hybrid_reference import HybridReference
from tuner.core.corpus import Corpus, Document, Query, Triple
from tuner.retrieval.hybrid import Hybrid
from tuner.retrieval.hybrid.account import MOST_WALKS

# Half a step of the engine's scores, and what the rounding of 32 bits adds where scores are spread.
TOLERANCE = 1e-4

WORDS = ["Ada", "Holm", "Night", "Ferry", "Lissa", "river", "born", "the", "of"]
phrase = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
documents = st.lists(st.tuples(phrase, phrase), min_size=1, max_size=5).map(
    lambda rows: tuple(Document(str(n), title, text) for n, (title, text) in enumerate(rows))
)


def letters(text: str) -> list[float]:
    """Embed a text by whether some letters stand in it an odd number of times."""
    return [*(float(text.lower().count(letter) % 2) for letter in "aei"), 1.0]


@pytest.fixture(autouse=True, scope="module")
def embedder() -> Iterator[None]:
    module = ModuleType("tests_account_embedder")
    module.embed = lambda texts: np.array([letters(text) for text in texts])
    sys.modules[module.__name__] = module
    yield
    del sys.modules[module.__name__]


# Smaller examples of a failure take minutes to find.
@settings(max_examples=40, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    made=documents,
    text=phrase,
    facts=st.lists(st.tuples(st.integers(0, 4), phrase, phrase), max_size=3),
    graph_weight=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    max_hops=st.integers(1, 3),
    temperature=st.sampled_from([0.001, 0.1, 1.0]),
    seeds=st.sampled_from([1, 3, 8]),
    passage_weight=st.sampled_from([0.0, 0.5, 2.0]),
    dense_weight=st.sampled_from([None, 0.3, 1.0]),
    synonym_threshold=st.sampled_from([0.0, 0.6]),
)
def test_made_up_corpora(
    made,
    text,
    facts,
    graph_weight,
    max_hops,
    temperature,
    seeds,
    passage_weight,
    dense_weight,
    synonym_threshold,
):
    triples = tuple(Triple(str(n), a, "knows", b) for n, a, b in facts if n < len(made))
    corpus = Corpus(made, triples)
    options = {"synonym_threshold": synonym_threshold}
    stage = {"seeds": seeds, "passage_weight": passage_weight}
    plain = HybridReference(
        corpus,
        **options,
        **stage,
        **({} if dense_weight is None else {"embed": letters, "dense_weight": dense_weight}),
    )
    if dense_weight is not None:
        options["embedder"] = "tests_account_embedder:embed"
        stage["dense_weight"] = dense_weight
    params = {"graph_weight": graph_weight, "max_hops": max_hops, "temperature": temperature}
    query = Query("q", text)
    with TemporaryDirectory() as cache:
        engine = Hybrid.build(corpus, cache_dir=Path(cache), **options)
        asked = {**params, **stage, "top_k": 100}
        rankings = engine.retrieve([query], asked)
        told = engine.account(query, asked, rankings)
    found = rankings.ids(0)
    parts = np.sum([leg.parts for leg in told.legs.values()], axis=0)
    np.testing.assert_allclose(parts, rankings.scores[0, : len(found)], atol=TOLERANCE)
    text_scores, walked = plain.text_scores(text), {}
    if graph_weight > 0:
        walked = plain.graph_scores(text, temperature, max_hops)
        graph = told.legs["graph"].scores
        np.testing.assert_allclose(graph, [walked.get(d, 0.0) for d in found], atol=TOLERANCE)
    else:
        assert "graph" not in told.legs
        assert told.starts is told.walks is None
    # What words and vectors have together is the search by text, in its share.
    of_text = sum(leg.parts for name, leg in told.legs.items() if name != "graph")
    share = 1 - graph_weight if walked else 1.0
    np.testing.assert_allclose(of_text, [share * text_scores[d] for d in found], atol=TOLERANCE)
    if dense_weight is not None and found:
        vectors = plain.vector_shares(text)
        np.testing.assert_allclose(
            told.legs["dense"].scores, [vectors[d] for d in found], atol=TOLERANCE
        )
    if graph_weight > 0:
        check_starts(told, plain, text, temperature)
        check_walks(told, plain.ways(text, temperature, max_hops), found)


def check_starts(told, plain, text, temperature):
    expected = {" ".join(n): w for n, w in plain.seed_weights(text, temperature).items()}
    names = {one.name: one.weight for one in told.starts if one.name}
    kept = {name for name, weight in expected.items() if weight > 1e-9}
    assert kept <= names.keys() <= expected.keys()
    np.testing.assert_allclose([names[n] for n in kept], [expected[n] for n in kept], atol=1e-6)
    passages = {one.passage: one.weight for one in told.starts if one.passage}
    assert sum(passages.values()) == pytest.approx(sum(plain.best_passages(text).values()))


def check_walks(told, ways, found):
    for place, document in enumerate(found):
        arriving = [way for way in ways if way[3][-1] == document]
        total = sum(way[0] for way in arriving)
        if total < 1e-30:  # what the engine, in 32 bits, has no number for
            continue
        straight = [
            way
            for way in arriving
            if len(set(way[2])) == len(way[2]) and len(set(way[3])) == len(way[3]) and way[0] > 0
        ]
        walks = told.walks[place]
        best = sorted((way[0] / total for way in straight), reverse=True)[: len(walks)]
        np.testing.assert_allclose([walk.share for walk in walks], best, atol=1e-5)
        # Of those that vanish in 32 bits the engine may tell nothing.
        strong = [way for way in straight if way[0] > 1e-9 * total]
        assert min(len(strong), MOST_WALKS) <= len(walks) <= min(len(straight), MOST_WALKS)
        shares = {(way[1], way[2], way[3]): way[0] / total for way in straight}
        for walk in walks:
            key = (walk.start, tuple(tuple(n.split(" ")) for n in walk.names), walk.passages)
            assert walk.share == pytest.approx(shares[key], abs=1e-5)
