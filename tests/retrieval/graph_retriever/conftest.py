from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tuner.core.corpus import Corpus, Query
from tuner.retrieval.adapters.graph_retriever import GraphRetriever

Build = Callable[..., GraphRetriever]


@pytest.fixture
def queries(queries: list[Query]) -> list[Query]:
    return [*queries, Query("f", " ")]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    def make(corpus: Corpus, **options: object) -> GraphRetriever:
        return GraphRetriever.build(corpus, cache_dir=tmp_path / "cache", **options)

    return make
