"""The engine against a plain reference: the same scores and rankings, live and prepared."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuner.core.corpus import Corpus, Document, Query, Triple
from tuner.retrieval.hybrid import Hybrid

MUSIQUE = Path(__file__).resolve().parents[3] / "shared" / "data" / "musique"
# Half a step of the engine's scores, and what spreading scores of 32 bits makes of their rounding.
TOLERANCE = 1e-5


def _reference() -> ModuleType:
    path = Path(__file__).with_name("hybrid_reference.py")
    spec = importlib.util.spec_from_file_location("hybrid_reference", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["hybrid_reference"] = module
    spec.loader.exec_module(module)
    return module


reference = _reference()


def read(name: str) -> list[dict[str, str]]:
    lines = (MUSIQUE / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def check(
    corpus: Corpus,
    queries: list[Query],
    params: dict[str, float],
    cache: Path,
    *,
    hop_decay: float = 0.7,
    seeds: int = 8,
    dense_weight: float | None = None,
    passage_weight: float = 0.0,
    **options: Any,
) -> None:
    """Compare every score, and the order as far as scores differ by more than the tolerance."""
    # Cosines are of 32 bits, and the less they differ, the more spreading them adds to the error.
    tolerance = TOLERANCE if dense_weight is None else 1e-4
    everything = max(100, len(corpus.documents))
    renamed = {"bm25_k1": "k1", "bm25_b": "b"}
    built = {renamed.get(name, name): value for name, value in options.items()}
    if dense_weight is not None:
        options["embedder"] = "tests_reference_embedder:embed"
        built |= {"embed": letters, "dense_weight": dense_weight}
    built |= {"hop_decay": hop_decay, "seeds": seeds, "passage_weight": passage_weight}
    cuts = {name: built.pop(name, 0) for name in ("chunk_tokens", "chunk_overlap")}
    if cuts["chunk_tokens"]:
        plain = reference.ChunkedReference(corpus, **cuts, settings=built)
    else:
        plain = reference.HybridReference(corpus, **built)
    engine = Hybrid.build(
        corpus, cache_dir=cache, text_pool=everything, graph_pool=everything, **options
    )
    arguments = {**params, "top_k": 100, "hop_decay": hop_decay, "seeds": seeds, **options}
    arguments["passage_weight"] = passage_weight
    if dense_weight is not None:
        arguments["dense_weight"] = dense_weight
    live = engine.retrieve(queries, arguments)
    engine.prepare(queries)
    for rankings in (live, engine.retrieve(queries, arguments)):
        for row, query in enumerate(queries):
            expected = plain.scores(query.text, **params)
            found = rankings.ids(row)
            scores = rankings.scores[row, : len(found)]
            np.testing.assert_allclose(scores, [expected[i] for i in found], atol=tolerance)
            ordered = [expected[document_id] for document_id in found]
            assert all(a >= b - 2 * tolerance for a, b in pairwise(ordered))
            left_out = [score for i, score in expected.items() if i not in found]
            floor = ordered[-1] if len(found) == 100 else 0.0
            assert max(left_out, default=0.0) <= floor + 2 * tolerance


def letters(text: str) -> list[float]:
    """Embed a text by whether some letters stand in it an odd number of times.

    Cosines are equal or far apart, since their span is spread over [0, 1] whatever it is.
    """
    return [*(float(text.lower().count(letter) % 2) for letter in "aei"), 1.0]


@pytest.fixture(autouse=True, scope="module")
def embedder() -> Iterator[None]:
    """Make a module with an embedding function that a configuration can name."""
    module = ModuleType("tests_reference_embedder")
    module.embed = lambda texts: np.array([letters(text) for text in texts])
    sys.modules[module.__name__] = module
    yield
    del sys.modules[module.__name__]


WORDS = ["Ada", "Holm", "Night", "Ferry", "Lissa", "river", "town", "born", "the", "of", "in"]
MARKS = ["", "", "", ".", ",", "'s", " (film)", " 1954", "北京", "é"]

phrase = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(MARKS)), max_size=6).map(
    lambda parts: " ".join(word + mark for word, mark in parts)
)
documents = st.lists(st.tuples(phrase, phrase, phrase), min_size=1, max_size=8).map(
    lambda rows: tuple(
        Document(str(number), title, f"{first} {second}")
        for number, (title, first, second) in enumerate(rows)
    )
)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    made=documents,
    texts=st.lists(phrase, min_size=1, max_size=4, unique=True),
    facts=st.lists(st.tuples(st.integers(0, 7), phrase, phrase), max_size=4),
    graph_weight=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    max_hops=st.integers(1, 6),
    temperature=st.sampled_from([0.001, 0.05, 0.1, 1.0, 10.0]),
    hop_decay=st.sampled_from([0.7, 0.05, 0.4, 1.0]),
    seeds=st.sampled_from([8, 1, 3]),
    query_stage=st.sampled_from(
        [
            {},
            {"dense_weight": 0.3},
            {"dense_weight": 1.0},
            {"passage_weight": 0.5},
            {"passage_weight": 2.0, "dense_weight": 0.3},
        ]
    ),
    index_stage=st.sampled_from(
        [
            {},
            {"bm25_k1": 0.4, "bm25_b": 0.1},
            {"names": "titles", "edge_weight": 1.0},
            {"names": "triples", "hub_cut": 0.001},
            {"synonym_threshold": 0.6},
            {"chunk_tokens": 3},
            {"chunk_tokens": 4, "chunk_overlap": 2, "names": "titles"},
            {"synonym_threshold": 0.05, "edge_weight": 0.5},
        ]
    ),
)
def test_made_up_corpora(
    made,
    texts,
    facts,
    graph_weight,
    max_hops,
    temperature,
    hop_decay,
    seeds,
    query_stage,
    index_stage,
):
    triples = tuple(
        Triple(str(number), subject, "knows", object_)
        for number, subject, object_ in facts
        if number < len(made)
    )
    params = {"graph_weight": graph_weight, "max_hops": max_hops, "temperature": temperature}
    queries = [Query(str(number), text) for number, text in enumerate(texts)]
    with TemporaryDirectory() as cache:
        corpus = Corpus(made, triples)
        check(
            corpus,
            queries,
            params,
            Path(cache),
            hop_decay=hop_decay,
            seeds=seeds,
            **query_stage,
            **index_stage,
        )


@pytest.mark.parametrize(
    "params",
    [
        {"graph_weight": 0.5, "max_hops": 2, "temperature": 0.1},
        {"graph_weight": 1.0, "max_hops": 5, "temperature": 0.02},
        {"graph_weight": 0.0, "max_hops": 1, "temperature": 0.1},
    ],
    ids=str,
)
@pytest.mark.parametrize("with_facts", [False, True])
def test_real_passages(tmp_path, params, with_facts):
    if not MUSIQUE.is_dir():
        pytest.skip(f"needs the data set in {MUSIQUE}")
    rows = read("corpus")
    kept = tuple(Document(row["_id"], row["title"], row["text"]) for row in rows[:250])
    ids = {document.id for document in kept}
    triples = read("triples")
    facts = tuple(
        Triple(row["doc_id"], row["subject"], row["relation"], row["object"])
        for row in triples
        if with_facts and row["doc_id"] in ids
    )
    queries = read("queries")
    asked = [Query(row["_id"], row["text"]) for row in queries[:6]]
    check(Corpus(kept, facts), asked, params, tmp_path)
