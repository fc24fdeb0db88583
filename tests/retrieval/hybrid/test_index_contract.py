"""The engine keeps the contract of kinds with parameters of their index."""

from __future__ import annotations

import pytest

from tuner.core.corpus import Corpus, Document, Query, Triple
from tuner.retrieval.hybrid import Hybrid
from tuner.testing import IndexCase, IndexContract

DOCUMENTS = (
    Document("1", "Night Ferry", "Night Ferry is a film that was directed by Ada Holm. It is old."),
    Document("2", "Ada Holm", "Ada Holm was born in Kvarnby. She made films of the sea."),
    Document("3", "Kvarnby", "Kvarnby lies on the river Lissa. An old bridge leads across."),
    Document("4", "Day Ferry", "Day Ferry is a film. Per Lund directed it in the north."),
)
TRIPLES = (Triple("1", "Night Ferry", "directed by", "Ada Holm"),)
QUERIES = (
    Query("a", "Where was the director of Night Ferry born?"),
    Query("b", "On which river lies the home town of Ada Holm?"),
    Query("c", "old bridges"),
)


def _case(**other: object) -> IndexCase:
    knobs = [knob for knob in Hybrid.declare_knobs() if knob.stage == "index"]
    first = {knob.name: knob.default for knob in knobs}
    return IndexCase(Hybrid, Corpus(DOCUMENTS, TRIPLES), QUERIES, first=first, other=first | other)


@pytest.mark.slow
class TestPassages(IndexContract):
    case = _case(chunk_tokens=8, chunk_overlap=4, names="triples", hub_cut=0.5)


@pytest.mark.slow
class TestVectors(IndexContract):
    case = _case(embedder="lsa", embedding_dim=2, names="titles")


def test_what_an_embedder_read_is_told(build):
    assert build(list(DOCUMENTS)).index_cost == {}
    engine = build(list(DOCUMENTS), embedder="lsa")
    # Words of title and text: 2 + 14, 2 + 12, 1 + 11, 2 + 12.
    assert engine.index_cost == {"tokens": 56.0}
