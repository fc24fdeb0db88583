"""What every retriever promises, tried on the built-in engine; where the others are tried."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp

import pytest

from tuner.core import registry
from tuner.core.corpus import Corpus, Document, Query
from tuner.retrieval.hybrid import Hybrid
from tuner.testing import RetrieverCase, RetrieverContract

TESTS = Path(__file__).resolve().parents[1]
# Each kind needs a system of its own kind to answer, so it is tried where its other tests are.
TRIED_IN = {
    "command": "retrieval/outside/test_command.py",
    "cypher": "retrieval/cypher/test_cypher.py",
    "function": "retrieval/outside/test_function.py",
    "graph_retriever": "retrieval/test_wrapped.py",
    "haystack": "retrieval/frameworks/test_haystack.py",
    "http": "retrieval/outside/test_http.py",
    "hybrid": "contract/test_retrievers.py",
    "langchain": "retrieval/frameworks/test_langchain.py",
    "lightrag": "retrieval/test_wrapped.py",
    "llama_index": "retrieval/frameworks/test_llama_index.py",
    "ms_graphrag": "retrieval/ms_graphrag/test_retriever.py",
    "ms_graphrag_local": "retrieval/ms_graphrag/test_local.py",
    "neo4j_graphrag": "retrieval/frameworks/test_neo4j_graphrag.py",
    "runs": "retrieval/runs/test_runs.py",
}
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


@pytest.mark.parametrize("kind", registry.kinds("retrieval"))
def test_every_kind_is_tried(kind: str) -> None:
    named = registry.load("retrieval", kind).__name__
    assert kind in TRIED_IN, (
        f"write a test module with\n\n"
        f"class Test{named}(RetrieverContract):\n"
        f"    case = RetrieverCase(make, queries, params, document_ids=ids)\n\n"
        f"as docs/extending.md shows, and name it in TRIED_IN as the one of {kind!r}"
    )
    text = (TESTS / TRIED_IN[kind]).read_text(encoding="utf-8")
    assert "(RetrieverContract)" in text or "tuner.testing.retrievers import CHECKS" in text
    assert named in text, f"{TRIED_IN[kind]} says nothing of {named}"
