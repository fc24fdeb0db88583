from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tuner.core.corpus import Corpus, Document, Query
from tuner.retrieval.hybrid import Hybrid

# A chain from film to director to city to river, and passages beside it that share its words.
DOCUMENTS = (
    Document("10", "Night Ferry", "Night Ferry is a film directed by Ada Holm in 1954."),
    Document("11", "Ada Holm", "Ada Holm was a director. She was born in Kvarnby."),
    Document("12", "Kvarnby", "Kvarnby is a town on the river Lissa."),
    Document("13", "Lissa (river)", "The Lissa flows through Ostermark into the sea."),
    Document("14", "Day Ferry", "Day Ferry is a film directed by Per Lund."),
    Document("15", "Per Lund", "Per Lund was a director who lived in Ostermark."),
    Document("16", "Lissa (singer)", "Lissa is a singer. Her film songs are known to all."),
    Document("17", "Rivers of the north", "A river is a stream of water. Rivers flow to the sea."),
)
QUERIES = (
    Query("a", "Where was the director of Night Ferry born?"),
    Query("b", "On which river lies the home town of Ada Holm?"),
    Query("c", "who directed day ferry"),
    Query("d", "Which streams of water reach the sea?"),
    Query("e", "Night Ferry or Day Ferry: which film is older?"),
)

Build = Callable[..., Hybrid]


@pytest.fixture
def corpus() -> Corpus:
    return Corpus(DOCUMENTS)


@pytest.fixture
def queries() -> list[Query]:
    return list(QUERIES)


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Build an engine over documents, or over a corpus, in a cache of the test's own."""

    def make(source: Corpus | list[Document], **options: object) -> Hybrid:
        corpus = source if isinstance(source, Corpus) else Corpus(tuple(source))
        return Hybrid.build(corpus, cache_dir=tmp_path / "cache", **options)

    return make
