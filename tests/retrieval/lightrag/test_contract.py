"""What every retriever promises, tried on LightRAG."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp

import pytest

pytest.importorskip("lightrag", reason="LightRAG is not installed: pip install '.[lightrag]'")

from tuner.core.corpus import Corpus, Document, Query, Triple
from tuner.retrieval.lightrag import Lightrag
from tuner.testing import RetrieverCase, RetrieverContract

DOCUMENTS = (
    Document("10", "Night Ferry", "Night Ferry is a film directed by Ada Holm in 1954."),
    Document("11", "Ada Holm", "Ada Holm was a director. She was born in Kvarnby."),
    Document("12", "Kvarnby", "Kvarnby is a town on the river Lissa."),
    Document("13", "Day Ferry", "Day Ferry is a film directed by Per Lund."),
    Document("14", "Day Ferry", "Day Ferry is a film directed by Per Lund."),
)
TRIPLES = (
    Triple("10", "Night Ferry", "directed by", "Ada Holm"),
    Triple("11", "Ada Holm", "born in", "Kvarnby"),
    Triple("12", "Kvarnby", "lies on", "Lissa"),
    Triple("13", "Day Ferry", "directed by", "Per Lund"),
)
QUERIES = (
    Query("a", "Where was the director of Night Ferry born?"),
    Query("b", "On which river lies the home town of Ada Holm?"),
    Query("c", "who directed day ferry"),
    Query("d", "zymurgy"),
)
PARAMS = (
    {},
    {"mode": "naive", "chunk_top_k": 2},
    {"mode": "local", "top_k": 2, "kg_chunk_pick_method": "WEIGHT"},
    {"mode": "global", "cosine_better_than_threshold": 0.0, "related_chunk_number": 1},
    {"mode": "hybrid", "max_entity_tokens": 50, "max_relation_tokens": 50},
    {"max_total_tokens": 1000},
)


def build_lightrag() -> Lightrag:
    return Lightrag.build(Corpus(DOCUMENTS, TRIPLES), cache_dir=Path(mkdtemp()))


class TestLightrag(RetrieverContract):
    case = RetrieverCase(
        build_lightrag, QUERIES, PARAMS, document_ids={document.id for document in DOCUMENTS}
    )
