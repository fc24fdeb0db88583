"""What every retriever promises, tried on the built-in engine."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp

from tuner.core.corpus import Corpus, Document, Query
from tuner.retrieval.hybrid import Hybrid
from tuner.testing import RetrieverCase, RetrieverContract

DOCUMENTS = (
    Document("10", "Night Ferry", "Night Ferry is a film directed by Ada Holm in 1954."),
    Document("11", "Ada Holm", "Ada Holm was a director. She was born in Kvarnby."),
    Document("12", "Kvarnby", "Kvarnby is a town on the river Lissa."),
    Document("13", "Day Ferry", "Day Ferry is a film directed by Per Lund."),
)
QUERIES = (
    Query("a", "Where was the director of Night Ferry born?"),
    Query("b", "On which river lies the home town of Ada Holm?"),
    Query("c", "who directed day ferry"),
    Query("d", "zymurgy"),
)
PARAMS = ({}, {"graph_weight": 1.0, "max_hops": 3}, {"graph_weight": 0.0, "top_k": 2})


def build_hybrid() -> Hybrid:
    return Hybrid.build(Corpus(DOCUMENTS), cache_dir=Path(mkdtemp()))


class TestHybrid(RetrieverContract):
    case = RetrieverCase(
        build_hybrid, QUERIES, PARAMS, document_ids={document.id for document in DOCUMENTS}
    )
