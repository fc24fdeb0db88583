"""What every retriever promises, tried on graph-retriever's strategies."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp

import pytest

pytest.importorskip(
    "graph_retriever", reason="graph-retriever is not installed: pip install '.[graph_retriever]'"
)

from tuner.core.corpus import Corpus, Document, Query
from tuner.retrieval.graph_retriever import GraphRetriever
from tuner.testing import RetrieverCase, RetrieverContract

DOCUMENTS = (
    Document("10", "Night Ferry", "Night Ferry is a film directed by Ada Holm in 1954."),
    Document("11", "Ada Holm", "Ada Holm was a director. She was born in Kvarnby."),
    Document("12", "Kvarnby", "Kvarnby is a town on the river Lissa."),
    Document("13", "Day Ferry", "Day Ferry is a film directed by Per Lund."),
    Document("14", "Day Ferry", "Day Ferry is a film directed by Per Lund."),
)
QUERIES = (
    Query("a", "Where was the director of Night Ferry born?"),
    Query("b", "On which river lies the home town of Ada Holm?"),
    Query("c", "who directed day ferry"),
    Query("d", "zymurgy"),
)
PARAMS = (
    {},
    {"strategy": "mmr", "lambda_mult": 0.1, "select_k": 4, "start_k": 1},
    {"strategy": "scored", "select_k": 3, "start_k": 2, "max_depth": 1},
    {"start_k": 1, "max_depth": 0},
    {"select_k": 1, "start_k": 4},
)


def build_graph_retriever() -> GraphRetriever:
    return GraphRetriever.build(Corpus(DOCUMENTS), cache_dir=Path(mkdtemp()))


class TestGraphRetriever(RetrieverContract):
    case = RetrieverCase(
        build_graph_retriever, QUERIES, PARAMS, document_ids={document.id for document in DOCUMENTS}
    )
